"""Running means and deviations, by which observations are brought to a common scale."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rewardshift.envs.tasks import TaskSpec

# As users of hindsight replay have them: no deviation counts as smaller, nothing lies farther out.
SMALLEST_DEVIATION = 0.01
FARTHEST = 5.0


class Normaliser(NamedTuple):
    """How many observations were seen, their mean, and the sum of squared distances from it.

    The mean is told from the first observation on: in float32 a mean far from 0 would stop moving
    after some hundred thousand steps. `twin` is, for a number of one of the two goals in an
    observation, where it stands in the other goal; for any other number it is its own place.
    """

    twin: Int[Array, " features"]
    seen: Float[Array, ""]
    first: Float[Array, " features"]
    mean: Float[Array, " features"]
    squares: Float[Array, " features"]


def init_normaliser(spec: TaskSpec) -> Normaliser:
    """Nothing seen yet."""
    places = np.arange(spec.features)
    rest = places[: spec.features - 2 * spec.goal_size]
    achieved, desired = np.split(places[len(rest) :], 2)
    zeros = jnp.zeros(spec.features)
    return Normaliser(
        twin=jnp.asarray(np.concatenate([rest, desired, achieved])),
        seen=jnp.zeros(()),
        first=zeros,
        mean=jnp.copy(zeros),
        squares=jnp.copy(zeros),
    )


def take_note(normaliser: Normaliser, observation: Float[Array, " features"]) -> Normaliser:
    """One more observation, and the same one with its goals exchanged.

    So both goals have one scale, which holds what will be relabelled too: what is achieved. The
    desired ones alone may be very few.
    """
    return _add(_add(normaliser, observation), observation[normaliser.twin])


def _add(normaliser: Normaliser, observation: Float[Array, " features"]) -> Normaliser:
    seen = normaliser.seen + 1
    first = jnp.where(normaliser.seen == 0, observation, normaliser.first)
    distance = observation - first - normaliser.mean
    mean = normaliser.mean + distance / seen
    squares = normaliser.squares + distance * (observation - first - mean)
    return Normaliser(normaliser.twin, seen, first, mean, squares)


def normalise(
    normaliser: Normaliser, observation: Float[Array, "*batch features"]
) -> Float[Array, "*batch features"]:
    """Observations as deviations from the mean, none of them extreme."""
    deviation = jnp.sqrt(normaliser.squares / jnp.maximum(normaliser.seen, 1.0))
    distance = observation - normaliser.first - normaliser.mean
    return jnp.clip(distance / jnp.maximum(deviation, SMALLEST_DEVIATION), -FARTHEST, FARTHEST)
