"""The maze, the tabular agent and its training loop, against slow and plain counterparts."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rewardshift import Shift
from rewardshift.agents.tabular import QLearning, Transition, optimal_q
from rewardshift.envs.tabular import NUM_ACTIONS, NUM_STATES, SIDE, Maze, TableSpec
from rewardshift.paper.maze import COUNT, COUNT_SHIFT, EPSILON_GREEDY, FIGURE1, SHIFT
from rewardshift.training.tabular import TabularBudget, train_tabular

DOWN, RIGHT, UP, LEFT = range(4)
SMALL = TabularBudget(episodes=30, evaluate_every=10, evaluation_episodes=5)


def table_of(maze: Maze) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    next_states, rewards, terminated = (np.asarray(column) for column in maze.table())
    return next_states, rewards, terminated


@pytest.mark.parametrize("size", [2, 5, 20])
def test_the_goal_is_on_the_diagonal_and_ends_the_episode(size: int) -> None:
    maze = Maze.of_size(size)
    above = maze.goal - SIDE
    assert maze.goal == (size - 1) * (SIDE + 1)
    next_state, reward, terminated = maze.step(jnp.asarray(above), jnp.asarray(DOWN))
    assert (int(next_state), float(reward), bool(terminated)) == (maze.goal, 1.0, True)


def test_moves_go_down_right_up_left_and_walls_stop_them() -> None:
    next_states, rewards, terminated = table_of(Maze.of_size(20))
    assert next_states[0].tolist() == [SIDE, 1, 0, 0]
    assert next_states[5 * SIDE + 5].tolist() == [6 * SIDE + 5, 5 * SIDE + 6, 4 * SIDE + 5, 104]
    corner = NUM_STATES - 1
    assert next_states[corner, [DOWN, RIGHT]].tolist() == [corner, corner]
    assert next_states.shape == (NUM_STATES, NUM_ACTIONS)
    assert rewards.sum() == terminated.sum() == 4  # two ways in, and the walls of the corner


@pytest.mark.parametrize("size", [1, 21])
def test_a_maze_of_no_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"from 2 to 20, got {size}"):
        Maze.of_size(size)


def test_optimal_values_are_known_at_every_distance() -> None:
    maze = Maze.of_size(20)
    rows, columns = np.divmod(np.arange(NUM_STATES), SIDE)
    distance = 38 - rows - columns
    steps = np.where(distance > 0, distance, 2)  # the goal itself: out and in is not needed
    plain = optimal_q(*table_of(maze), Shift(0.0, gamma=0.99)).max(axis=1)
    away = distance > 0
    np.testing.assert_allclose(plain[away], 0.99 ** (steps[away] - 1), rtol=1e-9)
    zero = optimal_q(*table_of(maze), Shift(-0.02, gamma=0.99)).max(axis=1)
    paid = -0.02 * (1 - 0.99**steps) / 0.01
    np.testing.assert_allclose(zero[away], (plain + paid)[away], rtol=1e-9)
    absorbing = Shift(-0.02, gamma=0.99, terminal="absorbing")
    exact = optimal_q(*table_of(maze), absorbing)
    primal = optimal_q(*table_of(maze), Shift(0.0, gamma=0.99))
    np.testing.assert_allclose(exact, absorbing.from_primal(primal), atol=1e-9)


def test_a_positive_shift_with_zero_never_wants_to_arrive() -> None:
    q = optimal_q(*table_of(Maze.of_size(2)), Shift(1.0, gamma=0.9))
    np.testing.assert_allclose(q.max(axis=1)[0], 10.0, rtol=1e-9)
    assert q[SIDE].argmax() != RIGHT  # the way into the goal


KEY = jax.random.key(0)


def test_one_update_by_hand() -> None:
    agent = QLearning(Shift(-0.5, gamma=0.9), bonus=0.3, learning_rate=0.5)
    state = agent.init(KEY, TableSpec(3, 2))
    state = state._replace(q=state.q.at[1].set(jnp.array([2.0, 4.0])).at[0, 0].set(1.0))
    step = {"state": 0, "action": 0, "reward": 1.0, "next_state": 1, "terminated": False}
    arrays = {name: jnp.asarray(value) for name, value in (step | {"valid": True}).items()}
    state, metrics = agent.update(state, Transition(**arrays), KEY)
    target = 1.0 + 0.3 / 2 - 0.5 + 0.9 * 4.0
    assert state.q[0, 0] == pytest.approx(0.5 * 1.0 + 0.5 * target)
    assert metrics["td_error"] == pytest.approx(target - 1.0)
    assert state.visits.tolist() == [1, 0, 0]


def test_ties_go_to_the_first_and_exploration_is_uniform() -> None:
    agent = QLearning(Shift(0.0, gamma=0.9))
    state = agent.init(KEY, TableSpec(1, 4))
    act = jax.vmap(agent.act, in_axes=(None, None, 0, None))
    keys = jax.random.split(KEY, 4000)
    assert set(act(state, jnp.asarray(0), keys, 0.0).tolist()) == {0}
    counts = np.bincount(act(state, jnp.asarray(0), keys, 1.0), minlength=4)
    assert counts.min() > 900
    explored = act(state, jnp.asarray(0), keys, 0.4)
    assert np.mean(np.asarray(explored) > 0) == pytest.approx(0.3, abs=0.03)


class PlainTraining:
    """The same training, one plain step after the other; only the actions are the agent's."""

    def __init__(self, agent: QLearning, maze: Maze, key: jax.Array, budget: TabularBudget) -> None:
        self.agent, self.goal, self.budget = agent, maze.goal, budget
        _, self.train_key, self.evaluation_key = jax.random.split(key, 3)
        self.next_states, self.rewards, self.ends = table_of(maze)
        self.target = optimal_q(self.next_states, self.rewards, self.ends, agent.shift)
        self.q = np.zeros((NUM_STATES, NUM_ACTIONS), np.float32)
        self.visits = np.zeros(NUM_STATES, int)
        self.act = jax.jit(agent.act)
        self.success: list[float] = []
        self.gap: list[float] = []

    def run(self) -> None:
        every = self.budget.evaluate_every
        for index in range(self.budget.episodes // every):
            first, last = index * every, (index + 1) * every
            if self.budget.evaluate_first:
                self.evaluate(index, first)
            for episode in range(first, last):
                self.train(episode)
            if not self.budget.evaluate_first:
                self.evaluate(index, last)

    def choose(self, position: int, key: jax.Array, trained: int) -> int:
        self.visits[position] += 1
        fresh = self.agent.init(key, TableSpec(NUM_STATES, NUM_ACTIONS))
        state, epsilon = fresh._replace(q=jnp.asarray(self.q)), 1 - trained / self.budget.episodes
        return int(self.act(state, jnp.asarray(position), key, epsilon))

    def evaluate(self, index: int, trained: int) -> None:
        keys = jax.random.split(jax.random.fold_in(self.evaluation_key, index), 100)
        count = self.budget.evaluation_episodes
        won = [
            self.wins([jax.random.split(k, count)[i] for k in keys], trained) for i in range(count)
        ]
        self.success.append(float(np.mean(won)))
        away = np.arange(NUM_STATES) != self.goal
        distance = np.abs(self.q - self.target)[away].sum()
        self.gap.append(float(distance / np.abs(self.target)[away].sum()))

    def wins(self, keys: list[jax.Array], trained: int) -> bool:
        position = 0
        for key in keys:
            action = self.choose(position, key, trained)
            if self.ends[position, action]:
                return True
            position = self.next_states[position, action]
        return False

    def train(self, episode: int) -> None:
        position = 0
        for key in jax.random.split(jax.random.fold_in(self.train_key, episode), 100):
            action = self.choose(position, key, episode)
            following, end = self.next_states[position, action], self.ends[position, action]
            bonus = self.agent.bonus / (self.visits[position] + 1)
            reward = self.rewards[position, action] + bonus
            self.q[position, action] = self.agent.shift.reward(reward, end) + 0.99 * (
                0.0 if end else self.q[following].max()
            )
            position = following
            if end:
                break


@pytest.mark.parametrize(("terminal", "first"), [("zero", False), ("absorbing", True)])
def test_the_compiled_loop_does_what_the_plain_one_does(terminal: Any, first: bool) -> None:
    budget = TabularBudget(6, evaluate_every=3, evaluation_episodes=2, evaluate_first=first)
    method = COUNT_SHIFT.agent.agent
    agent = replace(method, shift=replace(method.shift, terminal=terminal))
    keys = jax.random.split(jax.random.key(7), 2)
    mazes = [Maze.of_size(2), Maze.of_size(4)]
    curves = train_tabular([agent, agent], mazes, keys, budget)
    for row in range(2):
        plain = PlainTraining(agent, mazes[row], keys[row], budget)
        plain.run()
        np.testing.assert_array_equal(curves.success[row], np.array(plain.success, np.float32))
        np.testing.assert_allclose(curves.q_gap[row], plain.gap, rtol=1e-4)


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    agents = [method.agent.agent for method in (EPSILON_GREEDY, COUNT, SHIFT)]
    keys = jax.random.split(jax.random.key(1), 3)
    together = train_tabular(agents, [Maze.of_size(3)] * 3, keys, SMALL)
    alone = train_tabular(agents[1:2], [Maze.of_size(3)], keys[1:2], SMALL)
    np.testing.assert_array_equal(together.success[1], alone.success[0])
    np.testing.assert_allclose(together.q_gap[1], alone.q_gap[0], rtol=1e-6)  # a rounded sum


def test_each_round_ends_or_begins_with_its_evaluation() -> None:
    what = ([EPSILON_GREEDY.agent.agent], [Maze.of_size(2)], jax.random.split(KEY, 1))
    curves = train_tabular(*what, SMALL)
    first = train_tabular(*what, replace(SMALL, evaluate_first=True))
    assert curves.episode[0].tolist() == first.episode[0].tolist() == [10, 20, 30]
    assert first.q_gap[0, 0] == 1  # nothing is learned yet, whatever the shift
    # The table does not depend on when it is looked at: only counts do.
    np.testing.assert_array_equal(first.q_gap[0, 1:], curves.q_gap[0, :-1])
    successes = np.asarray(curves.success) * SMALL.evaluation_episodes
    np.testing.assert_array_equal(successes, successes.round())


def test_the_gap_is_the_same_on_every_scale() -> None:
    doubled = replace(SHIFT.agent.agent, shift=Shift(-0.04, 2.0, 0.99))
    keys = jax.random.split(jax.random.key(1), 1)
    ours = train_tabular([SHIFT.agent.agent], [Maze.of_size(3)], keys, SMALL)
    theirs = train_tabular([doubled], [Maze.of_size(3)], keys, SMALL)
    np.testing.assert_allclose(ours.q_gap, theirs.q_gap, rtol=1e-5)


def test_a_bad_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="got 25"):
        TabularBudget(episodes=25, evaluate_every=10)


def test_the_methods_have_the_papers_constants() -> None:
    agents = [method.agent.agent for method in (EPSILON_GREEDY, COUNT, SHIFT, COUNT_SHIFT)]
    assert [agent.shift.bias for agent in agents] == [0.0, 0.0, -0.02, -0.02]
    assert [agent.bonus for agent in agents] == [0.0, 0.1, 0.0, 0.1]
    assert {agent.shift.gamma for agent in agents} == {0.99}
    assert {agent.learning_rate for agent in agents} == {1.0}
    assert TabularBudget() == TabularBudget(1000, 10, 50)
    assert FIGURE1.presets["paper"].seeds == 10


def test_a_shift_finds_the_far_corner_and_epsilon_greedy_does_not() -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    agents = [method.agent.agent for method in (EPSILON_GREEDY, COUNT, SHIFT)]
    curves = train_tabular(agents, [Maze.of_size(20)] * 3, keys, TabularBudget())
    epsilon_greedy, count, shift = np.asarray(curves.success).mean(axis=1)
    assert epsilon_greedy < 0.05 < count < shift


def test_optimal_values_of_large_rewards_are_found_too() -> None:
    swap, none = np.array([[1], [0]]), np.zeros((2, 1), bool)
    for size in (1e2, 1e4, 1e6):
        rewards = np.array([[size], [-size / 0.99 * 0.99]])
        q = optimal_q(swap, rewards, none, Shift(0.0, gamma=0.99))
        np.testing.assert_allclose(q, rewards + 0.99 * q[::-1], rtol=1e-9)
    with pytest.raises(ValueError, match="gamma=None"):
        optimal_q(swap, rewards, none, Shift(0.0))
