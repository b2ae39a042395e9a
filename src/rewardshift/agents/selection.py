"""Which member leads: whose values the policy follows.

A selection either draws one member for a while (`Drawing`) or mixes them all (`Mixing`). It is a
frozen dataclass of its own few numbers and knows nothing about networks. One of your own needs the
method of one of the two protocols and nothing else.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rewardshift.checks import Positive, Share, check


class Lead(NamedTuple):
    """Who leads, since when, and what came of it.

    `progress` is by how much the last episode that a member led was better than the one it
    had led before; 0 until there are two. `last_return` is NaN until there is one. An episode
    counts for who leads at its last step.
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
        """The leader that a number in [0, 1) stands for.

        Args:
            progress: By how much the last episode of each member was better than the one before.
            draw: The number.
        """
        ...


@runtime_checkable
class Mixing(Protocol):
    """A selection that lets the policy follow all members at once."""

    def weights(self, shifts: tuple[float, ...]) -> Float[np.ndarray, " member"]:
        """How much the policy follows each member, by its bias."""
        ...


Selection = Drawing | Mixing


@dataclass(frozen=True)
class Uniform:
    """Any member, with equal chances: Random Reward Shift as the paper has it."""

    def draw(self, progress: Float[Array, " member"], draw: Float[Array, ""]) -> Int[Array, ""]:
        """The leader that a number in [0, 1) stands for."""
        return (draw * progress.shape[0]).astype(jnp.int32)


@dataclass(frozen=True)
class ProgressSoftmax:
    """Members with more recent progress, more often.

    Args:
        temperature: In standard deviations of the members' progress; the lower, the greedier.
    """

    temperature: Positive = 1.0

    def __post_init__(self) -> None:
        check(self)

    def draw(self, progress: Float[Array, " member"], draw: Float[Array, ""]) -> Int[Array, ""]:
        """The leader that a number in [0, 1) stands for."""
        chances = jax.nn.softmax(progress / (progress.std() + 1e-6) / self.temperature)
        return (draw >= jnp.cumsum(chances)[:-1]).sum().astype(jnp.int32)


@dataclass(frozen=True)
class ProgressArgmax:
    """The member with the most recent progress, and sometimes any.

    Args:
        epsilon: How often any.
    """

    epsilon: Share = 0.1

    def __post_init__(self) -> None:
        check(self)

    def draw(self, progress: Float[Array, " member"], draw: Float[Array, ""]) -> Int[Array, ""]:
        """The leader that a number in [0, 1) stands for."""
        anyone = (draw / max(self.epsilon, 1e-9) * progress.shape[0]).astype(jnp.int32)
        return jnp.where(draw < self.epsilon, anyone, jnp.argmax(progress).astype(jnp.int32))


@dataclass(frozen=True)
class Optimistic:
    """The mix of the most cautious and the most optimistic member, `optimistic_value`.

    Args:
        beta: How far to trust the optimistic one.
    """

    beta: Share = 0.5

    def __post_init__(self) -> None:
        check(self)

    def weights(self, shifts: tuple[float, ...]) -> Float[np.ndarray, " member"]:
        """How much the policy follows each member."""
        weights = np.zeros(len(shifts), np.float32)
        weights[np.argmax(shifts)] += 1 - self.beta
        weights[np.argmin(shifts)] += self.beta
        return weights


@dataclass(frozen=True)
class Mean:
    """All members alike."""

    def weights(self, shifts: tuple[float, ...]) -> Float[np.ndarray, " member"]:
        """How much the policy follows each member."""
        return np.full(len(shifts), 1 / len(shifts), np.float32)


# Those that the command line knows by name.
SELECTIONS: dict[str, type[Any]] = {
    "uniform": Uniform,
    "progress-softmax": ProgressSoftmax,
    "progress-argmax": ProgressArgmax,
    "optimistic": Optimistic,
    "mean": Mean,
}


def first_lead(members: int, draw: Float[Array, ""]) -> Lead:
    """Before the first episode: any member leads."""
    zero, zeros = jnp.zeros((), jnp.int32), jnp.zeros(members)
    return Lead(Uniform().draw(zeros, draw), zero, zero, zeros + jnp.nan, zeros)


def next_lead(
    lead: Lead,
    selection: Drawing,
    draw: Float[Array, ""],
    episode: tuple[Any, Any],
    least: tuple[int, int],
) -> Lead:
    """Who leads after a step.

    Args:
        lead: Who led through it.
        selection: Draws the next one when it is time.
        draw: A number in [0, 1).
        episode: Whether the step ended an episode, and the return so far.
        least: For how many episodes and steps a member leads at least. With 0 episodes the
            next one is drawn within an episode, as soon as the steps have passed.
    """
    ended, total = episode
    episodes, steps = least
    led = ended & (jnp.arange(lead.progress.shape[0]) == lead.leader)
    last_return = jnp.where(led, total, lead.last_return)
    progress = jnp.where(led, jnp.nan_to_num(total - lead.last_return), lead.progress)
    lead = lead._replace(
        steps=lead.steps + 1,
        episodes=lead.episodes + ended,
        last_return=last_return,
        progress=progress,
    )
    due = (lead.steps >= steps) & (lead.episodes >= episodes)
    if episodes:
        due = due & ended
    return lead._replace(
        leader=jnp.where(due, selection.draw(progress, draw), lead.leader),
        steps=jnp.where(due, 0, lead.steps),
        episodes=jnp.where(due, 0, lead.episodes),
    )
