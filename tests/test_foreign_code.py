"""Code of others that fails: whose it was, when, and where in it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from victims import Fault, call, command

from rewardshift import DQN, OnlineBudget, train
from rewardshift.agents.networks import MLP
from rewardshift.cli import main
from rewardshift.errors import ForeignError, InputError, TrainingError

TINY = ("--network=mlp(hidden=(4,))", "--batch-size=4", "--steps=20", "--evaluation-episodes=1")
FAULTY = """
import gymnasium, numpy, os, sys

class Faulty(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (1,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)
    metadata = {"render_modes": []}

    def __init__(self, at=-1, where="step", how="raise", render_mode=None):
        self.at, self.where, self.how, self.taken = at, where, how, 0
        self.fail("init")

    def fail(self, where):
        if self.where == where and self.taken >= self.at > 0:
            if self.how == "exit":
                sys.exit(0)
            if self.how == "leave":
                os._exit(0)
            raise ZeroDivisionError("of \\x1b[31mtheirs")

    def reset(self, **kwargs):
        self.fail("reset")
        return numpy.zeros(1, numpy.float32), {}

    def step(self, action):
        self.taken += 1
        self.fail("step")
        return numpy.zeros(1, numpy.float32), 1.0, False, self.taken % 50 == 0, {}

def register(name, **kwargs):
    options = {"kwargs": kwargs, "disable_env_checker": True}
    gymnasium.register(name, "faulty_tasks:Faulty", **options)

register("Whole-v0")
register("Step-v0", at=5)
register("Exit-v0", at=5, how="exit")
register("Long-v0", at=30)
register("Left-v0", at=5, how="leave")
register("Reset-v0", at=7, where="reset")
"""


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules of somebody, forgotten after the test."""
    (tmp_path / "faulty_tasks.py").write_text(FAULTY)
    (tmp_path / "broken_module.py").write_text("divisor = 0\n1 / divisor\n")
    (tmp_path / "leaving_module.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    before, registered = set(sys.modules), set(gym.registry)
    yield
    for name in set(sys.modules) - before:
        if name in ("faulty_tasks", "broken_module", "leaving_module"):
            del sys.modules[name]
    for name in set(gym.registry) - registered:
        del gym.registry[name]


@pytest.mark.parametrize(
    ("env", "when"),
    [
        ("Step-v0", "in step 5,"),
        ("Exit-v0", "in step 5,"),
        ("Long-v0", "in step 30 of the evaluation after step 20,"),
    ],
)
def test_an_environment_that_fails_is_told_with_its_own_traceback(
    env: str, when: str, tmp_path: Path
) -> None:
    """In a process of its own, without the checks of types that tests have inside."""
    name = f"faulty_tasks:{env}"
    ended = call(command, ("train", "dqn", f"--env={name}", *TINY, f"--out={tmp_path / 'run'}"))
    assert ended.code == 1, ended.said
    said = ended.said
    first, *below = said[said.index("rewardshift: ") :].splitlines()
    kind = "SystemExit: 0" if env == "Exit-v0" else r"ZeroDivisionError: of \x1b[31mtheirs"
    assert first == (
        f"rewardshift: the environment {name!r}, {when} failed, in code outside of rewardshift:"
        f" {kind}"
    )
    assert below[0] == "Traceback (most recent call last):"
    assert any(f'File "{tmp_path}/faulty_tasks.py", line' in line for line in below)
    assert not any("src/rewardshift" in line for line in below)
    assert "\x1b[31m" not in said


def test_a_reset_that_fails_is_told(tmp_path: Path) -> None:
    budget = OnlineBudget(steps=20, checkpoint_every=10, evaluate_every=20)
    with pytest.raises(ForeignError, match=r"when reset after step 10,.*ZeroDivisionError") as told:
        train(DQN(network=MLP((4,))), "faulty_tasks:Reset-v0", budget=budget)
    assert isinstance(told.value.__cause__, ZeroDivisionError)
    assert isinstance(told.value, TrainingError)


def test_an_environment_that_cannot_be_made_is_told() -> None:
    def make() -> Any:
        raise ZeroDivisionError("at the beginning")

    with pytest.raises(ForeignError, match=r"while it was made, failed.*at the beginning"):
        train(DQN(), make)


class Whole(gym.Env[Any, Any]):
    """What a test changes of it is all that is wrong with it."""

    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
    action_space: gym.Space[Any] = gym.spaces.Discrete(2)

    def reset(self, **_: Any) -> Any:
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        return self.seen(), *self.outcome(), {}

    def seen(self) -> Any:
        return np.zeros(2, np.float32)

    def outcome(self) -> Any:
        return 1.0, True, False


def unpaired(_: Any, **options: Any) -> Any:
    return np.zeros(2, np.float32)


def longer(_: Any, **options: Any) -> Any:
    return np.zeros(3, np.float32), {}


def unclosed(_: Any) -> None:
    raise ZeroDivisionError("at the end")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"outcome": lambda _: ("1.0", True, False)}, "in step 1,.* number, got '1.0'"),
        ({"outcome": lambda _: (None, True, False)}, "in step 1,.* number, got None"),
        ({"outcome": lambda _: (1.0, None, False)}, "in step 1,.* True or False, got None"),
        ({"outcome": lambda _: (1.0, False, "no")}, "in step 1,.* True or False, got 'no'"),
        ({"outcome": lambda _: (1.0, 2, False)}, "in step 1,.* True or False, got 2"),
        ({"reset": unpaired}, "when reset after step 0,.* an observation and an info, got array"),
        ({"reset": longer}, "when reset after step 0,.* must have 2 numbers, got array"),
        ({"seen": lambda _: np.zeros(1)}, "in step 1,.* must have 2 numbers, got array"),
        ({"seen": lambda _: 0.0}, r"in step 1,.* must have 2 numbers, got 0\.0"),
        ({"close": unclosed}, "when closed, failed.*at the end"),
    ],
)
def test_what_an_environment_may_not_return_or_raise(wrong: Any, message: str) -> None:
    task = type("Wrong", (Whole,), wrong)
    budget = OnlineBudget(steps=20, evaluate_every=20, evaluation_episodes=1)
    with pytest.raises(ForeignError, match=message):
        train(DQN(network=MLP((4,)), batch_size=4), task, budget=budget)


@pytest.mark.parametrize("paid", [1, np.float64(1), np.array(1.0), True])
def test_any_number_is_a_reward(paid: Any) -> None:
    task = type("Right", (Whole,), {"outcome": lambda _: (paid, np.True_, 0)})
    budget = OnlineBudget(steps=2, evaluate_every=2, evaluation_episodes=1)
    (row,) = train(DQN(network=MLP((4,)), batch_size=4), task, budget=budget).rows
    assert row.evaluation_return == 1


def test_actions_beyond_number_are_refused() -> None:
    task = type("Wide", (Whole,), {"action_space": gym.spaces.Discrete(2**63 - 1)})
    with pytest.raises(InputError, match=r"fewer than 2\^31 actions; .* has 9223372036854775807"):
        train(DQN(), task)


@pytest.mark.parametrize("how", ["--env", "--import"])
@pytest.mark.parametrize(
    ("module", "kind"),
    [("broken_module", "ZeroDivisionError: division by zero"), ("leaving_module", "SystemExit: 0")],
)
def test_a_module_that_fails_is_told(
    how: str, module: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = {
        "--env": ["train", "dqn", f"--env={module}:Any-v0", *TINY],
        "--import": ["--import", module, "list"],
    }
    assert main(arguments[how]) == 1
    first, *below = capsys.readouterr().err.splitlines()
    assert f"the module {module!r}, while it was imported, failed" in first
    assert first.endswith(kind)
    assert any(f'File "{tmp_path}/{module}.py", line 2' in line for line in below)


DRAWN = {"render_modes": ["rgb_array"]}


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({}, 2, "cannot be drawn here"),
        (
            {"metadata": DRAWN, "reset": lambda _, **_given: 1 // 0},
            1,
            "when reset, failed, in code",
        ),
        ({"metadata": DRAWN, "render": lambda _: None}, 2, "its render() returned None, not a pic"),
    ],
)
def test_what_cannot_be_filmed_is_told(
    changes: dict[str, Any], code: int, message: str, tmp_path: Path, capsys: Any
) -> None:
    budget = OnlineBudget(steps=20, evaluate_every=20, evaluation_episodes=1)
    agent = DQN(network=MLP((4,)), batch_size=4)
    train(agent, "faulty_tasks:Whole-v0", budget=budget, folder=tmp_path / "run")
    for name, changed in changes.items():
        setattr(sys.modules["faulty_tasks"].Faulty, name, changed)
    capsys.readouterr()
    assert main(["play", str(tmp_path / "run")]) == code
    first, *below = capsys.readouterr().err.splitlines()
    assert message in first
    assert [line.startswith("ZeroDivisionError") for line in below[-1:]] == [True] * (code == 1)


def test_a_film_outlives_a_full_disk(tmp_path: Path) -> None:
    run, film = tmp_path / "run", tmp_path / "film.gif"
    budget = OnlineBudget(steps=20, evaluate_every=20, evaluation_episodes=1)
    train(DQN(network=MLP((4,)), batch_size=4), "CartPole-v1", budget=budget, folder=run)
    play = ("play", run, f"--film={film}")
    assert call(command, play).code == 0
    before = film.read_bytes()
    assert len(before) > 1000
    ended = call(command, (*play, "--episode=1"), fault=Fault("full", 0))
    assert ended.code == 1, ended.said
    assert film.read_bytes() == before
    assert not list(tmp_path.glob(".film*"))
