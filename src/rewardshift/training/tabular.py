"""The training loop of tables: every run (task, method, seed) is a row of one compiled program."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from rewardshift.agents.tabular import (
    QLearning,
    TabularState,
    Transition,
    optimal_q,
)
from rewardshift.checks import Count, Settings
from rewardshift.envs.tabular import FiniteTask
from rewardshift.errors import InputError


@dataclass(frozen=True)
class TabularBudget(Settings):
    """The length of a training and its evaluations.

    Args:
        episodes: Training episodes. Epsilon falls linearly from 1 to 0 over them.
        evaluate_every: Episodes of a round. Each round ends with an evaluation.
        evaluation_episodes: Episodes of one evaluation, with the epsilon of that moment.
        evaluate_first: Whether each round begins with its evaluation instead. The count bonus
            also counts the choices of evaluations, so it depends on the order.
    """

    episodes: Count = 1000
    evaluate_every: Count = 10
    evaluation_episodes: Count = 50
    evaluate_first: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.episodes % self.evaluate_every:
            raise InputError(
                f"episodes must be a multiple of evaluate_every={self.evaluate_every},"
                f" got {self.episodes}"
            )

    def epsilon(self, episode: Array) -> Array:
        """The probability of a random action in the given episode."""
        return 1.0 - episode / self.episodes


class Curves(NamedTuple):
    """The curves of a run, with one value per evaluation.

    `episode` is the number of training episodes at the end of the evaluation's round. `success` is
    the share of evaluation episodes that ended at a goal, with a positive reward. `q_gap` is the
    distance of the learned table from the optimal one on the shifted scale, over all states but
    final ones, relative to the distance before training: 1 means that nothing is learned.
    """

    episode: Int[Array, "*run evaluation"]
    success: Float[Array, "*run evaluation"]
    q_gap: Float[Array, "*run evaluation"]


def train_tabular(
    agents: Sequence[QLearning],
    tasks: Sequence[FiniteTask],
    keys: Key[Array, " run"],
    budget: TabularBudget,
) -> Curves:
    """Trains agent `i` in task `i` with key `i`, all at once.

    A row's random numbers and results do not depend on the other rows.

    Args:
        agents: The agents. They may differ in their numbers, not in `terminal`.
        tasks: One for each agent, of one type and size.
        keys: One key for each agent.
        budget: The budget of every agent.

    Returns:
        The curves, with a leading axis over the rows.
    """
    targets = []
    for agent, task in zip(agents, tasks, strict=True):
        next_states, rewards, terminated = map(np.asarray, task.table())
        targets.append(optimal_q(next_states, rewards, terminated, agent.shift))
    stack = partial(jax.tree.map, lambda *leaves: jnp.stack([jnp.asarray(x) for x in leaves]))
    return _train_rows(
        stack(*agents), stack(*tasks), jnp.asarray(np.stack(targets), jnp.float32), keys, budget
    )


@partial(jax.jit, static_argnames="budget")
def _train_rows(
    agents: QLearning,
    tasks: FiniteTask,
    targets: Float[Array, "run state action"],
    keys: Key[Array, " run"],
    budget: TabularBudget,
) -> Curves:
    return jax.vmap(partial(_train, budget=budget))(agents, tasks, targets, keys)


def _train(
    agent: QLearning, task: FiniteTask, target: Array, key: PRNGKeyArray, *, budget: TabularBudget
) -> Curves:
    init_key, train_key, evaluation_key = jax.random.split(key, 3)
    state = agent.init(init_key, task.spec)

    def episode(state: TabularState, number: Array) -> tuple[TabularState, None]:
        episode_key = jax.random.fold_in(train_key, number)
        return _training_episode(agent, task, state, episode_key, budget.epsilon(number)), None

    def look(state: TabularState, index: Array, trained: Array) -> tuple[TabularState, Any]:
        round_key = jax.random.fold_in(evaluation_key, index)
        state, success = _evaluate(agent, task, state, round_key, budget.epsilon(trained), budget)
        learned = ~task.final()[:, None]
        distance = jnp.abs(state.q - target).sum(axis=1, where=learned)
        gap = distance.sum() / jnp.abs(target).sum(axis=1, where=learned).sum()
        return state, (success, gap)

    def one_round(state: TabularState, index: Array) -> tuple[TabularState, Curves]:
        first = index * budget.evaluate_every
        last = first + budget.evaluate_every
        if budget.evaluate_first:
            state, seen = look(state, index, first)
        state, _ = jax.lax.scan(episode, state, first + jnp.arange(budget.evaluate_every))
        if not budget.evaluate_first:
            state, seen = look(state, index, last)
        return state, Curves(last, *seen)

    rounds = jnp.arange(budget.episodes // budget.evaluate_every)
    _, curves = jax.lax.scan(one_round, state, rounds)
    return curves


def _training_episode(
    agent: QLearning, task: FiniteTask, state: TabularState, key: PRNGKeyArray, epsilon: Array
) -> TabularState:
    def step(
        carry: tuple[TabularState, Array, Array], key: PRNGKeyArray
    ) -> tuple[tuple[TabularState, Array, Array], None]:
        state, position, alive = carry
        action = agent.act(state, position, key, epsilon)
        next_position, reward, terminated = task.step(position, action)
        batch = Transition(position, action, reward, next_position, terminated, alive)
        state, _ = agent.update(state, batch, key)
        return (state, next_position, alive & ~terminated), None

    start = (state, jnp.asarray(task.start), jnp.asarray(True))
    (state, _, _), _ = jax.lax.scan(step, start, jax.random.split(key, task.horizon))
    return state


def _evaluate(
    agent: QLearning,
    task: FiniteTask,
    state: TabularState,
    key: PRNGKeyArray,
    epsilon: Array,
    budget: TabularBudget,
) -> tuple[TabularState, Array]:
    """Episodes side by side: they change only the counts, which acting ignores."""
    count = budget.evaluation_episodes

    def step(
        carry: tuple[TabularState, Array, Array, Array], key: PRNGKeyArray
    ) -> tuple[tuple[TabularState, Array, Array, Array], None]:
        state, positions, alive, won = carry
        act = jax.vmap(agent.act, in_axes=(None, 0, 0, None))
        actions = act(state, positions, jax.random.split(key, count), epsilon)
        state = agent.visit(state, positions, alive)
        positions, reward, terminated = jax.vmap(task.step)(positions, actions)
        won = won | (alive & terminated & (reward > 0))
        return (state, positions, alive & ~terminated, won), None

    start = (state, jnp.full(count, task.start), jnp.ones(count, bool), jnp.zeros(count, bool))
    (state, _, _, won), _ = jax.lax.scan(step, start, jax.random.split(key, task.horizon))
    return state, won.sum() / count
