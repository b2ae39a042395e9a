"""A convolutional network for images."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rewardshift.agents.networks.perceptron import (
    Initial,
    InputRange,
    Layer,
    MLPParameters,
    apply_mlp,
    check_range,
    init_layer,
    init_mlp,
    to_range,
)
from rewardshift.checks import Widths, check
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import InputError


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
        check_range(self.input_range, spec)
        *keys, head_key = jax.random.split(key, len(self.filters) + 1)
        filters, (height, width, channels) = [], spec.shape
        for layer_key, count, kernel, stride in zip(
            keys, self.filters, self.kernels, self.strides, strict=True
        ):
            filters.append(init_layer(layer_key, kernel**2 * channels, count))
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
        image = to_range(observation, self.input_range).reshape(*batch, *parameters.shape)
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
