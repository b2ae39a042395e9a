"""Running means and deviations that bring observations to a common scale.

As with hindsight experience replay in https://arxiv.org/abs/1707.01495, appendix A: inputs are
divided by their running deviation and clipped to +-5.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rewardshift.envs.tasks import TaskSpec

SMALLEST_DEVIATION = 0.01
FARTHEST = 5.0


class Normaliser(NamedTuple):
    """The number of observations seen, their mean, and the sum of squared distances from it.

    `twin` maps the index of each number of a goal to the index of the same number in the other
    goal, and every other index to itself.
    """

    twin: Int[Array, " features"]
    seen: Float[Array, ""]
    first: Float[Array, " features"]
    mean: Float[Array, " features"]
    squares: Float[Array, " features"]

    @classmethod
    def start(cls, spec: TaskSpec) -> "Normaliser":
        """A normaliser that has seen no observation."""
        places = np.arange(spec.features)
        rest = places[: spec.features - 2 * spec.goal_size]
        achieved, desired = np.split(places[len(rest) :], 2)
        twin = jnp.asarray(np.concatenate([rest, desired, achieved]))
        # An array for each field: XLA cannot reuse the memory of one that is given twice.
        first, mean, squares = (jnp.zeros(spec.features) for _ in range(3))
        return cls(twin, jnp.zeros(()), first, mean, squares)

    def add(self, observation: Float[Array, " features"]) -> "Normaliser":
        """Adds an observation, and the same one with its goals exchanged.

        Both goals then share one scale, which covers relabelled goals too: these are achieved
        goals. There may be very few desired goals.
        """
        return self._add(observation)._add(observation[self.twin])

    def _add(self, observation: Float[Array, " features"]) -> "Normaliser":
        """One step of Welford's algorithm.

        The mean is relative to the first observation: in float32 a mean far from 0 would stop
        moving after some hundred thousand steps.
        """
        seen = self.seen + 1
        first = jnp.where(self.seen == 0, observation, self.first)
        distance = observation - first - self.mean
        mean = self.mean + distance / seen
        squares = self.squares + distance * (observation - first - mean)
        return Normaliser(self.twin, seen, first, mean, squares)

    def scale(self, observation: Float[Array, "*batch features"]) -> Array:
        """Observations in standard deviations from the mean, clipped."""
        deviation = jnp.sqrt(self.squares / jnp.maximum(self.seen, 1.0))
        distance = observation - self.first - self.mean
        return jnp.clip(distance / jnp.maximum(deviation, SMALLEST_DEVIATION), -FARTHEST, FARTHEST)
