"""Runs: the same twice, the same beside others, and the same after any interruption."""

import json
import shutil
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from fuzzing import refused
from probes import Aim, Probe

from rewardshift import Shift
from rewardshift.agents.dqn import DQN
from rewardshift.agents.intrinsic import RND
from rewardshift.agents.networks import MLP
from rewardshift.agents.td3 import TD3
from rewardshift.cli import main
from rewardshift.errors import InputError, TrainingError
from rewardshift.training.budgets import OnlineBudget
from rewardshift.training.run_folder import how_to_resume, read_config
from rewardshift.training.runs import resume, train

AGENT = DQN(shift=(-0.5, 0.5), network=MLP((8,)), batch_size=8, intrinsic=RND(-1.0, width=8))
BUDGET = OnlineBudget(
    steps=400, capacity=150, evaluate_every=80, evaluation_episodes=2, checkpoint_every=100
)
KEPT = ("metrics.csv", "parameters.npz", "config.json")


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in KEPT}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    assert train(AGENT, "MountainCar-v0", seeds=2, budget=BUDGET, folder=folder).finished
    return folder


def test_a_run_leaves_its_folder(undisturbed: Path) -> None:
    names = {path.name for path in undisturbed.iterdir()}
    assert names == {*KEPT, ".lock", "checkpoints", "tensorboard", "timing.csv"}
    lines = (undisturbed / "metrics.csv").read_text().splitlines()
    assert lines[0].startswith("seed,step,episodes,evaluation_return,training_return,success_rate,")
    assert lines[0].endswith(",disagreement_unvisited,bonus,loss,q")
    assert len(lines) == 1 + 2 * 5
    assert not list(undisturbed.rglob("*.pkl"))
    assert list((undisturbed / "tensorboard").iterdir())


def test_the_same_configuration_gives_the_same_bytes(undisturbed: Path, tmp_path: Path) -> None:
    train(AGENT, "MountainCar-v0", seeds=2, budget=BUDGET, folder=tmp_path / "run")
    assert contents(tmp_path / "run") == contents(undisturbed)


def test_seeds_together_and_alone_see_the_same(undisturbed: Path) -> None:
    first = OnlineBudget(steps=1, evaluate_every=1, evaluation_episodes=1)
    together = train(AGENT, "MountainCar-v0", seeds=3, budget=first)
    alone = train(AGENT, "MountainCar-v0", seeds=(2,), budget=first)
    ours = together.state.intrinsic.fixed.output.weight[2]
    np.testing.assert_array_equal(ours, alone.state.intrinsic.fixed.output.weight[0])
    assert together.rows[2].evaluation_return == alone.rows[0].evaluation_return


@pytest.mark.parametrize("at", [50, 100, 250, 399])
def test_an_interrupted_run_ends_the_same(at: int, undisturbed: Path, tmp_path: Path) -> None:
    """The script's own handler is called when the run has stopped, and the script goes on."""
    folder, heard = tmp_path / "run", []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))

    def interrupt(step: int, _: Any) -> None:
        if step == at:
            signal.raise_signal(signal.SIGTERM)

    stopped = train(
        AGENT, "MountainCar-v0", seeds=2, budget=BUDGET, folder=folder, on_progress=interrupt
    )
    signal.signal(signal.SIGTERM, before)
    assert (stopped.finished, stopped.step, heard) == (False, at, [signal.SIGTERM])
    assert (folder / "parameters.npz").exists() == (at > BUDGET.checkpoint_every)
    assert resume(folder).finished
    assert contents(folder) == contents(undisturbed)


def test_the_same_command_again_says_that_it_is_done(undisturbed: Path) -> None:
    before = contents(undisturbed)
    again = train(AGENT, "MountainCar-v0", seeds=2, budget=BUDGET, folder=undisturbed)
    assert again.finished
    assert contents(undisturbed) == before
    assert read_config(undisturbed).agent == AGENT


@pytest.mark.parametrize("steps", [None, BUDGET.steps + 100])
def test_a_run_without_its_checkpoints_does_not_start_over(
    steps: int | None, undisturbed: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(undisturbed, folder)
    shutil.rmtree(folder / "checkpoints")
    before = contents(folder)
    with pytest.raises(InputError, match="has results but no checkpoint to go on from; restore"):
        resume(folder, steps=steps)
    with pytest.raises(InputError, match="or train into another folder"):
        train(AGENT, "MountainCar-v0", seeds=2, budget=BUDGET, folder=folder)
    assert contents(folder) == before


def test_a_folder_with_a_space_is_quoted_in_a_command() -> None:
    assert how_to_resume(Path("my run")) == "rewardshift resume 'my run'"


def test_another_run_does_not_get_the_folder(undisturbed: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds a run with another configuration"):
        train(replace(AGENT, tau=0.1), "MountainCar-v0", seeds=2, budget=BUDGET, folder=undisturbed)
    (tmp_path / "precious").write_text("")
    with pytest.raises(InputError, match="is not empty and holds no run"):
        train(AGENT, "MountainCar-v0", budget=BUDGET, folder=tmp_path)


def test_evaluation_does_not_touch_training() -> None:
    more = replace(BUDGET, evaluation_episodes=5)
    agent = replace(AGENT, intrinsic=None)
    ours = train(agent, Probe, budget=BUDGET)
    theirs = train(agent, Probe, budget=more)
    assert [row.metrics for row in ours.rows] == [row.metrics for row in theirs.rows]


def test_the_mechanism_is_visible() -> None:
    """Five hundred actions, most of them never taken. Linear, so that untried ones stay as they
    were; `absorbing`, so that the members share a scale.
    """
    agent = DQN(
        shift=tuple(Shift(bias, terminal="absorbing") for bias in (-1.0, 0.0, 1.0)),
        gamma=0.9,
        network=MLP(()),
        learning_rate=1e-2,
        tau=0.2,
        batch_size=16,
    )
    budget = replace(BUDGET, steps=600, evaluate_every=600, diagnose=True)
    env = partial(Probe, 3, pays=(1.0,) * 500)
    result = train(agent, env, seeds=3, budget=budget)
    for row in result.rows:
        assert row.q_visited is not None
        assert row.q_unvisited is not None
        assert row.q_unvisited > row.q_visited  # the first member is optimistic
        assert row.disagreement_unvisited is not None
        assert row.disagreement_visited is not None
        assert row.disagreement_unvisited > row.disagreement_visited


def test_members_that_start_at_zero_disagree_by_their_shifts() -> None:
    """Also about continuous actions. At this learning rate they stay where they started."""
    shifts = tuple(Shift(bias, terminal="absorbing") for bias in (-1.0, 0.0, 1.0))
    agent = TD3(
        shift=shifts,
        gamma=0.9,
        initial="zero",
        network=MLP((8,)),
        learning_rate=1e-9,
        batch_size=8,
        warm_up=20,
    )
    (row,) = train(
        agent, Aim, budget=replace(BUDGET, evaluate_every=BUDGET.steps, diagnose=True)
    ).rows
    assert (row.q_visited, row.q_unvisited) == pytest.approx((0, 0), abs=1e-4)
    expected = np.std([10.0, 0.0, -10.0])
    assert row.disagreement_visited == pytest.approx(expected, rel=1e-4)
    assert row.disagreement_unvisited == pytest.approx(expected, rel=1e-4)


class Broken(Probe):
    """Works for a while."""

    def __init__(self, what: str) -> None:
        super().__init__(3)
        self.what, self.count = what, 0

    def step(self, action: int) -> Any:
        self.count += 1
        observation, reward, *rest = super().step(action)
        broken = self.count > 120
        if broken and self.what == "observation":
            observation = observation * np.nan
        return observation, float("nan") if broken and self.what == "reward" else reward, *rest


@pytest.mark.parametrize("what", ["observation", "reward"])
def test_a_nan_stops_the_run_and_keeps_what_was_written(what: str, tmp_path: Path) -> None:
    agent = replace(AGENT, intrinsic=None)
    with pytest.raises(TrainingError, match=f"{what} is not finite after step"):
        train(agent, partial(Broken, what), budget=BUDGET, folder=tmp_path / "run")
    assert (tmp_path / "run" / "metrics.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--env", "NoSuchCar-v0"], "no environment 'NoSuchCar-v0'"),
        (["--env", "Pendulum-v1"], "discrete actions"),
        (["--env", "MountainCar-v0", "--seeds", "0"], "seeds must be 1 or more"),
        (["--env", "MountainCar-v0", "--gamma", "1"], "gamma must be in [0, 1)"),
        (["--env", "MountainCar-v0", "--shift", "nan"], "bias must be finite"),
        (["--env", "MountainCar-v0", "--shift"], "shift must be FLOAT [FLOAT ...] | auto("),
        (["--env", "MountainCar-v0", "--intrinsic", "rnd(width=0)"], "width must be a whole"),
    ],
)
def test_bad_input_ends_before_training(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in refused("train", "dqn", *arguments)
    assert not list(tmp_path.rglob("metrics.csv"))


def test_a_run_can_be_watched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    arguments = ["--steps=50", "--evaluate-every=50", "--evaluation-episodes=1", f"--out={folder}"]
    assert main(["train", "dqn", "--env=MountainCar-v0", *arguments]) == 0
    assert "mean return -200.00 over 1 seed\n" in capsys.readouterr().out
    assert main(["play", str(folder)]) == 0
    assert "return -200" in capsys.readouterr().out
    assert (folder / "episode.gif").read_bytes().startswith(b"GIF")
    assert main(["play", str(folder), "--run-seed=7"]) == 2
    assert "seeds [0], not 7" in capsys.readouterr().err
    assert main(["play", str(folder), "--film=x.avi"]) == 2
    assert main(["resume", str(tmp_path)]) == 2
    assert "no run in" in capsys.readouterr().err


def test_config_json_is_the_whole_configuration(undisturbed: Path) -> None:
    body = json.loads((undisturbed / "config.json").read_text())
    assert [member["bias"] for member in body["agent"]["shift"]] == [-0.5, 0.5]
    assert body["agent"]["intrinsic"]["type"] == "RND"
    assert gym.spec(body["env"])
