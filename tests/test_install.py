"""The built wheel in empty environments: without extras, and with those of our agents."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import distribution, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
# What the plug-in brings: NumPy, Gymnasium, and what Gymnasium needs.
LIGHT = {"cloudpickle", "farama-notifications", "gymnasium", "numpy", "typing-extensions"}
# The sources of this checkout must not stand in for the installed package.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

PLUG_IN = """
import sys
import gymnasium as gym
import numpy as np
from rewardshift import Shift, ShiftReward, VectorShiftReward, suggest_shift

env = ShiftReward(gym.make("MountainCar-v0"), -0.5)
env.reset(seed=0)
assert env.step(0)[1] == -1.5
envs = VectorShiftReward(gym.make_vec("CartPole-v1", num_envs=2), -0.5)
envs.reset(seed=0)
assert envs.step(np.array([0, 1]))[1].tolist() == [0.5, 0.5]
goals = ShiftReward(gym.make("rewardshift/BitFlip-v0"), 1.0)
goals.reset(seed=0)
assert goals.step(0)[1] in (0.0, 1.0)

shift = Shift(-0.5, gamma=0.5, terminal="absorbing")
assert shift.reward(1.0, terminated=True) == 0.0
assert shift.reward(np.ones(2, np.float32), [True, False]).tolist() == [0.0, 0.5]
assert shift.multistep_return(np.float32(0), steps=2) == -0.75
assert suggest_shift("CartPole-v1", gamma=0.5).shift.bias == -0.5
assert ShiftReward(gym.make("CartPole-v1"), "auto", gamma=0.5).shift.bias == -0.5
"""
TORCH = """
import torch
from rewardshift import Shift

shift = Shift(torch.tensor([-0.5, 0.5]), gamma=0.5, terminal="absorbing")
rewards = shift.reward(torch.ones(2), torch.tensor([True, False]))
assert rewards.tolist() == [0.0, 1.5] and rewards.dtype == torch.float32
"""
SB3 = """
import numpy as np
from rewardshift.integrations.sb3 import VecShiftReward
from stable_baselines3.common.env_util import make_vec_env

venv = VecShiftReward(make_vec_env("CartPole-v1", n_envs=2), -0.5)
venv.reset()
assert venv.step(np.array([0, 1]))[1].tolist() == [0.5, 0.5]
"""


def run(*command: str | Path, folder: Path, code: int = 0) -> str:
    """What a command says, on either stream."""
    done = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout
    return done.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(*PIP, "wheel", "--no-deps", "--wheel-dir", folder, ROOT, folder=folder)
    (built,) = folder.glob("rewardshift-*.whl")
    return built


def install(wheel: Path, extra: str, folder: Path, interpreter: str = sys.executable) -> Path:
    """A new environment with the wheel; returns its commands."""
    run(interpreter, "-m", "venv", "--without-pip", folder, folder=folder.parent)
    python = folder / "bin" / "python"
    options = ("--no-compile", "--constraint", ROOT / "constraints.txt")
    run(*PIP, "--python", python, "install", *options, f"{wheel}{extra}", folder=folder)
    return python.parent


def installed(commands: Path) -> set[str]:
    """The names of the packages in an environment."""
    listing = run(*PIP, "--python", commands / "python", "freeze", "--all", folder=commands)
    return {normal(re.split("==| @ ", line)[0]) for line in listing.splitlines()}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(package: str, known: set[str]) -> Iterator[str]:
    """A package and what it needs, each once, but for what is known."""
    if package in known:
        return
    known.add(package)
    yield package
    for requirement in map(Requirement, requires(package) or ()):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield from needed(normal(requirement.name), known)


def lend(package: str, commands: Path, folder: Path) -> None:
    """Shows a package of this environment, with what it needs, to another one."""
    folder.mkdir()
    (site,) = (commands.parent / "lib").glob("python*/site-packages")
    (site / f"{package}.pth").write_text(f"{folder}\n")
    for name in needed(package, set(LIGHT)):
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (folder / top).exists():
                (folder / top).symlink_to(Path(str(found.locate_file(top))))


def missing(extra: str) -> str:
    """The end of the error without an extra."""
    return f"add the extra '{extra}', as in pip install '.[{extra}]' in a clone of rewardshift"


def test_the_plug_in_needs_numpy_and_gymnasium_alone(wheel: Path, tmp_path: Path) -> None:
    commands = install(wheel, "", tmp_path / "env")
    assert installed(commands) == {"rewardshift", *LIGHT}
    python = (commands / "python", "-I", "-W", "error", "-c")
    run(*python, PLUG_IN, folder=tmp_path)
    assert run(commands / "rewardshift", "--version", folder=tmp_path).startswith("rewardshift ")
    told = run(commands / "rewardshift", "suggest", "--env", "CartPole-v1", folder=tmp_path)
    assert "does not learn: Shift(-0.5, gamma=0.99, terminal='goal')" in told
    told = run(commands / "rewardshift", "suggest", "--data", "x.npz", folder=tmp_path, code=2)
    assert told.endswith(missing("agents"))
    told = run(commands / "rewardshift", "train", "dqn", folder=tmp_path, code=2)
    assert re.fullmatch(r"rewardshift: this needs \w+, .*", told)
    assert told.endswith(missing("agents"))

    lend("torch", commands, tmp_path / "torch")
    run(*python, TORCH, folder=tmp_path)
    told = run(*python, SB3, folder=tmp_path, code=1).splitlines()[-1]
    assert told.endswith(missing("sb3"))
    lend("stable-baselines3", commands, tmp_path / "sb3")
    run(*python, SB3, folder=tmp_path)


def test_the_extra_of_the_agents_trains(wheel: Path, tmp_path: Path) -> None:
    commands = install(wheel, "[agents]", tmp_path / "env")
    assert not {"matplotlib", "torch"} & installed(commands)
    command = commands / "rewardshift"
    budget = ("--steps", "40", "--evaluate-every", "20")
    for agent, *task in (
        ("dqn", "--env", "rewardshift/FourRooms-7x7-v0"),
        ("td3", "--env", "Pendulum-v1", "--warm-up", "20"),
    ):
        out = tmp_path / agent
        run(command, "train", agent, *task, *budget, "--out", out, folder=tmp_path)
        assert (out / "metrics.csv").exists()
    told = run(command, "reproduce", "figure1", "--preset", "smoke", folder=tmp_path, code=2)
    assert told.endswith(missing("paper"))
    assert not (tmp_path / "out").exists()
