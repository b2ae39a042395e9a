"""Networks as plain tuples of arrays: nothing to unwrap in a loop that is called every step."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

MLP = tuple[tuple[Array, Array], ...]
Networks = TypeVar("Networks")

# A megabyte, which fits into a core's cache beside its gradient.
CACHED = 2**18

# Uniform numbers are multiples of 2^-24, so 0 is one of them, where a normal one would be infinite.
SMALLEST_UNIFORM = 2.0**-25


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


def init_mlps(key: PRNGKeyArray, sizes: Sequence[int], axes: tuple[int, ...]) -> MLP:
    """Networks side by side, with these leading axes."""
    make: Callable[[PRNGKeyArray], MLP] = partial(init_mlp, sizes=sizes)
    for _ in axes:
        make = jax.vmap(make)
    return make(jax.random.split(key, axes))


def apply_mlp(mlp: MLP, inputs: Float[Array, "*batch features"]) -> Float[Array, "*batch outputs"]:
    """The outputs; ReLU between the layers, none behind the last."""
    *hidden, (weight, bias) = mlp
    for hidden_weight, hidden_bias in hidden:
        inputs = jax.nn.relu(inputs @ hidden_weight.T + hidden_bias)
    return inputs @ weight.T + bias


def apply_joint(
    mlp: MLP,
    observation: Float[Array, "batch features"],
    others: Float[Array, "batch *candidates size"],
) -> Float[Array, "batch *candidates outputs"]:
    """The outputs for observations beside other inputs, of which each may have several.

    The first layer looks at an observation once, however many candidates there are for it.
    """
    (weight, bias), *rest = mlp
    features = observation.shape[-1]
    seen = observation @ weight[:, :features].T + bias
    seen = seen.reshape(len(seen), *(1,) * (others.ndim - 2), -1)
    both = seen + others @ weight[:, features:].T
    return apply_mlp(tuple(rest), jax.nn.relu(both)) if rest else both


def twin_values(
    critics: MLP,
    observation: Float[Array, "batch features"],
    action: Float[Array, "batch *candidates size"],
) -> Float[Array, "twin batch *candidates"]:
    """What each of a few critics thinks of actions."""
    return jax.vmap(apply_joint, in_axes=(0, None, None))(critics, observation, action)[..., 0]


def normal_from_uniform(uniform: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Standard normal numbers that numbers in [0, 1) stand for."""
    return jax.scipy.special.ndtri(jnp.maximum(uniform, SMALLEST_UNIFORM))


def squash(
    outputs: Float[Array, "*batch twice"], noise: Float[Array, "*batch size"]
) -> tuple[Float[Array, "*batch size"], Float[Array, "*batch"]]:
    """Actions of a Gaussian policy, brought into (-1, 1) by tanh, and the log of their density.

    Args:
        outputs: Outputs of the policy's network: means, and logarithms of standard deviations.
        noise: Standard normal numbers.
    """
    mean, deviation = _gaussian(outputs)
    raw = mean + deviation * noise
    return jnp.tanh(raw), _log_density(raw, mean, deviation)


def squashed_log_density(
    outputs: Float[Array, "*batch twice"], action: Float[Array, "*batch size"]
) -> Float[Array, "*batch"]:
    """The log of the density of given actions; see `squash`."""
    edge = 1 - 1e-6
    return _log_density(jnp.arctanh(jnp.clip(action, -edge, edge)), *_gaussian(outputs))


def _gaussian(outputs: Array) -> tuple[Array, Array]:
    mean, log_deviation = jnp.split(outputs, 2, axis=-1)
    return mean, jnp.exp(jnp.clip(log_deviation, -5.0, 2.0))


def _log_density(raw: Array, mean: Array, deviation: Array) -> Array:
    """The log of the density of tanh(raw), in a form that does not lose digits."""
    slope = 2 * (math.log(2) - raw - jax.nn.softplus(-2 * raw))
    return (jax.scipy.stats.norm.logpdf(raw, mean, deviation) - slope).sum(axis=-1)


def mean_and_grad(
    loss: Callable[[Networks, Any], tuple[Array, Any]], networks: Networks, batch: Any, *, size: int
) -> tuple[tuple[Array, Any], Networks]:
    """`jax.value_and_grad(loss, has_aux=True)`, for losses and aux that are means over a batch.

    A great batch is taken in equal parts, one after the other: what a layer puts out is then still
    in the cache when the gradient needs it.

    Args:
        loss: Takes the networks and a batch, or a part of one.
        networks: What the gradient is for.
        batch: Arrays whose first axis is the batch's.
        size: How many numbers a layer puts out, at most.
    """
    wanted = 2 ** max(0, math.ceil(math.log2(size / CACHED)))
    parts = math.gcd(len(jax.tree.leaves(batch)[0]), wanted)
    split = jax.tree.map(lambda leaf: leaf.reshape(parts, -1, *leaf.shape[1:]), batch)
    of_part = partial(jax.value_and_grad(loss, has_aux=True), networks)

    def add(total: Any, part: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, of_part(part)), None

    shapes = jax.eval_shape(of_part, jax.tree.map(lambda leaf: leaf[0], split))
    nothing = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)
    total, _ = jax.lax.scan(add, nothing, split)
    return jax.tree.map(lambda leaf: leaf / parts, total)


def adam_step(
    rate: float, gradient: Networks, optimiser: optax.OptState, networks: Networks
) -> tuple[Networks, optax.OptState]:
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
