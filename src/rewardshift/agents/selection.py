"""Selections: rules for the member, or the mix of members, that the policy follows.

A selection draws one member to lead for a while, by the members' progress (`Drawing`) or by a
memory of its own (`Learning`), or it mixes all members (`Mixing`). It is a frozen dataclass that
knows nothing about networks. Your own selection needs the methods of one of these protocols and
nothing else.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rewardshift.agents.bandits import ExponentialWeights, SlidingUCB, pick
from rewardshift.checks import Positive, Share, check


class Lead(NamedTuple):
    """The leading member, the time it has led, and what the selection knows of the members.

    `progress` is the return of the last episode that a member led minus that of the one it led
    before; 0 until there are two. `last_return` is NaN until there is one. An episode counts for
    the member that leads at its last step. `memory` is empty unless the selection is `Learning`.
    """

    leader: Int[Array, ""]
    steps: Int[Array, ""]
    episodes: Int[Array, ""]
    last_return: Float[Array, " member"]
    progress: Float[Array, " member"]
    memory: Any


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
class Learning(Protocol):
    """A selection that lets one member lead at a time, by a memory of its own.

    The memory is a tree of arrays, which is part of the agent's state.
    """

    def start(self, members: int) -> Any:
        """The memory before the first episode of so many members."""
        ...

    def learn(self, memory: Any, leader: Int[Array, ""], total: Float[Array, ""]) -> Any:
        """The memory after an episode.

        Args:
            memory: The memory before it.
            leader: The member that led at its last step.
            total: Its primal return.
        """
        ...

    def choose(self, memory: Any, draw: Float[Array, ""]) -> Int[Array, ""]:
        """The next leader, chosen by a random number in [0, 1)."""
        ...


@runtime_checkable
class Mixing(Protocol):
    """A selection that lets the policy follow all members at once."""

    def weights(self, shifts: tuple[float, ...]) -> Float[np.ndarray, " member"]:
        """The weight of each member in the mix.

        Args:
            shifts: Each member's bias, divided by its scale.
        """
        ...


Selection = Drawing | Learning | Mixing


@dataclass(frozen=True)
class Uniform:
    """Lets every member lead equally often: Random Reward Shift as in the paper."""

    def draw(self, progress: Float[Array, " member"], draw: Float[Array, ""]) -> Int[Array, ""]:
        """See `Drawing`."""
        return (draw * progress.shape[0]).astype(jnp.int32)


@dataclass(frozen=True)
class ProgressSoftmax:
    """Lets members with more recent progress lead more often.

    Args:
        temperature: The temperature, in standard deviations of the members' progress. A lower one
            is greedier.
    """

    temperature: Positive = 1.0

    def __post_init__(self) -> None:
        check(self)

    def draw(self, progress: Float[Array, " member"], draw: Float[Array, ""]) -> Int[Array, ""]:
        """See `Drawing`."""
        chances = jax.nn.softmax(progress / (progress.std() + 1e-6) / self.temperature)
        return pick(chances, draw)


@dataclass(frozen=True)
class ProgressArgmax:
    """Lets the member with the largest recent progress lead, and sometimes a random one.

    Args:
        epsilon: The probability of a random member.
    """

    epsilon: Share = 0.1

    def __post_init__(self) -> None:
        check(self)

    def draw(self, progress: Float[Array, " member"], draw: Float[Array, ""]) -> Int[Array, ""]:
        """See `Drawing`."""
        anyone = (draw / max(self.epsilon, 1e-9) * progress.shape[0]).astype(jnp.int32)
        return jnp.where(draw < self.epsilon, anyone, jnp.argmax(progress).astype(jnp.int32))


@dataclass(frozen=True)
class Optimistic:
    """Mixes the most cautious and the most optimistic member; see `optimistic_value`.

    Args:
        beta: The weight of the optimistic member.
    """

    beta: Share = 0.5

    def __post_init__(self) -> None:
        check(self)

    def weights(self, shifts: tuple[float, ...]) -> Float[np.ndarray, " member"]:
        """See `Mixing`."""
        weights = np.zeros(len(shifts), np.float32)
        weights[np.argmax(shifts)] += 1 - self.beta
        weights[np.argmin(shifts)] += self.beta
        return weights


@dataclass(frozen=True)
class Mean:
    """Mixes all members with equal weights."""

    def weights(self, shifts: tuple[float, ...]) -> Float[np.ndarray, " member"]:
        """See `Mixing`."""
        return np.full(len(shifts), 1 / len(shifts), np.float32)


# The selections that the command line knows by name.
SELECTIONS: dict[str, type[Any]] = {
    "uniform": Uniform,
    "progress-softmax": ProgressSoftmax,
    "progress-argmax": ProgressArgmax,
    "exponential-weights": ExponentialWeights,
    "sliding-ucb": SlidingUCB,
    "optimistic": Optimistic,
    "mean": Mean,
}


def first_lead(selection: Selection, members: int, draw: Float[Array, ""]) -> Lead:
    """The lead before the first episode: a random member leads."""
    zero, zeros = jnp.zeros((), jnp.int32), jnp.zeros(members)
    memory = selection.start(members) if isinstance(selection, Learning) else ()
    return Lead(Uniform().draw(zeros, draw), zero, zero, zeros + jnp.nan, zeros, memory)


def next_lead(
    lead: Lead,
    selection: Drawing | Learning,
    draw: Float[Array, ""],
    episode: tuple[Any, Any],
    least: tuple[int, int],
) -> Lead:
    """The lead after a step.

    Args:
        lead: The lead before the step.
        selection: The selection that draws the next leader.
        draw: A random number in [0, 1).
        episode: Whether the step ended an episode, and the episode's return so far.
        least: The minimum number of episodes and of steps that a member leads. With 0 episodes the
            next leader is drawn within an episode, as soon as the steps have passed.
    """
    ended, total = episode
    episodes, steps = least
    lead = _after_episode(lead, selection, total, ended)
    lead = lead._replace(steps=lead.steps + 1, episodes=lead.episodes + ended)
    due = (lead.steps >= steps) & (lead.episodes >= episodes)
    if episodes:
        due = due & ended
    if isinstance(selection, Learning):
        chosen = selection.choose(lead.memory, draw)
    else:
        chosen = selection.draw(lead.progress, draw)
    return lead._replace(
        leader=jnp.where(due, chosen, lead.leader),
        steps=jnp.where(due, 0, lead.steps),
        episodes=jnp.where(due, 0, lead.episodes),
    )


def _after_episode(lead: Lead, selection: Drawing | Learning, total: Any, ended: Any) -> Lead:
    """The lead with the members' progress and the memory after an episode, if one has ended."""
    led = ended & (jnp.arange(lead.progress.shape[0]) == lead.leader)
    memory = lead.memory
    if isinstance(selection, Learning):
        learned = selection.learn(memory, lead.leader, total)
        memory = jax.tree.map(partial(jnp.where, ended), learned, memory)
    return lead._replace(
        last_return=jnp.where(led, total, lead.last_return),
        progress=jnp.where(led, jnp.nan_to_num(total - lead.last_return), lead.progress),
        memory=memory,
    )
