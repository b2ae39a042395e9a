"""Deterministic tasks with finitely many states, which a compiled program can step."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from rewardshift.envs.deep_sea import DeepSea
from rewardshift.errors import InputError, needs

with needs("agents"):
    import jax
    import jax.numpy as jnp
    from jaxtyping import Array, Bool, Float, Int

# The next states, the rewards, and whether the episode ends: of one step, and of all.
Outcome = tuple[Int[Array, ""], Float[Array, ""], Bool[Array, ""]]
Outcomes = tuple[
    Int[Array, "state action"], Float[Array, "state action"], Bool[Array, "state action"]
]

SIDE = 20
HORIZON = 100
NUM_STATES = SIDE * SIDE
START = 0

# The order of the moves matters: an untrained agent chooses the first of equal values, so it
# walks down.
MOVES = ((1, 0), (0, 1), (-1, 0), (0, -1))  # down, right, up, left
NUM_ACTIONS = len(MOVES)


class TableSpec(NamedTuple):
    """The size of a task with finitely many states and actions."""

    num_states: int
    num_actions: int


class FiniteTask(ABC):
    """A deterministic task that a compiled program can step. It is a pytree.

    `start` is the first state of every episode, `horizon` the steps after which an episode is
    truncated. Of the functions, a task needs `table` alone; it may have a faster form of others.
    """

    start: Any
    horizon: int

    @abstractmethod
    def table(self) -> Outcomes:
        """`step` for every state and action."""

    @property
    def spec(self) -> TableSpec:
        """The numbers of states and actions."""
        return TableSpec(*self.table()[1].shape)

    def final(self) -> Bool[Array, " state"]:
        """The states in which an episode has ended, so that nothing is learned there."""
        next_state, _, terminated = self.table()
        return jnp.zeros(len(next_state), bool).at[next_state].max(terminated)

    def step(self, state: Int[Array, ""], action: Int[Array, ""]) -> Outcome:
        """The next state, the reward, and whether the episode ends in it."""
        next_state, reward, terminated = (column[state, action] for column in self.table())
        return next_state, reward, terminated


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Maze(FiniteTask):
    """The paper's maze: an empty 20 x 20 grid with one reward, at the goal.

    A state is ``row * 20 + column``, and the start is in the upper left corner. Walls stop the
    agent. Entering the goal pays 1 and ends the episode; everything else pays 0. An episode that
    has not ended after 100 steps is truncated.

    Args:
        goal: The goal's state. A traced value works, so mazes can be an axis.
    """

    goal: Any

    start = START
    horizon = HORIZON

    @classmethod
    def of_size(cls, size: int) -> "Maze":
        """The paper's "S n": the grid stays 20 x 20, the goal is at row and column n - 1.

        >>> Maze.of_size(20)
        Maze(goal=399)
        """
        if not 2 <= size <= SIDE:
            raise InputError(f"size must be from 2 to {SIDE}, got {size!r}")
        return cls(goal=(size - 1) * SIDE + size - 1)

    def step(self, state: Int[Array, ""], action: Int[Array, ""]) -> Outcome:
        """The next state, the reward, and whether the goal was entered."""
        row, column = jnp.divmod(state, SIDE)
        move = jnp.asarray(MOVES)[action]
        row = jnp.clip(row + move[0], 0, SIDE - 1)
        column = jnp.clip(column + move[1], 0, SIDE - 1)
        next_state = row * SIDE + column
        terminated = next_state == self.goal
        return next_state, terminated.astype(jnp.float32), terminated

    def table(self) -> Outcomes:
        """`step` for every state and action."""
        over_actions = jax.vmap(self.step, in_axes=(None, 0))
        over_states = jax.vmap(over_actions, in_axes=(0, None))
        return over_states(jnp.arange(NUM_STATES), jnp.arange(NUM_ACTIONS))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Table(FiniteTask):
    """A task given by what each action does in each state.

    Args:
        next_state, reward, terminated: The outcomes, `[state, action]`.
        start: The first state of every episode.
        horizon: The steps after which an episode is truncated.
    """

    next_state: Any
    reward: Any
    terminated: Any
    start: Any
    horizon: int = field(metadata={"static": True})

    def table(self) -> Outcomes:
        """`step` for every state and action."""
        return jnp.asarray(self.next_state), jnp.asarray(self.reward), jnp.asarray(self.terminated)


def deep_sea_table(size: int, mapping: int) -> Table:
    """The task `rewardshift/DeepSea-v0` as a table; its last state is the bottom of the sea.

    Args:
        size: As in `DeepSea`.
        mapping: As in `DeepSea`.
    """
    sea, places = DeepSea(size, mapping), size * size
    next_state = np.full((places + 1, 2), places, np.int32)
    reward = np.zeros((places + 1, 2), np.float32)
    for row, column, action in np.ndindex(size, size, 2):
        below, reward[row * size + column, action] = sea.move(row, column, action)
        if row + 1 < size:
            next_state[row * size + column, action] = (row + 1) * size + below
    terminated = next_state == places
    return Table(next_state, reward, terminated, start=0, horizon=size)


def toy_text_table(env: str, horizon: int, **settings: Any) -> Table:
    """A deterministic task of Gymnasium's toy text family as a table.

    Args:
        env: The registered environment.
        horizon: The steps after which an episode is truncated.
        **settings: Settings of the environment.
    """
    made = gym.make(env, **settings)
    start, _ = made.reset(seed=0)
    outcomes = made.unwrapped.P  # type: ignore[attr-defined]
    made.close()
    if any(len(rows) > 1 for state in outcomes.values() for rows in state.values()):
        raise InputError(f"{env} must be deterministic, got {settings}")
    rows = [[outcomes[s][a][0] for a in sorted(outcomes[s])] for s in sorted(outcomes)]
    columns = [np.array([[one[i] for one in row] for row in rows]) for i in (1, 2, 3)]
    next_state, reward, terminated = columns
    return Table(
        next_state.astype(np.int32), reward.astype(np.float32), terminated, int(start), horizon
    )
