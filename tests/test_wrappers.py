"""The wrappers, on real environments, in all of Gymnasium's autoreset modes."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import gymnasium_robotics  # noqa: F401  registers the Fetch and maze tasks
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers import (
    Autoreset,
    PassiveEnvChecker,
    RecordEpisodeStatistics,
    TimeLimit,
    TransformReward,
)
from probes import short_cartpole

from rewardshift import Shift, ShiftReward, VectorShiftReward

EXACT = Shift(-0.5, scale=2.0, gamma=0.9, terminal="absorbing")

# Processes of their own, as Gymnasium has them, but not forked: JAX does not survive that.
spawned = partial(AsyncVectorEnv, context="spawn")


def test_rewards_are_shifted_and_the_primal_ones_kept() -> None:
    env, twin = ShiftReward(short_cartpole(), EXACT), short_cartpole()
    env.reset(seed=3), twin.reset(seed=3)
    terminated = truncated = False
    while not (terminated or truncated):
        observation, reward, terminated, truncated, info = env.step(1)
        expected, primal, *ends, _ = twin.step(1)
        np.testing.assert_array_equal(observation, expected)
        assert info["primal_reward"] == primal
        assert reward == EXACT.reward(float(primal), terminated)
        assert ends == [terminated, truncated]
    assert terminated


def test_truncation_is_not_termination() -> None:
    env = ShiftReward(TimeLimit(gym.make("MountainCar-v0").unwrapped, 2), EXACT)
    env.reset(seed=0)
    env.step(0)
    _, reward, terminated, truncated, _ = env.step(0)
    assert (terminated, truncated) == (False, True)
    assert reward == EXACT.reward(-1.0)


def test_the_wrapped_environment_passes_gymnasiums_own_checks() -> None:
    env = PassiveEnvChecker(ShiftReward(gym.make("MountainCar-v0").unwrapped, EXACT))
    env.reset(seed=0)
    for _ in range(3):  # a complaint is a warning, and a warning fails
        env.step(env.action_space.sample())
    assert "ShiftReward" in str(env)


@pytest.mark.parametrize(
    "shift", [-0.5, np.float32(-0.5), np.int64(1), EXACT, dataclasses.asdict(EXACT)]
)
def test_the_spec_survives_json(shift: Any) -> None:
    env = ShiftReward(gym.make("MountainCar-v0"), shift)
    assert env.spec is not None
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(again, ShiftReward)
    assert again.shift == env.shift
    same = gym.make(env.spec)
    assert isinstance(same, ShiftReward)
    assert same.shift == env.shift


def test_statistics_inside_stay_primal() -> None:
    env = ShiftReward(RecordEpisodeStatistics(short_cartpole()), -10.0)
    env.reset(seed=1)
    steps, done = 0, False
    while not done:
        *_, terminated, truncated, info = env.step(0)
        steps, done = steps + 1, terminated or truncated
    assert info["episode"]["r"] == steps


@pytest.mark.parametrize("between", [lambda e: e, lambda e: TransformReward(e, lambda r: r)])
def test_a_shift_on_a_shift_is_refused(between: Callable[[Any], Any]) -> None:
    shifted = between(ShiftReward(gym.make("CartPole-v1"), -0.5))
    with pytest.raises(ValueError, match=r"shifted already, by Shift\(bias=-0\.5"):
        ShiftReward(shifted, -0.5)


@pytest.mark.parametrize("vectorise", [SyncVectorEnv, spawned])
def test_a_shift_on_a_vector_of_shifts_is_refused(vectorise: Any) -> None:
    envs = vectorise([lambda: ShiftReward(gym.make("CartPole-v1"), -0.5)] * 2)
    with pytest.raises(ValueError, match="shifted already"):
        VectorShiftReward(envs, -0.5)
    envs.close()
    once = VectorShiftReward(SyncVectorEnv([short_cartpole]), -0.5)
    with pytest.raises(ValueError, match="shifted already"):
        VectorShiftReward(once, -0.5)


@pytest.mark.parametrize(
    ("shift", "error", "match"),
    [
        (Shift(np.array([0.0, 1.0])), ValueError, "one bias"),
        (Shift(0.0, gamma=np.array([0.9, 0.8]), terminal="absorbing"), ValueError, "one gamma"),
        ({"bias": 1.0, "offset": 2}, ValueError, "offset"),
    ],
)
def test_a_bad_shift_is_refused(shift: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        ShiftReward(gym.make("CartPole-v1"), shift)
    with pytest.raises(error, match=match):
        VectorShiftReward(SyncVectorEnv([short_cartpole]), shift)


# --- goal environments ---------------------------------------------------------------------


def test_a_goal_environments_compute_reward_is_shifted_alike() -> None:
    env = ShiftReward(gym.make("FetchReach-v4"), 1.0)
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(5):
        observation, reward, *_, info = env.step(env.action_space.sample())
        goals = observation["achieved_goal"], observation["desired_goal"]
        assert env.compute_reward(*goals, info) == reward
        assert (
            TransformReward(env, float).get_wrapper_attr("compute_reward")(*goals, info) == reward
        )
    batch = np.repeat(goals[0][None], 4, axis=0)
    np.testing.assert_array_equal(env.compute_reward(batch, batch, [info] * 4), np.ones(4))
    assert env.unwrapped.compute_reward(goals[0], goals[0], info) == 0  # type: ignore[attr-defined]
    env.close()


def test_absorbing_asks_which_relabelled_transitions_are_terminal() -> None:
    env = ShiftReward(gym.make("PointMaze_UMaze-v3", continuing_task=False), EXACT)
    env.reset(seed=0)
    goals = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    desired = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    ends = np.array([True, False, True])
    expected = EXACT.reward(ends.astype(float), ends)
    np.testing.assert_array_equal(env.compute_reward(goals, desired, [{}] * 3), expected)
    np.testing.assert_array_equal(env.compute_reward(goals, desired, {}), expected)
    assert env.compute_reward(goals[0], desired[0], {}) == expected[0]
    env.close()


def test_an_environment_without_goals_gets_none() -> None:
    env = ShiftReward(gym.make("CartPole-v1"), 1.0)
    assert not hasattr(env, "compute_reward")
    assert not env.has_wrapper_attr("compute_reward")


class GoalWithoutEnd(gym.Wrapper[Any, Any, Any, Any]):
    def compute_reward(self, achieved: Any, desired: Any, info: Any) -> float:
        return 0.0


def test_absorbing_needs_compute_terminated() -> None:
    env = GoalWithoutEnd(gym.make("CartPole-v1"))
    assert ShiftReward(env, 1.0).compute_reward(0, 0, {}) == 1.0
    with pytest.raises(ValueError, match="no compute_terminated"):
        ShiftReward(env, EXACT)


def test_a_shift_stays_as_it_was_given() -> None:
    """Changed on the way, it would be another for relabelled transitions than for real ones."""
    for shifted in (
        ShiftReward(gym.make("CartPole-v1"), -0.5),
        VectorShiftReward(SyncVectorEnv([short_cartpole]), -0.5),
    ):
        with pytest.raises(AttributeError):
            shifted.shift = Shift(1.0)  # type: ignore[misc]


def test_a_step_that_only_resets_is_not_shifted() -> None:
    made = gym.make("CartPole-v1").unwrapped
    with pytest.raises(ValueError, match=r"inside: Autoreset\(ShiftReward\(env, ...\)\)"):
        ShiftReward(TimeLimit(Autoreset(made), 9), -0.5)
    env = Autoreset(ShiftReward(TimeLimit(made, 2), -0.5))
    env.reset(seed=0)
    assert [env.step(0)[1] for _ in range(4)] == [0.5, 0.5, 0.0, 0.5]


# --- ends that a shift favours -------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "bias", "words"),
    [
        ("FrozenLake-v1", -0.5, r"reward 0, .*to end episodes.*gamma=\.\.\., terminal='goal'"),
        ("CartPole-v1", 0.5, r"reward 1, .*to avoid this end.*gamma=\.\.\., terminal='absorbing'"),
    ],
)
@pytest.mark.parametrize("vector", [False, True])
def test_an_end_that_the_shift_favours_is_told_once(
    task: str, bias: float, words: str, vector: bool
) -> None:
    def run(**settings: Any) -> None:
        env: Any = (
            VectorShiftReward(gym.make_vec(task, num_envs=2), bias, **settings)
            if vector
            else Autoreset(ShiftReward(gym.make(task), bias, **settings))
        )
        env.reset(seed=0)
        env.action_space.seed(0)
        for _ in range(200):
            env.step(env.action_space.sample())

    with pytest.warns(UserWarning, match=words) as told:
        run()
    assert len(told) == 1
    run(warn=False)  # a warning fails


@pytest.mark.parametrize(
    ("task", "shift"),
    [
        ("FrozenLake-v1", 0.5),
        ("FrozenLake-v1", 0.0),
        ("FrozenLake-v1", Shift(-0.5, gamma=0.9, terminal="goal")),
        ("CartPole-v1", -0.5),
        ("Pendulum-v1", -0.5),  # never terminates
    ],
)
def test_other_ends_are_not_told(task: str, shift: Any) -> None:
    env = Autoreset(ShiftReward(gym.make(task), shift))
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(250):
        env.step(env.action_space.sample())


@pytest.mark.parametrize("value", [True, np.True_, Shift])
def test_a_truth_value_is_no_shift(value: Any) -> None:
    with pytest.raises(ValueError, match="number"):
        ShiftReward(gym.make("CartPole-v1"), value)
    with pytest.raises(ValueError, match="warn must be"):
        ShiftReward(gym.make("CartPole-v1"), 1.0, warn="yes")  # type: ignore[arg-type]
