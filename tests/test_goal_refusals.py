"""Goal tasks that hindsight cannot work with, and what is said of them."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from rewardshift import DQN, RND, TD3, Hindsight, OnlineBudget, train
from rewardshift.agents.networks import MLP
from rewardshift.envs import BIT_FLIP
from rewardshift.envs.goals import BitFlip, goal_reward, probe_goals
from rewardshift.errors import InputError, TrainingError
from rewardshift.training import evaluation

BITS = DQN(network=MLP((8,)), batch_size=2)
REACH = TD3(reward_range=(-1.0, 0.0))
PLAIN = OnlineBudget(steps=160, capacity=160, evaluate_every=80, evaluation_episodes=1)
TINY = replace(PLAIN, hindsight=Hindsight())
ENDING = replace(PLAIN, hindsight=Hindsight(success_ends=True))


class Strange(BitFlip):
    """Bits with something wrong."""

    def __init__(self, wrong: str) -> None:
        super().__init__(3)
        self.wrong = wrong
        spaces: Any = self.observation_space
        if wrong == "shapes":
            spaces["desired_goal"] = gym.spaces.MultiBinary(2)

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        reward = super().compute_reward(achieved_goal, desired_goal, info)
        match self.wrong:
            case "single":
                return float(reward)
            case "sum":
                return reward.sum()
            case "another" if reward.ndim:
                return reward - 1
        return reward


class Mute(BitFlip):
    """Bits that do not say what a goal pays."""

    def __getattribute__(self, name: str) -> Any:
        if name == "compute_reward":
            raise AttributeError(name)
        return super().__getattribute__(name)

    def step(self, action: Any) -> Any:
        return self._observe(), 0.0, False, True, {}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        ("CartPole-v1", "hindsight needs observations that are a Dict of observation, achieved"),
        (partial(Strange, "shapes"), r"the same shape; in .* they have \(3,\) and \(2,\)"),
        (partial(Strange, "single"), "must take goals in batches, .* it raised TypeError"),
        (partial(Strange, "sum"), r"for 50 it gave the shape \(\)"),
        (partial(Strange, "another"), "says -2 where a step paid -1"),
        (Mute, "hindsight needs an environment with compute_reward; .* has none"),
    ],
)
def test_what_cannot_be_relabelled_is_refused(make: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        train(BITS, make, budget=ENDING, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_range_that_the_rewards_leave_is_refused() -> None:
    shifted = replace(REACH, shift=1.0, reward_range=(0.0, 1.0))
    with pytest.raises(InputError, match="before any shift, -1 to 0 and maybe more; got 0 to 1"):
        train(shifted, "FetchReach-v4", budget=TINY)


def test_a_wrapper_that_changes_the_rewards_of_steps_alone_is_refused() -> None:
    def tenfold() -> Any:
        return gym.wrappers.TransformReward(BitFlip(3), lambda reward: 10 * float(reward))

    with pytest.raises(InputError, match="TransformReward changes the rewards of steps"):
        probe_goals(tenfold)


class Reserved(BitFlip):
    """Bits that do not say where they end."""

    compute_terminated = None  # type: ignore[assignment]


def test_a_task_that_ends_where_it_must_not_is_refused() -> None:
    with pytest.raises(InputError, match="terminates at its goal: hindsight needs success_ends"):
        train(BITS, lambda: Reserved(2), budget=TINY)


@pytest.mark.parametrize("agent", [TD3(n_step=3), replace(BITS, n_step=3)])
def test_hindsight_takes_single_steps(agent: Any) -> None:
    env = BIT_FLIP if isinstance(agent, DQN) else "FetchReach-v4"
    with pytest.raises(InputError, match="hindsight needs n_step=1, got 3"):
        train(agent, env, budget=TINY)


def test_a_task_that_says_that_it_ends_at_its_goal_is_refused_before_any_work() -> None:
    """After so few steps nobody has been at the goal."""
    one = replace(TINY, steps=1, evaluate_every=1)
    with pytest.raises(InputError, match="BitFlip-v0 terminates at its goal: hindsight needs"):
        train(BITS, BIT_FLIP, budget=one)


class Line(gym.Env[Any, Any]):
    """A walk on a line to 4.0; what is paid is the distance, or whether it is small."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, goals: gym.Space[Any], *, dense: bool = False, width: float = 0.5) -> None:
        place = gym.spaces.Box(-99, 99, (1,), np.float64)
        named = {"observation": place, "achieved_goal": place, "desired_goal": goals}
        self.observation_space = gym.spaces.Dict(named)
        self.dense, self.width = dense, width

    def reset(self, **options: Any) -> Any:
        super().reset(**options)
        self.place = np.zeros(1)
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        self.place = self.place + 0.3 * (2 * action - 1)
        seen = self._observe()
        reward = self.compute_reward(seen["achieved_goal"], seen["desired_goal"], {})
        return seen, float(reward), False, False, {}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        distance = np.abs(achieved_goal - desired_goal)[..., 0]
        return -distance if self.dense else -(distance > self.width).astype(np.float32)

    def _observe(self) -> Any:
        goal = np.full(1, 4, self.observation_space["desired_goal"].dtype)  # type: ignore[index]
        return {"observation": self.place, "achieved_goal": self.place, "desired_goal": goal}


REALS = gym.spaces.Box(-99, 99, (1,), np.float64)


def test_each_goal_keeps_its_own_type() -> None:
    reward = goal_reward(lambda: Line(gym.spaces.MultiDiscrete([9])))
    achieved = np.array([[1.9], [1.4], [0.0]], np.float32)
    np.testing.assert_array_equal(reward(achieved, np.ones((3, 1), np.float32)), [-1, 0, -1])


def test_success_cannot_end_what_pays_more_than_two_values() -> None:
    with pytest.raises(InputError, match=r"needs rewards of two values, .* pays more, such as -"):
        train(BITS, partial(Line, REALS, dense=True), budget=ENDING)


def test_a_threshold_that_rounding_crosses_is_told_as_such() -> None:
    """From -0.3 it is 4.3 to the goal, just near enough; in float32 it is a little more."""
    with pytest.raises(InputError, match="are rounded to float32 here, so none may lie right on"):
        probe_goals(lambda: Line(REALS, width=np.float64(4.3)))


def test_an_evaluation_without_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "LONGEST_EPISODE", 30)
    with pytest.raises(TrainingError, match="after step 80 has not ended in 30 steps; does the"):
        train(BITS, partial(Line, REALS), budget=PLAIN)


def test_hindsight_goes_with_no_intrinsic_reward() -> None:
    with pytest.raises(InputError, match="an intrinsic reward belongs to the old goal"):
        train(replace(BITS, intrinsic=RND()), BIT_FLIP, budget=ENDING)
