"""Sweeps from the command line: told, gone on with, written down again, and refused."""

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fuzzing import refused
from test_sweep import BUDGET, TINY, contents

from rewardshift import DQN, Shift
from rewardshift.cli import main
from rewardshift.lab.sweep.agents import SweptAgent
from rewardshift.lab.sweep.declaration import Sweep, read_sweep

FLAGS = (
    *("--env", "CartPole-v1", "--network", "mlp(hidden=(8,))", "--batch-size", "8"),
    *("--steps", "60", "--capacity", "60", "--evaluate-every", "20", "--evaluation-episodes", "1"),
    *("--checkpoint-every", "30"),
)


def test_the_command_tells_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    shift = ["--shift", "-0.5", "-1,0", "0.25", "--scale", "2", "--terminal", "absorbing"]
    command = ["sweep", "dqn", *FLAGS, *shift, "--seeds", "2", "--jobs", "1", "--out", out]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "2 seeds: too few for a verdict, which needs 8." in said
    assert f"report:  {out}/report.html" in said
    folder = Path(out) / "sweep"
    agent = DQN(shift=Shift(0.0, 2.0, terminal="absorbing"), **TINY)
    swept = SweptAgent(agent, "CartPole-v1", BUDGET)
    assert read_sweep(folder) == Sweep(swept, (-0.5, (-1.0, 0.0), 0.25))
    before = contents(Path(out))
    provenance = json.loads((folder / "provenance.json").read_text())
    assert shlex.split(provenance["command"]) == ["rewardshift", *command]
    assert main(command) == 0
    assert "no unit of work is left to do" in capsys.readouterr().out
    assert contents(Path(out)) == before


def test_a_unit_that_ends_tells_the_time_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["sweep", "dqn", *FLAGS, "--shift", "1", "--seeds", "1", f"--out={tmp_path / 'out'}"]
    assert main(line) == 0
    assert re.search(r"1/1 done, about 0 s left: ", capsys.readouterr().err)


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
        ("", "Missing from rewardshift sweep dqn: --shift"),
        ("--shift 0", "a constant other than 0"),
        ("--shift a", "Error parsing --shift"),
        ("--shift 1 1", "must differ"),
        ("--shift 1 nan", "must be a tuple, each finite or 'auto'"),
        ("--shift auto auto", "must differ"),
        ("--shift auto --scale 2", "'auto' has a scale of its own"),
        ("--shift auto -1 --terminal zero", "leave --terminal zero out"),
        ("--shift auto --n-step 3", "needs n_step=1"),
        ("--shift 1 --seeds 0", "seeds must be 1 or more"),
        ("--shift 1 --jobs 0", "jobs must be a whole number of 1 or more"),
        ("--shift 1 --env NoSuch-v0", "NoSuch"),
        ("--shift 1 --env Pendulum-v1", "discrete actions"),
    ],
)
def test_a_bad_sweep_is_refused(flags: str, message: str, tmp_path: Path) -> None:
    env = [] if "--env" in flags else ["--env", "CartPole-v1"]
    out = tmp_path / "out"
    assert message in refused("sweep", "dqn", *env, *flags.split(), "--out", str(out))
    assert not out.exists()
