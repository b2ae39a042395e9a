"""Sweeps from the command line: told, gone on with, written down again, and refused."""

import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tyro
from fuzzing import as_installed
from test_sweep import contents

from rewardshift.cli import main
from rewardshift.cli.sweeps import SweepJob, sweep_jobs
from rewardshift.cli.train import Job, jobs
from rewardshift.lab.sweep.agents import SweptAgent

FLAGS = (
    *("--env", "CartPole-v1", "--network", "mlp(hidden=(8,))", "--batch-size", "8"),
    *("--steps", "60", "--capacity", "60", "--evaluate-every", "20", "--evaluation-episodes", "1"),
    *("--checkpoint-every", "30"),
)


def parse(kind: Callable[[list[str]], Any], line: list[str]) -> Any:
    markers = (tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes)
    with as_installed():
        return tyro.cli(kind(line), args=line[1:], config=markers)


@pytest.mark.parametrize(
    "line",
    [
        "dqn --env CartPole-v1 --shift -1 0.5 --double --gamma 0.9 --steps 70",
        "dqn --env CartPole-v1 --shift auto -0.5 0 --terminal absorbing --double --steps 70",
        "dqn --env CartPole-v1 --optimism auto 2 --values 0 20",
        "td3 --env Pendulum-v1 --shift auto",
        "dqn --env CartPole-v1 --shift -0.5,0,0.5 -0.5 --seeds 150",
        "dqn --env CartPole-v1 --optimism 2 --rewards -1 0 --intrinsic rnd(shift=-1.0) --seeds 3",
        "td3 --env Pendulum-v1 --shift -1 --scale 0.5 --terminal absorbing --reward-range -17 0",
        "cql --data a.npz --env Pendulum-v1 --shift 4 --transitions 50 --network mlp(hidden=(8,))",
    ],
)
def test_the_commands_are_what_was_asked_for(line: str) -> None:
    asked: SweepJob = parse(sweep_jobs, ["sweep", *line.split()])
    kept = asked.file
    assert isinstance(kept.sweep.subject, SweptAgent)
    same: SweepJob = parse(sweep_jobs, shlex.split(kept.command)[1:])
    assert same.file == kept
    for constant, text in zip(kept.sweep.constants, kept.training.values(), strict=True):
        job: Job = parse(jobs, shlex.split(text)[1:])
        assert job.agent == kept.sweep.subject.with_constant(constant)
        assert job.budget == kept.sweep.subject.budget
        assert job.options.seeds == asked.options.seeds
        assert job.options.first_seed >= asked.options.seeds  # seeds that the sweep has not seen


def test_the_command_tells_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    command = ["sweep", "dqn", *FLAGS, "--shift", "-0.5", "--seeds", "2", "--jobs", "1"]
    assert main([*command, "--out", out]) == 0
    said = capsys.readouterr().out
    assert "2 seeds: too few for a verdict, which needs 8." in said
    assert "train:   rewardshift train dqn --shift" in said
    assert f"report:  {out}/report.html" in said
    before = contents(Path(out))
    assert main([*command, "--out", out]) == 0
    assert "no unit of work is left to do" in capsys.readouterr().out
    assert contents(Path(out)) == before


def test_the_time_left_is_told_by_the_speed_of_the_work_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is trained only to measure it, and a second start measures again what is left."""
    line = [*FLAGS, "--steps", "4000", "--checkpoint-every", "50", "--evaluate-every", "4000"]
    out = tmp_path / "out"
    assert main(["sweep", "dqn", *line, "--shift", "1", "--seeds", "1", f"--out={out}"]) == 0
    told = capsys.readouterr().err
    assert re.search(r"1 unit of work, about \d+ (s|min) left by the speed so far", told)


def test_an_interrupted_sweep_goes_on_to_the_same_results(tmp_path: Path) -> None:
    line = [*FLAGS, "--steps", "1000", "--checkpoint-every", "20", "--evaluate-every", "500"]
    command = ["sweep", "dqn", *line, "--shift", "-0.5", "--seeds", "1", "--jobs", "1", "--out"]
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heeding}; from rewardshift.cli import console; console()"
    stopped = tmp_path / "stopped"
    begun = subprocess.Popen(
        [sys.executable, "-c", code, *command, str(stopped)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while begun.poll() is None and not list(stopped.glob("sweep/running/*/checkpoints/*")):
        time.sleep(0.05)
    begun.send_signal(signal.SIGINT)
    _, told = begun.communicate()
    assert begun.returncode == 130
    assert "the same command goes on from here" in told
    assert not list(stopped.glob("sweep/units/*.json"))
    (config,) = stopped.glob("sweep/running/*/config.json")
    assert main([*command, str(stopped)]) == 0
    assert not config.exists()  # the unit went on in its folder, and is finished
    assert main([*command, str(tmp_path / "whole")]) == 0
    results = [out / "sweep" / "results.csv" for out in (stopped, tmp_path / "whole")]
    assert results[0].read_bytes() == results[1].read_bytes()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("", "give either shift or optimism"),
        ("--shift 0", "a constant other than 0"),
        ("--shift 1 1", "must differ"),
        ("--shift 1 nan", "must be a tuple, each finite or 'auto'"),
        ("--shift auto auto", "must differ"),
        ("--shift auto --scale 2", "'auto' has a scale of its own"),
        ("--shift auto -1 --terminal zero", "leave --terminal zero out"),
        ("--shift auto --n-step 3", "needs n_step=1"),
        ("--optimism 1", "--values LOW HIGH"),
        ("--optimism 1 --values 2 1", "low < high"),
        ("--shift 1 --values 0 1 --rewards 0 1", "either values or rewards"),
        ("--shift 1 --seeds 0", "seeds must be 1 or more"),
        ("--shift 1 --jobs 0", "jobs must be a whole number of 1 or more"),
        ("--shift 1 --env NoSuch-v0", "NoSuch"),
        ("--shift 1 --env Pendulum-v1", "discrete actions"),
    ],
)
def test_a_bad_sweep_is_refused_in_one_line(
    flags: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env = [] if "--env" in flags else ["--env", "CartPole-v1"]
    with as_installed():
        code = main(["sweep", "dqn", *env, *flags.split(), "--out", str(tmp_path / "out")])
    told = capsys.readouterr().err
    assert (code, told.count("\n")) == (2, 1)
    assert message in told
    assert not (tmp_path / "out").exists()
