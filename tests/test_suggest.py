"""`suggest_shift` and `rewardshift suggest`: the shift for an environment, before any training."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import sb3_contrib
import stable_baselines3
from test_auto import Paying

from rewardshift import (
    BCQ,
    CQL,
    DQN,
    SAC,
    TD3,
    Auto,
    Shift,
    ShiftReward,
    lifetime,
    suggest_shift,
)
from rewardshift.auto import RULE
from rewardshift.cli import main
from rewardshift.cli.suggest import TARGETS
from rewardshift.lab import Budget
from rewardshift.lab.trainings import agent_for
from rewardshift.paper.auto import AUTO, AUTO_CONTROL
from rewardshift.suggestion import code

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("env", "shift", "words"),
    [
        ("CartPole-v1", Shift(-0.5, 1.0, 0.99, "goal"), "did not end its episode"),
        ("MountainCar-v0", Shift(0.0, 1.0, 0.99, "goal"), "every step costs something"),
        ("FrozenLake-v1", Shift(5 * (0.99 - 1), 1.0, 0.99, "goal"), "ended its episode"),
        ("rewardshift/DeepSea-v0", Shift(5 * (0.99 - 1), 1.0, 0.99, "goal"), "nothing has paid"),
        ("Taxi-v4", Shift(5 * (0.99 - 1), 1 / 20, 0.99, "goal"), "Here the first positive reward"),
        ("Pendulum-v1", Shift(0.0, 1.0, 0.99, "goal"), "no shift"),
    ],
)
def test_each_kind_of_task_has_its_answer(env: str, shift: Shift, words: str) -> None:
    found = suggest_shift(env)
    assert found.shift == shift
    assert words in str(found)
    assert RULE in str(found)


CHOSEN = {
    **dict.fromkeys(("DeepSea-20", "MultiRoom", "FourRooms-7", "FourRooms-9"), "auto"),
    **dict.fromkeys(("MountainCar", "Acrobot", "MountainCarContinuous"), "none"),
    "SparsePendulum": "paper",
}


@pytest.mark.parametrize("name", CHOSEN)
def test_the_rule_chooses_a_measured_shift_on_each_development_task(name: str) -> None:
    """So its curve there is one of results/auto or results/auto-control."""
    task = {**AUTO.tasks, **AUTO_CONTROL.tasks}[name]
    measured = agent_for(AUTO.methods[0], replace(task, methods={}), Budget(1))
    found = suggest_shift(task.env, measured.gamma).shift
    given: Any = task.methods[CHOSEN[name]]["shift"]
    expected = given if isinstance(given, Shift) else Shift(given)
    assert (found.bias, found.scale) == (expected.bias, expected.scale)


class Rewards(gym.Env[Any, Any]):
    """Pays these rewards in a circle; the last one ends the episode, or goes on."""

    observation_space = gym.spaces.Discrete(1)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, *rewards: float, ends: bool = False) -> None:
        self.rewards, self.ends, self.taken = rewards, ends, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.taken = 0
        return 0, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.taken += 1
        last = self.taken % len(self.rewards) == 0
        return 0, self.rewards[self.taken % len(self.rewards) - 1], last and self.ends, False, {}


WRONG = "This guess is wrong if steps can pay far more"
COUNTS = "It counts as 1"
KEEP = "If your agent learns, keep it as it is."
FALL = "if they are failures, such as a fall"


@pytest.mark.parametrize(
    ("rewards", "ends", "said", "unsaid"),
    [
        ((1.0,), False, (KEEP,), (WRONG, FALL)),
        (
            (0.0, 0.0, 1.0),
            False,
            (WRONG, "as Shift(-0.5 * r, gamma=0.5, terminal='goal')"),
            (KEEP,),
        ),
        ((0.0, 0.0, 4.0), False, ("Shift(-0.125 * r, scale=0.25, gamma=0.5",), (KEEP,)),
        ((0.0, 0.0, 1.0), True, ("Suggestion: Shift", "5 times a goal of 1."), (KEEP, COUNTS)),
        (
            (0.0, 0.0, 0.2),
            True,
            (COUNTS, "Auto(least=...)", "5 times a goal of 1."),
            ("optimism of",),
        ),
        ((-1.0, -1.0, 20.0), True, ("5 times a goal of 20.",), (KEEP,)),
        ((1.0, 1.0, 1.0), True, (KEEP, FALL), ()),
        ((1.0, 1.0, 9.0), True, (KEEP,), (FALL,)),
    ],
)
def test_it_says_what_would_make_it_wrong(
    rewards: tuple[float, ...], ends: bool, said: tuple[str, ...], unsaid: tuple[str, ...]
) -> None:
    text = str(suggest_shift(lambda: Rewards(*rewards, ends=ends), 0.5, steps=30))
    assert all(words in text for words in said), text
    assert not any(words in text for words in unsaid), text


def test_a_wrapper_with_auto_takes_what_is_suggested() -> None:
    for env in ("CartPole-v1", "FrozenLake-v1"):
        assert ShiftReward(gym.make(env), "auto", 0.9).shift == suggest_shift(env, 0.9).shift


def test_the_suggested_line_is_the_suggested_shift() -> None:
    for shift in (Shift(-0.5), Shift(-0.25, 0.5, 0.9, "goal"), Shift(8.0, terminal="zero")):
        assert eval(code(shift)) == shift


def test_the_same_seed_plays_the_same() -> None:
    first, again, other = (suggest_shift("Taxi-v4", seed=seed).probe.reward for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).any()


class Slow(Paying):
    """An environment that takes its time."""

    def step(self, action: Any) -> Any:
        time.sleep(0.02)
        return super().step(action)


def test_a_slow_environment_is_judged_by_fewer_steps() -> None:
    found = suggest_shift(Slow, seconds=0.5)
    assert 2 < found.probe.reward.size < 100
    assert found.shift.scale == 1 / 8
    assert f"{found.probe.reward.size} random steps" in str(found)
    assert suggest_shift(Slow, seconds=1e-9).probe.reward.size == 1


@pytest.mark.parametrize(
    ("name", "agent"), [("dqn", DQN), ("td3", TD3), ("sac", SAC), ("bcq", BCQ), ("cql", CQL)]
)
def test_our_agents_have_the_lifetimes_that_are_told(name: str, agent: Any) -> None:
    told = lifetime(0.99, *TARGETS[name])
    assert told == pytest.approx(agent(gamma=0.99).lifetime)


def test_agents_of_stable_baselines3_have_the_lifetimes_that_are_told() -> None:
    kinds = {**vars(sb3_contrib), **vars(stable_baselines3)}
    for name in (name for name in TARGETS if name.startswith("sb3-")):
        kind = kinds[name.removeprefix("sb3-").upper()]
        env = "CartPole-v1" if "dqn" in name else "Pendulum-v1"
        model = kind("MlpPolicy", env, device="cpu", buffer_size=10)
        target = TARGETS[name]
        every = getattr(model, "target_update_interval", None) or model.policy_delay
        assert (model.tau, every) == (target.tau, target.every), name


def test_the_command_tells_the_lines_and_the_lifetime(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suggest", "--env", "CartPole-v1", "--agent", "sb3-dqn"]) == 0
    said = capsys.readouterr().out
    assert "ShiftReward(env, Shift(-0.5, gamma=0.99, terminal='goal'))" in said
    assert "fades over 1,000,000 steps of training" in said
    assert "tau=0.005 with target_update_interval=1 makes it 20,000." in said
    assert main(["suggest", "--env", "CartPole-v1", "--agent", "td3"]) == 0
    said = capsys.readouterr().out
    assert "fades over 40,000 steps" in said
    assert "faster" not in said
    assert main(["suggest", "--env", "MountainCar-v0", "--agent", "dqn"]) == 0
    said = capsys.readouterr().out
    assert "Suggestion: no shift." in said
    assert "ShiftReward" not in said
    assert "fades" not in said
    assert said.endswith("rewardshift doctor RUN\n")


def test_the_command_tells_the_shift_for_a_data_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suggest", "--data", "embedded/walker2d-medium", "--agent", "bcq"]) == 0
    said = capsys.readouterr().out
    assert "to_d3rlpy(Shift(2.78547, gamma=0.99, terminal='absorbing'))" in said
    assert "fades over 20,000 steps" in said
    assert main(["suggest", "--data", "embedded/hopper-medium"]) == 0
    assert "Suggestion: no shift." in capsys.readouterr().out


def test_the_command_needs_no_extra() -> None:
    """It loads neither tyro nor JAX, which the plug-in alone does not install."""
    script = (
        "import sys; sys.modules.update(dict.fromkeys(['tyro', 'jax', 'rich', 'minigrid']));"
        "from rewardshift.cli import main; sys.exit(main(['suggest', '--env', 'CartPole-v1']))"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "does not learn: Shift(-0.5" in done.stdout


def test_every_text_explains_the_rule_in_the_same_words() -> None:
    def words(text: str | None) -> str:
        return " ".join((text or "").replace("`", "").replace("*", "").split())

    for text in (
        Auto.__doc__,
        (ROOT / "README.md").read_text(),
        (ROOT / "docs" / "which-constant.md").read_text(),
    ):
        assert words(RULE) in words(text)
