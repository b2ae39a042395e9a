"""Networks, which turn observations into outputs: a slot of every agent.

A network is a frozen dataclass with two pure functions, `init` and `apply`. Its parameters are a
tree of arrays, which the agent keeps. `MLP` is the default and `Convolution` is for images; any
other object that follows `Network` works too.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rewardshift.checks import Count, Widths, check
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import InputError

Initial = Literal["random", "zero"]
InputRange = tuple[tuple[float, float], ...]

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
        _check_pairs(self.input_range)

    def init(
        self, key: PRNGKeyArray, spec: TaskSpec, others: int, outputs: int, initial: Initial
    ) -> MLPParameters:
        """See `Network`."""
        _check_range(self.input_range, spec)
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
        return apply_mlp(parameters, _to_range(observation, self.input_range), others)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ConvolutionParameters:
    """The layers of a `Convolution`, and the shape of its images."""

    filters: tuple[Layer, ...]
    head: MLPParameters
    shape: tuple[int, ...] = field(metadata={"static": True})


@dataclass(frozen=True)
class Convolution:
    """A convolutional network for images, followed by a perceptron.

    Args:
        filters: The number of filters of each convolution.
        kernels: The width and height of each convolution's filters.
        strides: The stride of each convolution.
        hidden: Widths of the perceptron's hidden layers.
        input_range: The lowest and the highest value of a pixel, as in `MLP`.
    """

    filters: Widths = (32, 64)
    kernels: Widths = (3, 3)
    strides: Widths = (2, 2)
    hidden: Widths = (128,)
    input_range: InputRange = ((0.0, 255.0),)

    def __post_init__(self) -> None:
        check(self)
        _check_pairs(self.input_range)
        if not len(self.filters) == len(self.kernels) == len(self.strides) > 0:
            raise InputError(
                "filters, kernels and strides must have one number for each convolution, got"
                f" {self.filters}, {self.kernels} and {self.strides}"
            )

    def init(
        self, key: PRNGKeyArray, spec: TaskSpec, others: int, outputs: int, initial: Initial
    ) -> ConvolutionParameters:
        """See `Network`."""
        if len(spec.shape) != 3:
            raise InputError(
                "a Convolution needs images of three axes, (height, width, channels); the task's"
                f" observations have the shape {spec.shape or (spec.features,)}"
            )
        _check_range(self.input_range, spec)
        *keys, head_key = jax.random.split(key, len(self.filters) + 1)
        filters, (height, width, channels) = [], spec.shape
        for layer_key, count, kernel, stride in zip(
            keys, self.filters, self.kernels, self.strides, strict=True
        ):
            filters.append(_init_layer(layer_key, kernel**2 * channels, count))
            height, width = ((side - kernel) // stride + 1 for side in (height, width))
            channels = count
        if min(height, width) < 1:
            raise InputError(
                f"kernels {self.kernels} with strides {self.strides} do not fit into an image of"
                f" the shape {spec.shape}"
            )
        sizes = (height * width * channels + others, *self.hidden, outputs)
        return ConvolutionParameters(
            tuple(filters), init_mlp(head_key, sizes, initial), tuple(spec.shape)
        )

    def apply(
        self,
        parameters: ConvolutionParameters,
        observation: Float[Array, "*batch features"],
        others: Array | None = None,
    ) -> Float[Array, "... outputs"]:
        """See `Network`."""
        batch = observation.shape[:-1]
        image = _to_range(observation, self.input_range).reshape(*batch, *parameters.shape)
        for layer, kernel, stride in zip(
            parameters.filters, self.kernels, self.strides, strict=True
        ):
            image = jax.nn.relu(_patches(image, kernel, stride) @ layer.weight.T + layer.bias)
        return apply_mlp(parameters.head, image.reshape(*batch, -1), others)


def _patches(
    image: Float[Array, "*batch height width channels"], kernel: int, stride: int
) -> Float[Array, "*batch rows columns inputs"]:
    """The pixels under a filter at each of its places.

    A convolution is then a matrix product, which XLA's CPU backend computes fast for members and
    seeds side by side. Its own convolutions treat these axes as groups, one by one.
    """
    rows, columns = ((side - kernel) // stride + 1 for side in image.shape[-3:-1])
    places = [(i, j) for i in range(kernel) for j in range(kernel)]
    parts = [
        image[..., i : i + stride * rows : stride, j : j + stride * columns : stride, :][
            ..., :rows, :columns, :
        ]
        for i, j in places
    ]
    return jnp.concatenate(parts, axis=-1)


def _check_pairs(input_range: InputRange) -> None:
    if any(not low < high for low, high in input_range):
        raise InputError(
            f"input_range must be pairs of a lower and a higher number, got {input_range}"
        )


def _check_range(input_range: InputRange, spec: TaskSpec) -> None:
    if len(input_range) not in (0, 1, spec.features):
        raise InputError(
            f"input_range must be one pair, or one for each of the {spec.features} numbers of"
            f" an observation, got {len(input_range)}"
        )


def _to_range(
    observation: Float[Array, "*batch features"], input_range: InputRange
) -> Float[Array, "*batch features"]:
    """Observations scaled to the network's inputs."""
    if not input_range:
        return observation
    low, high = jnp.asarray(input_range).T
    return (observation - low) / (high - low)


def _init_layer(key: PRNGKeyArray, inputs: int, outputs: int) -> Layer:
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
        _init_layer(*arguments) for arguments in zip(keys, sizes[:-1], sizes[1:], strict=True)
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
            seen = inputs @ layer.weight[:, :features].T + layer.bias
            inputs = seen[..., None, :] + others @ layer.weight[:, features:].T
        else:
            inputs = inputs @ layer.weight.T + layer.bias
        if place < len(parameters.hidden):
            if parameters.norms:
                inputs = _normalise(parameters.norms[place], inputs)
            inputs = jax.nn.relu(inputs)
    return inputs


def _normalise(norm: Norm, inputs: Float[Array, "*batch width"]) -> Float[Array, "*batch width"]:
    centred = inputs - inputs.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + SMALLEST_VARIANCE) * norm.scale + norm.offset


def side_by_side(
    make: Callable[[PRNGKeyArray], Any], key: PRNGKeyArray, axes: tuple[Count, ...]
) -> Any:
    """The parameters of several networks, stacked along leading axes of these lengths."""
    for _ in axes:
        make = jax.vmap(make)
    return make(jax.random.split(key, axes))


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
