"""Deterministic tasks with finitely many states, as tables that a compiled program can step."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np

from rewardshift.envs.deep_sea import DeepSea
from rewardshift.errors import InputError
from rewardshift.extras import needs

with needs("agents"):
    import jax
    import jax.numpy as jnp
    from jaxtyping import Array, Bool, Float, Int


class TableSpec(NamedTuple):
    """The size of a task with finitely many states and actions."""

    num_states: int
    num_actions: int


@runtime_checkable
class FiniteTask(Protocol):
    """A deterministic task that a compiled program can step. It is a pytree."""

    @property
    def spec(self) -> TableSpec:
        """The numbers of states and actions."""
        ...

    @property
    def start(self) -> Any:
        """The first state of every episode."""
        ...

    @property
    def horizon(self) -> int:
        """The steps after which an episode is truncated."""
        ...

    def final(self) -> Bool[Array, " state"]:
        """The states in which an episode has ended, so that nothing is learned there."""
        ...

    def step(
        self, state: Int[Array, ""], action: Int[Array, ""]
    ) -> tuple[Int[Array, ""], Float[Array, ""], Bool[Array, ""]]:
        """The next state, the reward, and whether the episode ends in it."""
        ...

    def table(
        self,
    ) -> tuple[
        Int[Array, "state action"], Float[Array, "state action"], Bool[Array, "state action"]
    ]:
        """`step` for every state and action."""
        ...


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Table:
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

    @property
    def spec(self) -> TableSpec:
        """See `FiniteTask`."""
        return TableSpec(*self.reward.shape[-2:])

    def final(self) -> Bool[Array, " state"]:
        """See `FiniteTask`."""
        next_state, _, terminated = self.table()
        return jnp.zeros(len(next_state), bool).at[next_state].max(terminated)

    def step(
        self, state: Int[Array, ""], action: Int[Array, ""]
    ) -> tuple[Int[Array, ""], Float[Array, ""], Bool[Array, ""]]:
        """See `FiniteTask`."""
        next_state, reward, terminated = (column[state, action] for column in self.table())
        return next_state, reward, terminated

    def table(
        self,
    ) -> tuple[
        Int[Array, "state action"], Float[Array, "state action"], Bool[Array, "state action"]
    ]:
        """See `FiniteTask`."""
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
