"""What goes wrong on the way: units that fail, work in parts, folders that are in use."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from probes import Probe

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift import DQN, OnlineBudget, train
from rewardshift.agents.networks import MLP
from rewardshift.cli import main
from rewardshift.errors import InputError
from rewardshift.lab import FIGURES, Curve, Figure, Unit, train_unit
from rewardshift.lab.processes import DIED, Processes
from rewardshift.lab.results import unit_name
from rewardshift.lab.runner import RUNNING, Plan, pending_units, perform_unit, run_units
from rewardshift.paper.tables import run_tables
from rewardshift.training.run_folder import check_folder, note_time, run_in_folder
from rewardshift.training.runs import online_run

SMALL = DQN(network=MLP((8,)), batch_size=8)
BUDGET = OnlineBudget(
    steps=200, capacity=150, evaluate_every=100, evaluation_episodes=1, checkpoint_every=50
)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> str:
    """A figure, one of whose methods always fails."""
    figure = FIGURES["maze-sizes"]
    broken = figure.methods[1].name

    def run(whole: Figure, unit: Unit, folder: Path) -> list[Curve]:
        if broken in unit.methods:
            raise ZeroDivisionError("it <b>always</b> fails")
        return run_tables(whole, unit, folder)

    monkeypatch.setitem(FIGURES, figure.name, replace(figure, run=run, unit_spans=("task",)))
    return broken


def test_a_unit_that_fails_is_told_and_the_rest_is_drawn(
    failing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["reproduce", "maze-sizes", "--preset=smoke", "--jobs=1", f"--out={tmp_path}"]
    assert main(command) == 1
    said = capsys.readouterr()
    assert "ZeroDivisionError: it <b>always</b> fails" in said.err
    assert f"{failing}, seed 0, seed 1" in said.err
    assert "1 unit of work failed, see above; the same command runs what is missing" in said.err
    assert "not tested" in said.out
    folder = tmp_path / "maze-sizes"
    claims = json.loads((folder / "claims.json").read_text())
    for claim in claims:
        gone = failing in (claim["better"], claim["worse"])
        assert (claim["verdict"] == "not tested") == gone
    (missing,) = json.loads((folder / "provenance.json").read_text())["missing"]
    assert missing.endswith(f"{failing}: seeds 0, 1")
    assert f"Missing: {missing}" in (tmp_path / "report.html").read_text()
    assert "MISSING" in (folder / "figure.svg").read_text()
    assert main(["report", str(tmp_path)]) == 0


def test_a_figure_of_which_nothing_is_left_is_not_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*_: Any) -> list[Curve]:
        raise InputError("no data")

    monkeypatch.setitem(FIGURES, "figure1", replace(FIGURES["figure1"], run=run))
    assert main(["reproduce", "figure1", "--preset=smoke", "--jobs=1", f"--out={tmp_path}"]) == 1
    assert "no data" in capsys.readouterr().err
    assert not (tmp_path / "figure1" / "results.csv").exists()


def test_a_worker_that_is_killed_takes_nothing_with_it(tmp_path: Path) -> None:
    plan = Plan("figure1", "smoke", 4, "zero", tmp_path)
    with subprocess.Popen([sys.executable, "-c", KILLER, str(os.getpid())]) as killer:
        errors = [outcome.error for outcome in run_units(plan, pending_units(plan), Processes(2))]
    assert killer.returncode == 0  # it has found one
    assert errors == [None, None]
    assert pending_units(plan) == []


@dataclass(eq=False)
class Trouble:
    """A budget at whose use a worker dies, or leaves, or cannot send what it has."""

    kind: str
    evaluate_first: bool = False

    def __hash__(self) -> int:
        if not in_worker():
            raise TypeError("it has no hash")
        if self.kind == "death":
            os.kill(os.getpid(), signal.SIGKILL)
        raise SystemExit(0)

    @property
    def steps(self) -> int:
        hash(self)
        return 0

    def __reduce__(self) -> Any:
        if self.kind == "silence" and in_worker():
            raise TypeError("it cannot be sent back")
        return Trouble, (self.kind,)


def in_worker() -> bool:
    return multiprocessing.parent_process() is not None


def test_a_unit_in_trouble_is_told_alone(tmp_path: Path) -> None:
    plan = Plan("figure1", "smoke", 2, "zero", tmp_path)
    (unit,) = pending_units(plan)
    kinds = ("death", "exit", "silence")
    troubled = [
        unit._replace(budget=Trouble(kind), seeds=(90 + number,))
        for number, kind in enumerate(kinds)
    ]
    outcomes = run_units(plan, [unit, *troubled], Processes(2))
    errors = {outcome.unit.seeds: outcome.error for outcome in outcomes}
    assert errors.pop(unit.seeds) is None
    assert errors.pop((90,)) == DIED
    assert "SystemExit: 0" in str(errors.pop((91,)))
    assert "it cannot be sent back" in str(errors.pop((92,)))
    assert not errors


def test_the_duration_of_a_unit_counts_what_was_spent_before(tmp_path: Path) -> None:
    plan = Plan("figure1", "smoke", 1, "zero", tmp_path)
    (unit,) = pending_units(plan)
    first = perform_unit(plan, unit).result
    assert first is not None
    folder = plan.folder / RUNNING / unit_name(first.digest, unit.seeds)
    folder.mkdir(parents=True)
    (folder / "of-a-method").mkdir()
    note_time(folder / "of-a-method", 10, 7000)
    note_time(folder, 20, 300.25)
    with (folder / "timing.csv").open("a") as file:
        file.write("30,99")  # cut by a kill
    again = perform_unit(plan, unit).result
    assert again is not None
    assert 7300.25 < again.seconds < 7390


# Kills the first child of a process that appears and works.
KILLER = """
import os, signal, sys, time
for _ in range(600):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{pid}/cmdline").read()
            parent = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1]
        except OSError:
            continue
        if parent == sys.argv[1] and "import spawn_main" in words and int(pid) != os.getpid():
            os.kill(int(pid), signal.SIGKILL)
            sys.exit(0)
    time.sleep(0.05)
sys.exit(1)
"""


def test_a_unit_goes_on_from_its_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the second half of a unit, it does not begin again, and ends the same."""
    figure = FIGURES["curiosity-stored"]
    budget = replace(figure.presets["smoke"].budget, steps=14_000)
    unit = Unit(tuple(figure.tasks), ("rnd-1",), (0,), budget, "zero")
    whole = train_unit(figure, unit, tmp_path / "whole")
    code = (
        "from pathlib import Path; import rewardshift.paper;"
        "from rewardshift.lab import FIGURES, Budget, Unit, train_unit;"
        f"figure = FIGURES['curiosity-stored']; unit = Unit({unit.tasks!r}, {unit.methods!r}, (0,),"
        f" {budget!r}, 'zero'); train_unit(figure, unit, Path({str(tmp_path / 'killed')!r}))"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    timing = tmp_path / "killed" / "timing.csv"  # has its line when the checkpoint is there
    deadline = time.monotonic() + 600  # of a busy machine
    while not (timing.exists() and "\n10000," in timing.read_text()):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert train_unit(figure, unit, tmp_path / "killed") == whole
    times = (tmp_path / "killed" / "timing.csv").read_text()
    assert times.count("\n10000,") == 1


def test_a_folder_in_use_is_refused_until_its_process_is_dead(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    code = (
        "import sys, time; sys.path.insert(0, 'tests'); from probes import Probe;"
        "from rewardshift import DQN, MLP, OnlineBudget, Shift, train;"
        "from rewardshift.agents.selection import Uniform;"
        f"train({SMALL!r}, Probe, budget={BUDGET!r}, folder={str(folder)!r},"
        " on_progress=lambda *_: (print('here', flush=True), time.sleep(60)))"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=Path(__file__).parents[1]
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"here\n"
    with pytest.raises(InputError, match=f"is in use by the process {holder.pid}: wait"):
        train(SMALL, Probe, budget=BUDGET, folder=folder)
    holder.kill()
    holder.communicate()
    assert train(SMALL, Probe, budget=BUDGET, folder=folder).finished


def test_who_comes_second_is_refused_even_if_the_folder_was_free_before(tmp_path: Path) -> None:
    mine, other = (online_run(SMALL, Probe, seed, BUDGET) for seed in (1, 2))
    check_folder(tmp_path / "run", other.config)
    mine.start(tmp_path / "run")
    kept = (tmp_path / "run" / "config.json").read_bytes()
    with pytest.raises(InputError, match="with another configuration"):
        run_in_folder(other.config, other.make(), tmp_path / "run", print)
    assert (tmp_path / "run" / "config.json").read_bytes() == kept


def test_a_run_in_a_thread(tmp_path: Path) -> None:
    """Signals are the main thread's; everything else is as there."""
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(train, SMALL, Probe, budget=BUDGET, folder=tmp_path / "run")
        assert run.result().finished
