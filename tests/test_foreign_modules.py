"""A file never makes us import a module: run folders and data sets that name one.

Every module here leaves a trace when it is imported.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from data_makers import small, write

from rewardshift import OnlineBudget, train
from rewardshift.agents.dqn import DQN

BUDGET = OnlineBudget(steps=20, evaluate_every=20, evaluation_episodes=1)
MODULE = """
import gymnasium
from gymnasium.envs.classic_control import PendulumEnv
open({trace!r}, "w")
class Env(PendulumEnv): pass
class Wrapper(gymnasium.Wrapper): pass
def harm(**_): open({harm!r}, "w")
gymnasium.register("Chain-v0", "gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=9)
gymnasium.register("Swing-v0", "mymod:Env", max_episode_steps=9)
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The file that importing `mymod` makes."""
    path = tmp_path / "imported"
    text = MODULE.format(trace=str(path), harm=str(tmp_path / "harm"))
    (tmp_path / "mymod.py").write_text(text)
    return path


def command(folder: Path, *arguments: Any) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, which could import `mymod`."""
    code = "import sys; from rewardshift.cli import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )


def assert_refused(done: subprocess.CompletedProcess[str], trace: Path) -> None:
    assert done.returncode == 2, done.stderr
    assert "rewardshift --import mymod ..." in done.stderr
    assert done.stderr.count("\n") == 1
    assert not trace.exists()


def test_a_run_folder_names_an_environment(tmp_path: Path, trace: Path) -> None:
    run = tmp_path / "run"
    train(DQN(hidden=(4,), batch_size=4), "CartPole-v1", budget=BUDGET, folder=run)
    config = run / "config.json"
    config.write_text(config.read_text().replace("CartPole-v1", "mymod:Chain-v0"))
    collect = ("collect", run, "--id=own/chain-v0", "--transitions=9", "--folder", tmp_path / "set")
    for arguments in (("resume", run), ("play", run), collect):
        assert_refused(command(tmp_path, *arguments), trace)
    done = command(tmp_path, "--import", "mymod", *collect)
    assert done.returncode == 0, done.stderr
    assert trace.exists()


def test_what_the_user_types_is_imported(tmp_path: Path, trace: Path) -> None:
    done = command(
        *(
            tmp_path,
            "train",
            "dqn",
            "--env=mymod:Chain-v0",
            "--network=mlp(hidden=(4,))",
            "--batch-size=4",
        ),
        *("--steps=20", "--evaluate-every=20", "--evaluation-episodes=1"),
    )
    assert done.returncode == 0, done.stderr
    assert trace.exists()


def data_set(folder: Path, **changes: Any) -> Path:
    """A data set of Pendulum-v1 with another environment in its metadata."""
    place = write(small("Pendulum-v1"), "pendulum/noise-v0", folder=folder / "set")
    path = place / "data" / "metadata.json"
    metadata = json.loads(path.read_text())
    if not changes.pop("spaces", True):
        del metadata["observation_space"]
    metadata["env_spec"] = json.dumps({**json.loads(metadata["env_spec"]), **changes})
    path.write_text(json.dumps(metadata))
    return place


TRAIN = (
    *("--network=mlp(hidden=(4,))", "--batch-size=2", "--updates=2", "--evaluate-every=2"),
    "--candidates=1",
)
WRAPPER = {"name": "Wrapper", "entry_point": "mymod:Wrapper", "kwargs": None}


def test_a_data_set_names_an_environment(tmp_path: Path, trace: Path) -> None:
    place = data_set(tmp_path, id="mymod:Swing-v0", max_episode_steps=9)
    bcq = ("train", "bcq", "--data", place, *TRAIN, "--out", tmp_path / "run")
    assert_refused(command(tmp_path, *bcq), trace)
    looked = command(tmp_path, "data", "inspect", place)
    assert "mymod:Swing-v0" in looked.stdout
    assert not trace.exists()
    assert command(tmp_path, *bcq, "--env=Pendulum-v1").returncode == 0
    assert not trace.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"entry_point": "mymod:Env"},
        {"additional_wrappers": [WRAPPER]},
        {"id": "Swing-v0", "entry_point": "mymod:Env"},
    ],
)
def test_a_data_set_without_spaces_names_what_makes_it(
    changes: dict[str, Any], tmp_path: Path, trace: Path
) -> None:
    place = data_set(tmp_path, spaces=False, **changes)
    assert_refused(command(tmp_path, "data", "inspect", place), trace)
    done = command(tmp_path, "--import", "mymod", "data", "inspect", place)
    assert done.returncode == 0, done.stderr


def test_a_data_set_calls_no_function(tmp_path: Path, trace: Path) -> None:
    """Of an imported module neither: an entry point may be any name in it."""
    place = data_set(tmp_path, spaces=False, entry_point="mymod:harm", kwargs={})
    assert command(tmp_path, "--import", "mymod", "data", "inspect", place).returncode == 2
    assert trace.exists()
    assert not (tmp_path / "harm").exists()


def test_a_data_set_without_spaces_of_a_registered_environment(tmp_path: Path) -> None:
    place = data_set(tmp_path, spaces=False)
    done = command(tmp_path, "data", "inspect", place)
    assert done.returncode == 0, done.stderr
