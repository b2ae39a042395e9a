"""A file never makes us import a module: run folders and data sets that name one.

Every module here leaves a trace when it is imported.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import gymnasium as gym
import pytest
from data_makers import small, write
from fuzzing import run

from rewardshift import OnlineBudget, load_dataset

BUDGET = OnlineBudget(steps=20, evaluate_every=20, evaluation_episodes=1)
MODULE = """
import pathlib
import gymnasium
from gymnasium.envs.classic_control import PendulumEnv
pathlib.Path({trace!r}).touch()
class Env(PendulumEnv): pass
gymnasium.register("Chain-v0", "gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=9)
gymnasium.register("Swing-v0", "mymod:Env", max_episode_steps=9)
"""


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file that importing `mymod`, which could be imported, makes."""
    path = tmp_path / "imported"
    text = MODULE.format(trace=str(path))
    (tmp_path / "mymod.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield path
    forget()


def forget() -> None:
    """As in a new process."""
    sys.modules.pop("mymod", None)
    for name in ("Chain-v0", "Swing-v0"):
        gym.registry.pop(name, None)


def command(*arguments: Any) -> tuple[int, str]:
    """The exit code of a command and what it says of errors."""
    code, told, _ = run(list(map(str, arguments)))
    return code, told


def assert_refused(done: tuple[int, str], trace: Path) -> None:
    code, told = done
    assert code == 2, told
    assert "rewardshift --import mymod ..." in told
    assert told.count("\n") == 1
    assert not trace.exists()


TYPED = (
    *("train", "dqn", "--env=mymod:Chain-v0", "--network=mlp(hidden=(4,))", "--batch-size=4"),
    *("--steps=20", "--evaluate-every=20", "--evaluation-episodes=1"),
)


def test_a_run_folder_names_an_environment(tmp_path: Path, trace: Path) -> None:
    folder = tmp_path / "run"
    code, told = command(*TYPED, "--out", folder)
    assert code == 0, told
    assert trace.exists()  # what the user types is imported
    trace.unlink()
    forget()
    made = tmp_path / "set"
    collect = ("collect", folder, "--id=own/chain-v0", "--transitions=9", "--folder", made)
    for arguments in (("resume", folder), ("play", folder), collect):
        assert_refused(command(*arguments), trace)
    code, told = command("--import", "mymod", *collect)
    assert code == 0, told
    assert trace.exists()


def test_a_module_of_the_present_folder_is_found_and_hides_none(tmp_path: Path) -> None:
    """As the installed command, which does not look there by itself: `-P`."""
    text = MODULE.format(trace=str(tmp_path / "trace"))
    (tmp_path / "mymod.py").write_text(text)
    (tmp_path / "optax.py").write_text("raise SystemExit('the wrong optax')")
    line = (sys.executable, "-P", "-c", "from rewardshift.cli import console; console()")
    done = subprocess.run(
        [*line, *TYPED, "--out=run"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "trace").exists()


TRAIN = (
    *("--network=mlp(hidden=(4,))", "--proposer=mlp(hidden=(4,))", "--candidates=1"),
    "--acting-candidates=1",
    *("--batch-size=2", "--updates=2", "--evaluate-every=2", "--evaluation-episodes=1"),
)


def test_a_data_set_names_an_environment(tmp_path: Path, trace: Path) -> None:
    place = write(small(), "pendulum/noise-v0", folder=tmp_path / "set")
    path = place / "data" / "metadata.json"
    metadata = json.loads(path.read_text())
    spec = {**json.loads(metadata["env_spec"]), "id": "mymod:Swing-v0", "max_episode_steps": 9}
    path.write_text(json.dumps({**metadata, "env_spec": json.dumps(spec)}))
    bcq = ("train", "bcq", "--data", place, *TRAIN, "--out", tmp_path / "run")
    assert_refused(command(*bcq), trace)
    assert load_dataset(place).env == "mymod:Swing-v0"
    assert command(*bcq, "--env=Pendulum-v1") == (0, ANY)
    assert not trace.exists()
