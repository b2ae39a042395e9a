"""Networks, which turn observations into outputs, and the learners that change their parameters.

A network is a slot of every agent: a frozen dataclass with two pure functions, `init` and
`apply`. Its parameters are a tree of arrays, which the agent keeps. `MLP` is the default; any other
object that follows `Network` works too.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from rewardshift.checks import Count, Counts, Finite, Must, Settings
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import InputError

Initial = Literal["random", "zero"]
InputRange = Annotated[
    tuple[tuple[Finite, Finite], ...],
    Must(
        "pairs of a lower and a higher number",
        lambda pairs: all(low < high for low, high in pairs),
    ),
]


@runtime_checkable
class Network(Protocol):
    """The contract of a network."""

    def init(
        self, key: PRNGKeyArray, spec: TaskSpec, others: int, outputs: int, initial: Initial
    ) -> Any:
        """The parameters before the first update.

        Args:
            key: The source of randomness.
            spec: The task, which describes the observations.
            others: The number of inputs beside an observation, such as those of an action.
            outputs: The number of outputs.
            initial: `"zero"` asks for outputs of exactly 0 at first.
        """
        ...

    def apply(
        self,
        parameters: Any,
        observation: Float[Array, "*batch features"],
        others: Array | None = None,
    ) -> Float[Array, "... outputs"]:
        """The outputs of the network.

        Args:
            parameters: The network's parameters.
            observation: Flat observations.
            others: The inputs beside each observation, `[*batch, size]`; or those of several
                candidates for each, `[*batch, candidates, size]`, with outputs for every candidate.
        """
        ...


def init_several(
    network: Network, key: PRNGKeyArray, axes: tuple[Count, ...], *arguments: Any
) -> Any:
    """The parameters of several networks, stacked along leading axes of these lengths.

    Args:
        network: The network.
        key: The source of randomness.
        axes: The lengths of the axes.
        *arguments: The other arguments of the network's `init`.
    """
    keys = jax.random.split(key, math.prod(axes))
    stacked = jax.vmap(lambda key: network.init(key, *arguments))(keys)
    return jax.tree.map(lambda leaf: leaf.reshape(*axes, *leaf.shape[1:]), stacked)


class Layer(NamedTuple):
    """A linear layer.

    A weight is `[outputs, inputs]`, the order in which a product yields its gradient; the other
    order costs a transposition per update.
    """

    weight: Float[Array, "*members outputs inputs"]
    bias: Float[Array, "*members outputs"]


class MLPParameters(NamedTuple):
    """The layers of an `MLP`."""

    hidden: tuple[Layer, ...]
    output: Layer


@dataclass(frozen=True)
class MLP(Settings):
    """A multi-layer perceptron with ReLU between its layers.

    Args:
        hidden: Widths of the hidden layers.
        input_range: The lowest and the highest value of each number of an observation, or one pair
            for all of them. The network then sees inputs from 0 to 1. If it is empty, the network
            sees the observations as they are.
    """

    hidden: Counts = (64,)
    input_range: InputRange = ()

    def init(
        self, key: PRNGKeyArray, spec: TaskSpec, others: int, outputs: int, initial: Initial
    ) -> MLPParameters:
        """Uniform numbers in +-1 / sqrt(inputs), as in PyTorch and most papers' code."""
        widths = (spec.features + others, *self.hidden, outputs)
        keys = jax.random.split(key, len(widths) - 1)
        layers = []
        for layer_key, fan_in, fan_out in zip(keys, widths[:-1], widths[1:], strict=True):
            weight_key, bias_key = jax.random.split(layer_key)
            bound = 1 / math.sqrt(fan_in)
            weight = jax.random.uniform(weight_key, (fan_out, fan_in), minval=-bound, maxval=bound)
            bias = jax.random.uniform(bias_key, (fan_out,), minval=-bound, maxval=bound)
            layers.append(Layer(weight, bias))
        if initial == "zero":
            layers[-1] = jax.tree.map(jnp.zeros_like, layers[-1])
        return MLPParameters(tuple(layers[:-1]), layers[-1])

    def apply(
        self,
        parameters: MLPParameters,
        observation: Float[Array, "*batch features"],
        others: Array | None = None,
    ) -> Float[Array, "... outputs"]:
        """See `Network`. The first layer processes an observation once for all its candidates."""
        inputs = to_range(observation, self.input_range) if self.input_range else observation
        if others is not None and others.ndim == inputs.ndim:
            inputs, others = jnp.concatenate([inputs, others], axis=-1), None
        first, *rest = (*parameters.hidden, parameters.output)
        # A product names the weight's second axis: XLA copies a transposed weight under `vmap`.
        if others is None:
            outputs = jnp.tensordot(inputs, first.weight, axes=(-1, 1)) + first.bias
        else:
            features = inputs.shape[-1]
            seen = jnp.tensordot(inputs, first.weight[:, :features], axes=(-1, 1)) + first.bias
            added = jnp.tensordot(others, first.weight[:, features:], axes=(-1, 1))
            outputs = seen[..., None, :] + added
        for layer in rest:
            outputs = jnp.tensordot(jax.nn.relu(outputs), layer.weight, axes=(-1, 1)) + layer.bias
        return outputs


def to_range(
    observation: Float[Array, "*batch features"], input_range: InputRange
) -> Float[Array, "*batch features"]:
    """Observations scaled to [0, 1] by their range."""
    if len(input_range) not in (1, observation.shape[-1]):
        raise InputError(
            f"input_range must be one pair, or one for each of the {observation.shape[-1]} numbers"
            f" of an observation, got {len(input_range)}"
        )
    low, high = jnp.asarray(input_range).T
    return (observation - low) / (high - low)


class Learner(NamedTuple):
    """Parameters that an optimiser changes, and the state of the optimiser."""

    parameters: Any
    optimiser: optax.OptState

    @classmethod
    def start(cls, parameters: Any, method: optax.GradientTransformation) -> "Learner":
        """A learner before its first step."""
        return cls(parameters, method.init(parameters))

    def step(self, gradient: Any, method: optax.GradientTransformation) -> "Learner":
        """The learner after a step, given the gradient of a loss."""
        updates, optimiser = method.update(gradient, self.optimiser)
        return Learner(optax.apply_updates(self.parameters, updates), optimiser)
