"""Running means and deviations, by which observations are brought to a common scale."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

# As users of hindsight replay have them: no deviation counts as smaller, nothing lies farther out.
SMALLEST_DEVIATION = 0.01
FARTHEST = 5.0


class Normaliser(NamedTuple):
    """How many observations were seen, their mean, and the sum of squared distances from it."""

    seen: Float[Array, ""]
    mean: Float[Array, " features"]
    squares: Float[Array, " features"]


def init_normaliser(features: int) -> Normaliser:
    """Nothing seen yet."""
    return Normaliser(jnp.zeros(()), jnp.zeros(features), jnp.zeros(features))


def take_note(normaliser: Normaliser, observation: Float[Array, " features"]) -> Normaliser:
    """One more observation."""
    seen = normaliser.seen + 1
    distance = observation - normaliser.mean
    mean = normaliser.mean + distance / seen
    return Normaliser(seen, mean, normaliser.squares + distance * (observation - mean))


def normalise(
    normaliser: Normaliser, observation: Float[Array, "*batch features"]
) -> Float[Array, "*batch features"]:
    """Observations as deviations from the mean, none of them extreme."""
    deviation = jnp.sqrt(normaliser.squares / jnp.maximum(normaliser.seen, 1.0))
    scaled = (observation - normaliser.mean) / jnp.maximum(deviation, SMALLEST_DEVIATION)
    return jnp.clip(scaled, -FARTHEST, FARTHEST)
