"""Environments side by side: rows with streams of their own, and flat observations."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from minigrid.core.world_object import Goal

from rewardshift.envs import four_rooms_id
from rewardshift.envs.minigrid import MAX_STEPS
from rewardshift.envs.tasks import TaskSpec
from rewardshift.envs.vector import Environments
from rewardshift.errors import InputError

GRID = "MiniGrid-Empty-Random-6x6-v0"
MULTI_ROOM = "MiniGrid-MultiRoom-N2-S4-v0"


@pytest.mark.parametrize("env", ["MountainCar-v0", GRID])
def test_a_row_does_not_depend_on_its_neighbours(env: str) -> None:
    together, alone = Environments(env, 3), Environments(env, 1)
    rng = np.random.default_rng(0)
    first = together.restart([7, 8, 9])
    np.testing.assert_array_equal(first[1:2], alone.restart([8]))
    for _ in range(250):
        actions = rng.integers(together.spec.num_actions, size=3)
        ours, theirs = together.step(actions), alone.step(actions[1:2])
        for field, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(field[1:2], other)
    again = together.restart([7, 8, 9])
    np.testing.assert_array_equal(first, again)
    together.close()
    alone.close()


def test_an_ended_row_goes_on_with_a_new_episode() -> None:
    envs = Environments("MountainCar-v0", 2)
    envs.restart([1, 2])
    for step in range(1, 401):
        result = envs.step(np.array([1, 1]))
        assert result.reward.tolist() == [-1.0, -1.0]
        ended = result.terminated | result.truncated
        assert ended.all() == ended.any() == (step % 200 == 0)
        same = (result.observation == result.next_observation).all()
        assert same == (not ended.any())
        if ended.any():
            assert (result.observation[:, 1] == 0).all()  # a new start has no velocity
    envs.close()


def test_observations_are_flat_and_keep_their_bytes() -> None:
    for env in (GRID, MULTI_ROOM, four_rooms_id(7)):
        assert Environments(env, 1).spec == TaskSpec(147, "uint8", 7, shape=(7, 7, 3))
    assert Environments("MountainCar-v0", 1).spec == TaskSpec(2, "float32", 3, shape=(2,))


def test_any_environment_of_the_users_own() -> None:
    envs = Environments(lambda: TimeLimit(gym.make("CartPole-v1").unwrapped, 5), 2)
    assert envs.spec == TaskSpec(4, "float32", 2, shape=(4,))
    assert envs.restart([0, 1]).shape == (2, 4)
    truncated = [envs.step(np.array([0, 1])).truncated.tolist() for _ in range(5)]
    assert truncated[-1] == [True, True]


class Endless(gym.Env[Any, Any]):
    """Observations of any length."""

    observation_space = gym.spaces.Sequence(gym.spaces.Discrete(2))
    action_space: gym.Space[Any] = gym.spaces.Discrete(2)


@pytest.mark.parametrize(
    ("env", "match"),
    [
        ("NoSuchCar-v0", "no environment 'NoSuchCar-v0'"),
        (Endless, "cannot be flattened into a fixed number of numbers"),
    ],
)
def test_what_cannot_be_trained_is_refused(env: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        Environments(env, 1)


@pytest.mark.parametrize("size", [7, 9])
def test_small_four_rooms_are_four_rooms(size: int) -> None:
    env: Any = gym.make(four_rooms_id(size)).unwrapped
    for seed in range(20):
        env.reset(seed=seed)
        middle = size // 2
        column = [env.grid.get(middle, y) is None for y in range(1, size - 1)]
        row = [env.grid.get(x, middle) is None for x in range(1, size - 1)]
        goal = sum(isinstance(cell, Goal) for cell in env.grid.grid)
        for line in (column, row):
            assert sum(line[: middle - 1]) <= 1 >= sum(line[middle:])
        assert goal == 1
        assert env.max_steps == MAX_STEPS
