"""The paper's maze: an empty 20 x 20 grid with one reward, at the goal.

It consists of pure functions over integers, so that a whole training compiles into one program.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from rewardshift.envs.tables import TableSpec
from rewardshift.errors import InputError
from rewardshift.extras import needs

with needs("agents"):
    import jax
    import jax.numpy as jnp
    from jaxtyping import Array, Bool, Float, Int

SIDE = 20
HORIZON = 100
NUM_STATES = SIDE * SIDE
START = 0

# The order of the moves matters: an untrained agent chooses the first of equal values, so it
# walks down.
MOVES = ((1, 0), (0, 1), (-1, 0), (0, -1))  # down, right, up, left
NUM_ACTIONS = len(MOVES)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Maze:
    """A grid of states ``row * 20 + column``, with the start in the upper left corner.

    Walls stop the agent. Entering the goal pays 1 and ends the episode; everything else
    pays 0. An episode that has not ended after 100 steps is truncated.

    Args:
        goal: The goal's state. A traced value works, so mazes can be an axis.
    """

    goal: Any

    spec: ClassVar[TableSpec] = TableSpec(NUM_STATES, NUM_ACTIONS)
    start: ClassVar[int] = START
    horizon: ClassVar[int] = HORIZON

    def final(self) -> Bool[Array, " state"]:
        """See `FiniteTask`."""
        return jnp.arange(NUM_STATES) == self.goal

    @classmethod
    def of_size(cls, size: int) -> "Maze":
        """The paper's "S n": the grid stays 20 x 20, the goal is at row and column n - 1.

        >>> Maze.of_size(20)
        Maze(goal=399)
        """
        if not 2 <= size <= SIDE:
            raise InputError(f"size must be from 2 to {SIDE}, got {size!r}")
        return cls(goal=(size - 1) * SIDE + size - 1)

    def step(
        self, state: Int[Array, ""], action: Int[Array, ""]
    ) -> tuple[Int[Array, ""], Float[Array, ""], Bool[Array, ""]]:
        """The next state, the reward, and whether the goal was entered."""
        row, column = jnp.divmod(state, SIDE)
        move = jnp.asarray(MOVES)[action]
        row = jnp.clip(row + move[0], 0, SIDE - 1)
        column = jnp.clip(column + move[1], 0, SIDE - 1)
        next_state = row * SIDE + column
        terminated = next_state == self.goal
        return next_state, terminated.astype(jnp.float32), terminated

    def table(
        self,
    ) -> tuple[
        Int[Array, "state action"], Float[Array, "state action"], Bool[Array, "state action"]
    ]:
        """`step` for every state and action: the next states, the rewards and the terminations."""
        over_actions = jax.vmap(self.step, in_axes=(None, 0))
        over_states = jax.vmap(over_actions, in_axes=(0, None))
        return over_states(jnp.arange(NUM_STATES), jnp.arange(NUM_ACTIONS))
