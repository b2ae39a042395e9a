"""DeepSea and the tables: the rules of the tasks, and a table beside the environment it is of."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift.agents.tabular import QLearning
from rewardshift.envs import DEEP_SEA
from rewardshift.envs.deep_sea import DeepSea
from rewardshift.envs.tabular import Maze, deep_sea_table, toy_text_table
from rewardshift.errors import InputError
from rewardshift.lab import FIGURES, Budget, Unit
from rewardshift.paper.tables import run_tables
from rewardshift.paper.terminal import TASKS
from rewardshift.shift import Shift
from rewardshift.training.tabular import TabularBudget, train_tabular


def dive(env: Any, size: int) -> tuple[list[float], int]:
    """The rewards of always steering right, and the number of steps."""
    observation, _ = env.reset(seed=0)
    paid, ended = [], False
    while not ended:
        row, column = divmod(int(observation.argmax()), size)
        action = env.unwrapped.right[row, column]
        observation, reward, ended, truncated, _ = env.step(action)
        paid.append(reward)
        assert not truncated
    return paid, len(paid)


@pytest.mark.parametrize("size", [2, 10, 50])
def test_the_treasure_is_at_the_end_of_the_right(size: int) -> None:
    paid, steps = dive(gym.make(DEEP_SEA, size=size, mapping=3), size)
    assert steps == size
    assert paid[:-1] == [pytest.approx(-0.01 / size)] * (size - 1)
    assert sum(paid) == pytest.approx(1 - 0.01)


def test_one_step_to_the_left_loses_the_treasure() -> None:
    size = 6
    for wrong in range(size):
        sea = DeepSea(size, mapping=1)
        sea.reset()
        total = 0.0
        for step in range(size):
            right = sea.right[sea.row, sea.column]
            _, reward, ended, _, _ = sea.step(1 - right if step == wrong else right)
            total += reward
        assert ended
        assert total == pytest.approx(-0.01 * (size - 1) / size)


def test_gymnasium_accepts_the_sea_and_the_mapping_differs() -> None:
    from gymnasium.utils.env_checker import check_env  # noqa: PLC0415

    check_env(gym.make(DEEP_SEA, size=4).unwrapped, skip_render_check=True)
    assert (DeepSea(10, 0).right != DeepSea(10, 1).right).any()
    assert (DeepSea(10, 1).right == DeepSea(10, 1).right).all()
    with pytest.raises(InputError, match="size must be 2 or more, got 1"):
        DeepSea(1)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 8), st.integers(0, 5), st.lists(st.integers(0, 1), min_size=8, max_size=8))
def test_the_table_is_the_sea(size: int, mapping: int, actions: list[int]) -> None:
    sea, table = DeepSea(size, mapping), deep_sea_table(size, mapping)
    sea.reset()
    state = table.start
    for action in actions[:size]:
        observation, reward, ended, _, _ = sea.step(action)
        state, paid, terminated = (
            x.item() for x in table.step(jnp.int32(state), jnp.int32(action))
        )
        assert (paid, terminated) == (pytest.approx(reward), ended)
        assert state == (size * size if ended else observation.argmax())
    assert np.flatnonzero(table.final()).tolist() == [size * size]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=30, max_size=30))
def test_the_table_is_the_lake(actions: list[int]) -> None:
    lake = gym.make("FrozenLake-v1", map_name="4x4", is_slippery=False)
    table = toy_text_table("FrozenLake-v1", 100, map_name="4x4", is_slippery=False)
    state, _ = lake.reset(seed=0)
    assert state == table.start
    for action in actions:
        expected, reward, ended, _, _ = lake.step(action)
        after = [x.item() for x in table.step(jnp.int32(state), jnp.int32(action))]
        assert after == [expected, reward, ended]
        state = expected
        if ended:
            break
    assert np.flatnonzero(table.final()).tolist() == [5, 7, 11, 12, 15]  # holes and the goal
    with pytest.raises(InputError, match="must be deterministic"):
        toy_text_table("FrozenLake-v1", 100, is_slippery=True)


def test_the_final_state_of_a_maze_is_its_goal() -> None:
    assert np.flatnonzero(Maze.of_size(5).final()).tolist() == [84]


def test_optimism_finds_the_treasure_that_chance_does_not() -> None:
    tasks = [deep_sea_table(8, seed) for seed in (0, 1)] * 2
    agents = [QLearning(Shift(bias, gamma=0.99, terminal="goal")) for bias in (0, 0, -0.01, -0.01)]
    keys = jax.random.split(jax.random.key(7), 4)
    budget = TabularBudget(episodes=300, evaluation_episodes=10)
    success = np.asarray(train_tabular(agents, tasks, keys, budget).success)[:, -1]
    assert success.tolist() == [0.0, 0.0, 1.0, 1.0]


def test_the_figure_gives_a_curve_for_every_method(tmp_path: Path) -> None:
    figure = FIGURES["terminal-treatment"]
    names = tuple(method.name for method in figure.methods)
    unit = Unit(("FrozenLake-4",), names, (3,), Budget(10, evaluations=1), "zero")
    assert sorted(curve.method for curve in run_tables(figure, unit, tmp_path)) == sorted(names)
    assert set(TASKS) == {panel.name for panel in figure.panels}
