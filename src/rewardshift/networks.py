"""Networks as plain tuples of arrays: nothing to unwrap in a loop that is called every step."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

MLP = tuple[tuple[Array, Array], ...]


def init_mlp(key: PRNGKeyArray, sizes: Sequence[int]) -> MLP:
    """Weights and biases of linear layers, uniform in +-1 / sqrt(inputs).

    A weight is `[outputs, inputs]`, the order in which its gradient comes out of a product; the
    other one costs a transposition per update.

    Args:
        key: For the weights.
        sizes: The widths, from the input to the output.
    """
    layers = []
    keys = jax.random.split(key, len(sizes) - 1)
    for layer_key, inputs, outputs in zip(keys, sizes[:-1], sizes[1:], strict=True):
        weight_key, bias_key = jax.random.split(layer_key)
        bound = 1 / math.sqrt(inputs)
        layers.append(
            (
                jax.random.uniform(weight_key, (outputs, inputs), minval=-bound, maxval=bound),
                jax.random.uniform(bias_key, (outputs,), minval=-bound, maxval=bound),
            )
        )
    return tuple(layers)


def apply_mlp(mlp: MLP, inputs: Float[Array, "*batch features"]) -> Float[Array, "*batch outputs"]:
    """The outputs; ReLU between the layers, none behind the last."""
    *hidden, (weight, bias) = mlp
    for hidden_weight, hidden_bias in hidden:
        inputs = jax.nn.relu(inputs @ hidden_weight.T + hidden_bias)
    return inputs @ weight.T + bias


def adam_step(
    rate: float, gradient: MLP, optimiser: optax.OptState, networks: MLP
) -> tuple[MLP, optax.OptState]:
    """The networks after a step of Adam, and Adam's own state."""
    updates, optimiser = optax.adam(rate).update(gradient, optimiser)
    return optax.apply_updates(networks, updates), optimiser


def soft_update(target: MLP, online: MLP, rate: float) -> MLP:
    """The target network, moved towards the online one."""
    return jax.tree.map(lambda t, o: t + rate * (o - t), target, online)


def huber(error: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Squared near zero, linear beyond one."""
    size = jnp.abs(error)
    return jnp.where(size < 1, 0.5 * size**2, size - 0.5)
