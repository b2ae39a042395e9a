"""Selections: rules for the member, or the mix of members, that the policy follows.

A selection draws one member to lead for a while (`Drawing`), or it mixes all members (`Mixing`). It
is a frozen dataclass that knows nothing about networks. Your own selection needs the method of one
of these protocols and nothing else.

The selections here are those of https://arxiv.org/abs/2209.07288: `Uniform` is its Random Reward
Shift, the two that follow progress are the coaches in its authors' code, and `Optimistic` is its
equation for optimism in the face of uncertainty.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rewardshift.checks import Positive, Settings, Share


class Lead(NamedTuple):
    """The leading member, the time it has led, and the progress of all members.

    `progress` is the return of the last episode that a member led minus that of the one it led
    before; 0 until there are two. `last_return` is NaN until there is one. An episode counts for
    the member that leads at its last step.
    """

    leader: Int[Array, ""]
    steps: Int[Array, ""]
    episodes: Int[Array, ""]
    last_return: Float[Array, " member"]
    progress: Float[Array, " member"]


@runtime_checkable
class Drawing(Protocol):
    """A selection that lets one member lead at a time."""

    def draw(self, progress: Float[Array, " member"], draw: Float[Array, ""]) -> Int[Array, ""]:
        """The leader, chosen by a random number.

        Args:
            progress: Each member's progress; see `Lead`.
            draw: A random number in [0, 1).
        """
        ...


@runtime_checkable
class Mixing(Protocol):
    """A selection that lets the policy follow all members at once."""

    def weights(self, shifts: Float[Array, " member"]) -> Float[Array, " member"]:
        """The weight of each member in the mix.

        Args:
            shifts: Each member's bias, divided by its scale.
        """
        ...


Selection = Drawing | Mixing


@dataclass(frozen=True)
class Uniform:
    """Lets every member lead equally often: Random Reward Shift as in the paper."""

    def draw(self, progress: Float[Array, " member"], draw: Float[Array, ""]) -> Int[Array, ""]:
        """See `Drawing`."""
        return (draw * progress.shape[0]).astype(jnp.int32)


@dataclass(frozen=True)
class ProgressSoftmax(Settings):
    """Lets members with more recent progress lead more often.

    Args:
        temperature: The temperature, in standard deviations of the members' progress. A lower one
            is greedier.
    """

    temperature: Positive = 1.0

    def draw(self, progress: Float[Array, " member"], draw: Float[Array, ""]) -> Int[Array, ""]:
        """See `Drawing`."""
        # In standard deviations, so that a temperature means the same on every task.
        chances = jax.nn.softmax(progress / (progress.std() + 1e-6) / self.temperature)
        return (draw >= jnp.cumsum(chances)[:-1]).sum().astype(jnp.int32)


@dataclass(frozen=True)
class ProgressArgmax(Settings):
    """Lets the member with the largest recent progress lead, and sometimes a random one.

    Args:
        epsilon: The probability of a random member.
    """

    epsilon: Share = 0.1

    def draw(self, progress: Float[Array, " member"], draw: Float[Array, ""]) -> Int[Array, ""]:
        """See `Drawing`."""
        anyone = (draw / max(self.epsilon, 1e-9) * progress.shape[0]).astype(jnp.int32)
        return jnp.where(draw < self.epsilon, anyone, jnp.argmax(progress).astype(jnp.int32))


@dataclass(frozen=True)
class Optimistic(Settings):
    """Mixes the most cautious and the most optimistic member; see `optimistic_value`.

    Args:
        beta: The weight of the optimistic member.
    """

    beta: Share = 0.5

    def weights(self, shifts: Float[Array, " member"]) -> Float[Array, " member"]:
        """See `Mixing`."""
        nothing = jnp.zeros(shifts.shape[0])
        cautious = nothing.at[jnp.argmax(shifts)].add(1 - self.beta)
        return cautious.at[jnp.argmin(shifts)].add(self.beta)


# The selections that the command line knows by name.
SELECTIONS: dict[str, type[Any]] = {
    "uniform": Uniform,
    "progress-softmax": ProgressSoftmax,
    "progress-argmax": ProgressArgmax,
    "optimistic": Optimistic,
}
