"""The network slot, and the perceptron that fills it by default."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rewardshift.checks import Count, Finite, Must, Widths, check
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

# Replaces a uniform number of 0, which would give an infinite normal number. Uniform numbers are
# multiples of 2^-24.
SMALLEST_UNIFORM = 2.0**-25
# Added to a variance before layer normalisation divides by its root.
SMALLEST_VARIANCE = 1e-5


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


class Layer(NamedTuple):
    """A linear layer.

    A weight is `[outputs, inputs]`, the order in which a product yields its gradient; the other
    order costs a transposition per update.
    """

    weight: Float[Array, "*members outputs inputs"]
    bias: Float[Array, "*members outputs"]


class Norm(NamedTuple):
    """The scale and the offset of a layer normalisation."""

    scale: Float[Array, "*members width"]
    offset: Float[Array, "*members width"]


class MLPParameters(NamedTuple):
    """The layers of an `MLP`; `norms` is empty without layer normalisation."""

    hidden: tuple[Layer, ...]
    norms: tuple[Norm, ...]
    output: Layer


@dataclass(frozen=True)
class MLP:
    """A multi-layer perceptron with ReLU between its layers.

    Args:
        hidden: Widths of the hidden layers.
        layer_norm: Whether every hidden layer is normalised before its ReLU.
        input_range: The lowest and the highest value of each number of an observation, or one pair
            for all of them. The network then sees inputs from 0 to 1. If it is empty, the network
            sees the observations as they are.
    """

    hidden: Widths = (64,)
    layer_norm: bool = False
    input_range: InputRange = ()

    def __post_init__(self) -> None:
        check(self)

    def init(
        self, key: PRNGKeyArray, spec: TaskSpec, others: int, outputs: int, initial: Initial
    ) -> MLPParameters:
        """See `Network`."""
        check_range(self.input_range, spec)
        return init_mlp(
            key, (spec.features + others, *self.hidden, outputs), initial, norm=self.layer_norm
        )

    def apply(
        self,
        parameters: MLPParameters,
        observation: Float[Array, "*batch features"],
        others: Array | None = None,
    ) -> Float[Array, "... outputs"]:
        """See `Network`."""
        return apply_mlp(parameters, to_range(observation, self.input_range), others)


def check_range(input_range: InputRange, spec: TaskSpec) -> None:
    """Raises if the ranges are not as many as the numbers of an observation, nor one."""
    if len(input_range) not in (0, 1, spec.features):
        raise InputError(
            f"input_range must be one pair, or one for each of the {spec.features} numbers of"
            f" an observation, got {len(input_range)}"
        )


def to_range(
    observation: Float[Array, "*batch features"], input_range: InputRange
) -> Float[Array, "*batch features"]:
    """Observations scaled to the network's inputs."""
    if not input_range:
        return observation
    low, high = jnp.asarray(input_range).T
    return (observation - low) / (high - low)


def init_layer(key: PRNGKeyArray, inputs: int, outputs: int) -> Layer:
    """A layer with uniform numbers in +-1 / sqrt(inputs)."""
    weight_key, bias_key = jax.random.split(key)
    bound = 1 / math.sqrt(inputs)
    return Layer(
        jax.random.uniform(weight_key, (outputs, inputs), minval=-bound, maxval=bound),
        jax.random.uniform(bias_key, (outputs,), minval=-bound, maxval=bound),
    )


def init_mlp(
    key: PRNGKeyArray, sizes: Sequence[int], initial: Initial = "random", *, norm: bool = False
) -> MLPParameters:
    """The layers of a perceptron.

    Args:
        key: The source of randomness.
        sizes: The widths, from the input to the output.
        initial: `"zero"` starts the output layer at zero.
        norm: Whether the hidden layers are normalised.
    """
    keys = jax.random.split(key, len(sizes) - 1)
    *hidden, output = (
        init_layer(*arguments) for arguments in zip(keys, sizes[:-1], sizes[1:], strict=True)
    )
    if initial == "zero":
        output = jax.tree.map(jnp.zeros_like, output)
    norms = (Norm(jnp.ones(width), jnp.zeros(width)) for width in sizes[1:-1])
    return MLPParameters(tuple(hidden), tuple(norms) if norm else (), output)


def apply_mlp(
    parameters: MLPParameters,
    inputs: Float[Array, "*batch features"],
    others: Array | None = None,
) -> Float[Array, "... outputs"]:
    """The outputs of a perceptron; see `Network.apply`.

    The first layer processes an input once for all its candidates.
    """
    if others is not None and others.ndim == inputs.ndim:
        inputs, others = jnp.concatenate([inputs, others], axis=-1), None
    layers = (*parameters.hidden, parameters.output)
    for place, layer in enumerate(layers):
        if others is not None and place == 0:
            features = inputs.shape[-1]
            seen = _product(inputs, layer.weight[:, :features]) + layer.bias
            inputs = seen[..., None, :] + _product(others, layer.weight[:, features:])
        else:
            inputs = _product(inputs, layer.weight) + layer.bias
        if place < len(parameters.hidden):
            if parameters.norms:
                inputs = _normalise(parameters.norms[place], inputs)
            inputs = jax.nn.relu(inputs)
    return inputs


def _product(
    inputs: Float[Array, "*batch inputs"], weight: Float[Array, "outputs inputs"]
) -> Float[Array, "*batch outputs"]:
    """`inputs @ weight.T`, without the copy that XLA makes of a transposed weight under `vmap`."""
    return jnp.tensordot(inputs, weight, axes=(-1, 1))


def _normalise(norm: Norm, inputs: Float[Array, "*batch width"]) -> Float[Array, "*batch width"]:
    centred = inputs - inputs.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + SMALLEST_VARIANCE) * norm.scale + norm.offset


def init_several(
    network: Network,
    key: PRNGKeyArray,
    axes: tuple[Count, ...],
    task: tuple[TaskSpec, int, int, Initial],
) -> Any:
    """The parameters of several networks, stacked along leading axes of these lengths.

    Args:
        network: The network.
        key: The source of randomness.
        axes: The lengths of the axes.
        task: The other arguments of the network's `init`.
    """

    def init(key: PRNGKeyArray) -> Any:
        return network.init(key, *task)

    for _ in axes:
        init = jax.vmap(init)
    return init(jax.random.split(key, axes))


def twin_values(
    network: Network,
    critics: Any,
    observation: Float[Array, "batch features"],
    action: Float[Array, "batch *candidates size"],
) -> Float[Array, "twin batch *candidates"]:
    """The values of actions, by each of several critics."""
    return jax.vmap(network.apply, in_axes=(0, None, None))(critics, observation, action)[..., 0]


def normal_from_uniform(uniform: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Standard normal numbers from uniform numbers in [0, 1)."""
    return jax.scipy.special.ndtri(jnp.maximum(uniform, SMALLEST_UNIFORM))
