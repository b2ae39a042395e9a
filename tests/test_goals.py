"""Goal tasks: how they are seen, and that hindsight solves them."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rewardshift import DQN, Hindsight, OnlineBudget, train
from rewardshift.agents.networks import MLP
from rewardshift.cli import main
from rewardshift.envs import BIT_FLIP
from rewardshift.envs.goals import BitFlip
from rewardshift.envs.tasks import TaskSpec
from rewardshift.envs.vector import Environments
from rewardshift.training.collection import collect
from rewardshift.training.run_folder import load

BITS = DQN(gamma=0.98, network=MLP((256,)), batch_size=128)
SHORT = OnlineBudget(steps=5000, capacity=5000, evaluate_every=5000, evaluation_episodes=20)
TINY = OnlineBudget(
    steps=160, capacity=160, evaluate_every=80, evaluation_episodes=1, checkpoint_every=80
)


@pytest.mark.parametrize(
    ("hindsight", "low", "high"), [(Hindsight(success_ends=True), 0.9, 1.0), (None, 0.0, 0.1)]
)
def test_sixteen_bits_need_hindsight(hindsight: Hindsight | None, low: float, high: float) -> None:
    row = train(BITS, BIT_FLIP, budget=replace(SHORT, hindsight=hindsight)).rows[-1]
    assert row.success_rate is not None
    assert low <= row.success_rate <= high


def test_bits_are_an_environment() -> None:
    env = gym.make(BIT_FLIP, bits=3, max_episode_steps=3)
    check_env(env.unwrapped, skip_render_check=True)
    first, _ = env.reset(seed=1)
    wrong = np.flatnonzero(first["achieved_goal"] != first["desired_goal"])
    for bit in wrong[:-1]:
        _, reward, terminated, truncated, info = env.step(int(bit))
        assert (reward, terminated, truncated, info["is_success"]) == (-1, False, False, False)
    _, reward, terminated, truncated, info = env.step(int(wrong[-1]))
    assert (reward, terminated, truncated, info["is_success"]) == (0, True, False, True)
    env.reset(seed=1)
    ends = [env.step(int(wrong[0]))[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]
    with pytest.raises(ValueError, match="bits must be 1 or more, got 0"):
        BitFlip(0)


def test_goals_stand_at_the_end_of_an_observation() -> None:
    envs = Environments("FetchReach-v4", 2)
    low, high = (-1.0,) * 4, (1.0,) * 4
    assert envs.spec == TaskSpec(16, "float32", 0, 4, 3, (), low, high)
    flat = envs.restart([3, 4])
    env = gym.make("FetchReach-v4")
    raw, _ = env.reset(seed=4)
    np.testing.assert_array_equal(flat[1, :10], raw["observation"].astype(np.float32))
    np.testing.assert_array_equal(
        envs.spec.achieved(flat)[1], raw["achieved_goal"].astype(np.float32)
    )
    np.testing.assert_array_equal(
        envs.spec.desired(flat)[1], raw["desired_goal"].astype(np.float32)
    )
    step = envs.step(np.zeros((2, 4), np.float32))
    assert step.success.tolist() == [0.0, 0.0]
    envs.close()


class Passing(BitFlip):
    """Bits whose first episodes pass through the goal, and whose others end there.

    Success is told as `success`, and nothing terminates.
    """

    episodes = 0

    def reset(self, **options: Any) -> Any:
        Passing.episodes += 1
        self.number, self.count = Passing.episodes, 0
        return super().reset(**options)

    def step(self, action: Any) -> Any:
        self.count += 1
        at_goal = self.count == (1 if self.number % 4 == 0 else 2)
        return self._observe(), 0.0, False, self.count == 2, {"success": at_goal}


def test_success_is_where_an_episode_ends() -> None:
    Passing.episodes = 0
    budget = replace(TINY, steps=4, evaluate_every=4, evaluation_episodes=4)
    row = train(replace(BITS, network=MLP((8,)), batch_size=2), Passing, budget=budget).rows[-1]
    # The training's own environment resets between those of the evaluation: of any four episodes
    # in a row one leaves the goal.
    assert row.success_rate == 0.75


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = "--steps 60 --evaluate-every 30 --evaluation-episodes 1 --batch-size 4"
    small += " --network mlp(hidden=(4,))"
    reach = f"train td3 --env FetchReach-v4 --warm-up 10 --shift 1 {small}".split()
    later = "future(ratio=2, success_ends=True)"
    run = tmp_path / "run"
    flags = [f"--hindsight={later}", "--reward-range", "-1", "0", "--normalise", f"--out={run}"]
    assert main([*reach, *flags]) == 0
    header, *lines = (run / "metrics.csv").read_text().splitlines()
    rate = [line.split(",")[header.split(",").index("success_rate")] for line in lines]
    assert set(rate) <= {"0", "1"}
    assert re.search(r"over 1 seed, success rate [01]\.00\n", capsys.readouterr().out)
    assert '"type": "Hindsight"' in (run / "config.json").read_text()
    assert collect(load(run), 60).observation.shape == (60, 16)
    assert main([*reach, "--hindsight", "future", "--env", "Pendulum-v1"]) == 2
    assert "hindsight needs observations that are a Dict" in capsys.readouterr().err
