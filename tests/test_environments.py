"""What may be given as an environment, and how a run tells one from another."""

import re
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest
from probes import Probe

from rewardshift import (
    DQN,
    OnlineBudget,
    ShiftReward,
    train,
)
from rewardshift.agents.networks import MLP
from rewardshift.cli import main
from rewardshift.envs.tasks import env_name
from rewardshift.errors import InputError, TrainingError
from rewardshift.training import film
from rewardshift.training.run_folder import load
from rewardshift.training.runs import resume
from rewardshift.training.trainer import make_room_for_programs

SMALL = DQN(network=MLP((8,)), batch_size=8)
BUDGET = OnlineBudget(steps=20, capacity=20, evaluate_every=10, evaluation_episodes=1)


def make_probe() -> Probe:
    return Probe(2)


@dataclass
class Corridors:
    length: int

    def __call__(self) -> Probe:
        return Probe(self.length)


def test_functions_have_names_that_tell_them_apart() -> None:
    here = "function test_environments."
    assert env_name("CartPole-v1") == "CartPole-v1"
    assert env_name(make_probe) == f"{here}make_probe"
    assert env_name(partial(make_probe)) == f"{here}make_probe()"
    made = partial(partial(Probe, 3), terminates=False)
    assert env_name(made) == "function probes.Probe(3, terminates=False)"
    assert env_name(Corridors(3)) == "function Corridors(length=3)"


def test_a_folder_keeps_the_environments_of_functions_apart(tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = train(SMALL, partial(Probe, 3), budget=BUDGET, folder=run)
    with pytest.raises(InputError, match="holds a run with another configuration"):
        train(SMALL, partial(Probe, 7), budget=BUDGET, folder=run)
    assert train(SMALL, partial(Probe, 3), budget=BUDGET, folder=run).rows == first.rows
    said = r"function probes\.Probe\(3\), which a file cannot keep: go on from Python"
    with pytest.raises(InputError, match=said):
        resume(run)
    policy = load(str(run), 0)
    assert policy.act(np.zeros(policy.spec.features, np.float32)) >= 0  # needs no environment
    with pytest.raises(InputError, match=said):
        policy.evaluate(1)
    assert policy.evaluate(2, env=partial(Probe, 3)).returns.shape == (2,)


@pytest.mark.parametrize(
    "make",
    [
        Corridors(3).__call__,
        lambda: Probe(3),
        partial(lambda: Probe(3)),
        partial(gym.wrappers.TimeLimit, Probe(), 9),
    ],
)
def test_a_folder_is_not_for_functions_without_a_name(make: Any, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"an environment that can be made again.*got the function"
    ):
        train(SMALL, make, budget=BUDGET, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_shifted_environment_is_refused() -> None:
    """The agent has a shift of its own, and returns would not be primal."""
    for make in (lambda: ShiftReward(Probe(2), -0.5), lambda: ShiftReward(Probe(2), 0.0)):
        with pytest.raises(InputError, match=r"shifted already, by Shift\(.* give the agent"):
            train(SMALL, make, budget=BUDGET)


TINY = (
    *("--network=mlp(hidden=(4,))", "--batch-size=4", "--steps=20"),
    *("--evaluate-every=20", "--evaluation-episodes=1"),
)


def test_the_module_of_an_environment_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "their_tasks.py").write_text(
        "import gymnasium\n"
        "pole = 'gymnasium.envs.classic_control:CartPoleEnv'\n"
        "gymnasium.register('Theirs-v0', pole, max_episode_steps=9)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    run, name = str(tmp_path / "run"), "their_tasks:Theirs-v0"
    assert main(["train", "dqn", f"--env={name}", *TINY, f"--out={run}"]) == 0
    del gym.registry["Theirs-v0"], sys.modules["their_tasks"]  # as in a new process
    made = f"--folder={tmp_path / 'made'}"
    collect = ["collect", run, "--id=their/own-v0", "--transitions=20", made]
    assert main(["--import", "their_tasks", *collect]) == 0
    for wrong in ("their_tasks:Ours-v0", "no_such_module:Theirs-v0", "their tasks:Theirs-v0"):
        capsys.readouterr()
        assert main(["train", "dqn", f"--env={wrong}", *TINY]) == 2
        assert f"no environment {wrong!r}: " in capsys.readouterr().err


def test_too_little_memory_leaves_no_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, many = tmp_path / "run", ("--capacity=2000000000", "--steps=2000000000")
    assert main(["train", "dqn", "--env=CartPole-v1", *many, f"--out={run}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(r"the run needs about .* GB of memory, and .* GB are free: take a", line)
    assert not run.exists()


@pytest.mark.parametrize(("share", "compilations"), [(0.0, 2), (1.0, 1)])
def test_programs_are_dropped_before_the_limit_of_mappings(share: float, compilations: int) -> None:
    compiled = []

    @jax.jit
    def double(x: Any) -> Any:
        compiled.append(x)  # runs when JAX traces it
        return 2 * x

    double(1.0)
    make_room_for_programs(share)
    double(1.0)
    assert len(compiled) == compilations


def test_films_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(tmp_path / "run")
    assert main(["train", "dqn", "--env=MountainCar-v0", *TINY, f"--out={run}"]) == 0
    monkeypatch.setattr(film, "LONGEST_FILM", 5)
    with pytest.raises(TrainingError, match="has not ended in 5 steps"):
        film.record_episode(load(run, 0), tmp_path / "film.gif", 0)
    assert not (tmp_path / "film.gif").exists()
