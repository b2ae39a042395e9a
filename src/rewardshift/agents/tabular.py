"""Tabular Q-learning with a shift and a count bonus, and the exact optimal values.

Q-learning as by Watkins and Dayan (1992), with the settings of the maze in
https://arxiv.org/abs/2209.07288: a learning rate of 1, and a bonus of `0.1 / (N(s) + 1)`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from rewardshift.envs.tabular import TableSpec
from rewardshift.errors import InputError
from rewardshift.shift import Shift


class Transition(NamedTuple):
    """One step of the environment, with its primal reward.

    `valid` is False for the padding after an episode's end: nothing is learned from it.
    """

    state: Int[Array, ""]
    action: Int[Array, ""]
    reward: Float[Array, ""]
    next_state: Int[Array, ""]
    terminated: Bool[Array, ""]
    valid: Bool[Array, ""]


class TabularState(NamedTuple):
    """The state of a `QLearning` agent."""

    q: Float[Array, "state action"]
    visits: Int[Array, " state"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class QLearning:
    """Q-learning on a table that starts at zero.

    It is a pytree whose numbers may be arrays, so that methods can be an axis: epsilon-greedy,
    the count bonus, a shift and their combination differ in two numbers only.

    Args:
        shift: The shift of the rewards; its `gamma` is the agent's discount.
        bonus: The weight of the count bonus `bonus / (N(s) + 1)`. `N(s)` counts every
            action chosen in the state, including the present one and those of evaluations.
        learning_rate: The share by which a value moves to its target; 1 replaces the value.
    """

    shift: Shift
    bonus: Any = 0.0
    learning_rate: Any = 1.0

    def init(self, key: PRNGKeyArray, spec: TableSpec) -> TabularState:
        """A table of zeros: nothing in it is random."""
        return TabularState(
            q=jnp.zeros((spec.num_states, spec.num_actions)),
            visits=jnp.zeros(spec.num_states, dtype=jnp.int32),
        )

    def act(
        self, state: TabularState, observation: Int[Array, ""], key: PRNGKeyArray, explore: Any
    ) -> Int[Array, ""]:
        """The best action, or the first of several; with probability `explore` a random one."""
        values = state.q[observation]
        roll, pick = jax.random.uniform(key, (2,))
        random_action = (pick * values.size).astype(jnp.int32)
        return jnp.where(roll < explore, random_action, jnp.argmax(values))

    def visit(
        self,
        state: TabularState,
        observation: Int[Array, "*episode"],
        valid: Bool[Array, "*episode"],
    ) -> TabularState:
        """Counts the valid action choices, without learning from them."""
        return state._replace(visits=state.visits.at[observation].add(valid))

    def update(
        self, state: TabularState, batch: Transition, key: PRNGKeyArray
    ) -> tuple[TabularState, dict[str, Float[Array, ""]]]:
        """One step of Q-learning towards the shifted target."""
        state = self.visit(state, batch.state, batch.valid)
        bonus = self.bonus / (state.visits[batch.state] + 1)
        bootstrap = jnp.where(batch.terminated, 0.0, state.q[batch.next_state].max())
        target = (
            self.shift.reward(batch.reward + bonus, batch.terminated) + self.shift.gamma * bootstrap
        )
        old = state.q[batch.state, batch.action]
        # This form gives the exact target at a learning rate of 1, so that equal targets stay
        # ties.
        new = (1 - self.learning_rate) * old + self.learning_rate * target
        q = state.q.at[batch.state, batch.action].set(jnp.where(batch.valid, new, old))
        return state._replace(q=q), {"td_error": target - old}


def optimal_q(
    next_states: Int[np.ndarray, "state action"],
    rewards: Float[np.ndarray, "state action"],
    terminated: Bool[np.ndarray, "state action"],
    shift: Shift,
) -> Float[np.ndarray, "state action"]:
    """The optimal values of a deterministic task, on the shifted scale.

    Value iteration in float64, until no value moves by more than 1e-12 of the largest.

    Args:
        next_states, rewards, terminated: The task's table, with primal rewards.
        shift: The agent's shift, with any treatment of terminal states.
    """
    if shift.gamma is None:
        raise InputError("the optimal values need the discount, got gamma=None")
    shifted = shift.reward(rewards.astype(np.float64), terminated)
    q = np.zeros_like(shifted)
    while True:
        following = np.where(terminated, 0.0, q.max(axis=1)[next_states])
        new = shifted + shift.gamma * following
        if np.abs(new - q).max() <= 1e-12 * np.abs(new).max():
            return new
        q = new
