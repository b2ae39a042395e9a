"""Running means and deviations, by which observations are brought to a common scale."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

# As users of hindsight replay have them: no deviation counts as smaller, nothing lies farther out.
SMALLEST_DEVIATION = 0.01
FARTHEST = 5.0


class Normaliser(NamedTuple):
    """How many observations were seen, their mean, and the sum of squared distances from it.

    The mean is told from the first observation on: in float32 a mean far from 0 would stop moving
    after some hundred thousand steps.
    """

    seen: Float[Array, ""]
    first: Float[Array, " features"]
    mean: Float[Array, " features"]
    squares: Float[Array, " features"]


def init_normaliser(features: int) -> Normaliser:
    """Nothing seen yet."""
    zeros = jnp.zeros(features)
    return Normaliser(jnp.zeros(()), zeros, jnp.copy(zeros), jnp.copy(zeros))


def take_note(normaliser: Normaliser, observation: Float[Array, " features"]) -> Normaliser:
    """One more observation."""
    seen = normaliser.seen + 1
    first = jnp.where(normaliser.seen == 0, observation, normaliser.first)
    distance = observation - first - normaliser.mean
    mean = normaliser.mean + distance / seen
    squares = normaliser.squares + distance * (observation - first - mean)
    return Normaliser(seen, first, mean, squares)


def normalise(
    normaliser: Normaliser, observation: Float[Array, "*batch features"]
) -> Float[Array, "*batch features"]:
    """Observations as deviations from the mean, none of them extreme."""
    deviation = jnp.sqrt(normaliser.squares / jnp.maximum(normaliser.seen, 1.0))
    distance = observation - normaliser.first - normaliser.mean
    return jnp.clip(distance / jnp.maximum(deviation, SMALLEST_DEVIATION), -FARTHEST, FARTHEST)
