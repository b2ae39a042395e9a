"""Running means and deviations that bring observations to a common scale."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rewardshift.agents.base import as_floats
from rewardshift.envs.tasks import TaskSpec

# Usual values with hindsight replay: the lower bound on a deviation, and the bound on the result.
SMALLEST_DEVIATION = 0.01
FARTHEST = 5.0


class Normaliser(NamedTuple):
    """The number of observations seen, their mean, and the sum of squared distances from it.

    The mean is relative to the first observation: in float32 a mean far from 0 would stop moving
    after some hundred thousand steps. `twin` maps the index of each number of a goal to the index
    of the same number in the other goal, and every other index to itself.
    """

    twin: Int[Array, " features"]
    seen: Float[Array, ""]
    first: Float[Array, " features"]
    mean: Float[Array, " features"]
    squares: Float[Array, " features"]


def init_normaliser(spec: TaskSpec) -> Normaliser:
    """A normaliser that has seen no observation."""
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


def see(normaliser: Normaliser | tuple[()], observation: Array) -> Float[Array, "*batch features"]:
    """Observations as the networks see them; the normaliser is empty if they are not scaled."""
    floats = as_floats(observation)
    return normalise(normaliser, floats) if isinstance(normaliser, Normaliser) else floats


def take_note(normaliser: Normaliser, observation: Float[Array, " features"]) -> Normaliser:
    """Adds an observation, and the same one with its goals exchanged.

    Both goals then share one scale, which covers relabelled goals too: these are achieved goals.
    There may be very few desired goals.
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
    """Observations in standard deviations from the mean, clipped."""
    deviation = jnp.sqrt(normaliser.squares / jnp.maximum(normaliser.seen, 1.0))
    distance = observation - normaliser.first - normaliser.mean
    return jnp.clip(distance / jnp.maximum(deviation, SMALLEST_DEVIATION), -FARTHEST, FARTHEST)
