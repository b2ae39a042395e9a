"""Sweeps: constants as rows, the folder, the answer, and the command line."""

import csv
import json
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import scipy.stats
import tyro
from data_makers import random_data, save_npz
from fuzzing import as_installed
from hypothesis import given
from hypothesis import strategies as st
from selenium_axe_python.axe import Axe
from test_page import Browser

from rewardshift import (
    CQL,
    DQN,
    MLP,
    RND,
    TD3,
    Constants,
    InputError,
    OfflineBudget,
    OnlineBudget,
    Shift,
    SweepTask,
    sweep,
    train,
)
from rewardshift.cli import main
from rewardshift.cli.agents import Job, jobs
from rewardshift.cli.parts import REGISTRY
from rewardshift.cli.sweeps import SweepJob, sweep_jobs
from rewardshift.experiments.constants import biases_of, with_constant
from rewardshift.experiments.results import read_results
from rewardshift.experiments.rows import rows_run, train_rows
from rewardshift.experiments.sweep import Sweep
from rewardshift.experiments.sweeping import read_sweep
from rewardshift.report import write_report
from rewardshift.report.statistics import mean_interval

TINY: dict[str, Any] = {"network": MLP((8,)), "batch_size": 8}
BUDGET = OnlineBudget(
    steps=60, capacity=60, evaluate_every=20, evaluation_episodes=1, checkpoint_every=30
)
FLAGS = (
    *("--env", "CartPole-v1", "--network", "mlp(hidden=(8,))", "--batch-size", "8"),
    *("--steps", "60", "--capacity", "60", "--evaluate-every", "20", "--evaluation-episodes", "1"),
    *("--checkpoint-every", "30"),
)


@pytest.mark.parametrize(
    ("agent", "env"),
    [
        (DQN(**TINY), "CartPole-v1"),
        (
            DQN(shift=Shift(0.0, 0.5, terminal="absorbing"), n_step=3, double=True, **TINY),
            "CartPole-v1",
        ),
        (DQN(intrinsic=RND(-1.0, width=8), **TINY), "CartPole-v1"),
        (TD3(warm_up=20, **TINY), "Pendulum-v1"),
    ],
    ids=["dqn", "absorbing-n-step", "rnd", "td3"],
)
def test_a_row_learns_as_its_agent_does_alone(agent: Any, env: str) -> None:
    shifts = [replace(agent.members[0], bias=bias) for bias in (0.0, -0.5)]
    agents = [replace(agent, shift=shift) for shift in shifts]
    together = train_rows(rows_run(agents, env, (0, 3), BUDGET), None)
    for one, found in zip(agents, together, strict=True):
        alone = train(one, env, seeds=(0, 3), budget=BUDGET)
        assert [(row.seed, row.step) for row in found.rows] == [
            (row.seed, row.step) for row in alone.rows
        ]
        for ours, theirs in zip(found.rows, alone.rows, strict=True):
            assert ours.evaluation_return == pytest.approx(theirs.evaluation_return, rel=1e-4)
            assert ours.metrics == pytest.approx(theirs.metrics, rel=1e-3, abs=1e-5)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sweep") / "out"
    constants = Constants(optimism=(0.5, 2.0), values=(0.0, 20.0))
    found = sweep(DQN(**TINY), "CartPole-v1", constants, folder=out, seeds=2, budget=BUDGET)
    assert [point.method for point in found.points] == ["none", "-0.5", "-2"]
    assert [point.optimism for point in found.points] == pytest.approx([0.0, 0.5, 2.0])
    assert [one.metric for one in found.findings] == ["auc", "final"]
    assert "Inconclusive: 2 seeds; a verdict needs 8." in found.findings[0].words or (
        "No constant has a higher mean than none" in found.findings[0].words
    )
    assert found.findings[0].training.startswith("train(DQN(")
    assert found.page == out / "report.html"
    return out


def contents(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.*")}


def again(out: Path, **changes: Any) -> Any:
    settings = {"agent": DQN(**TINY), "task": "CartPole-v1", "seeds": 2, "budget": BUDGET}
    constants = Constants(optimism=(0.5, 2.0), values=(0.0, 20.0))
    return sweep(**{**settings, "constants": constants, "folder": out, **changes})


def test_a_sweep_is_a_figure_on_disk(swept: Path) -> None:
    folder = swept / "sweep"
    with (folder / "response.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert [(row["constant"], row["metric"]) for row in rows] == [
        (bias, metric) for bias in ("0", "-0.5", "-2") for metric in ("auc", "final")
    ]
    assert {row["seeds"] for row in rows} == {"2"}
    provenance = json.loads((folder / "provenance.json").read_text())
    assert provenance["command"].startswith("sweep(DQN(network=MLP(hidden=(8,)), batch_size=8)")
    assert (folder / "response.png").read_bytes().startswith(b"\x89PNG")
    claims = json.loads((folder / "claims.json").read_text())
    assert [(claim["better"], claim["worse"]) for claim in claims] == [
        (bias, "none") for bias in ("-0.5", "-2") for _ in range(2)
    ]
    assert {claim["verdict"] for claim in claims} == {"inconclusive"}  # two seeds
    page = (swept / "report.html").read_text()
    assert "a sweep of constants" in page
    assert "too few for a verdict" in page
    assert "figure1" not in page


@pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("chromedriver")),
    reason="chromium or chromium-driver is not installed",
)
def test_the_page_of_a_sweep_in_a_browser(swept: Path) -> None:
    with Browser() as browser:
        browser.get((swept / "report.html").as_uri())
        figure = browser.show("sweep")
        assert browser.one(f"{figure} img.response").is_displayed()
        assert len(browser.all(f"{figure} table.response tbody tr")) == 3
        axe = Axe(browser)
        axe.inject()
        assert axe.run()["violations"] == []
        assert browser.log("browser") == []


def test_the_report_and_the_sweep_again_change_nothing(swept: Path) -> None:
    before = contents(swept)
    write_report(swept)
    assert contents(swept) == before
    again(swept)
    assert contents(swept) == before


def test_another_sweep_in_the_same_folder_is_refused(swept: Path) -> None:
    before = contents(swept)
    others: list[dict[str, Any]] = [
        {"agent": DQN(gamma=0.9, **TINY)},
        {"constants": [-1.0]},
        {"budget": replace(BUDGET, steps=80)},
        {"task": "MountainCar-v0"},
    ]
    for other in others:
        with pytest.raises(InputError, match="holds a sweep with another configuration"):
            again(swept, **other)
    with pytest.raises(InputError, match="holds a sweep"):
        _ = again(swept / "sweep" / "..", agent=DQN(gamma=0.9, **TINY))
    assert main(["reproduce", "figure1", "--preset", "smoke", "--out", str(swept)]) == 2
    assert contents(swept) == before


def test_more_seeds_go_on(swept: Path, tmp_path: Path) -> None:
    units = {path: path.stat().st_mtime_ns for path in (swept / "sweep" / "units").iterdir()}
    found = again(swept, seeds=3)
    assert {point.seeds for point in found.points} == {3}
    assert {path: path.stat().st_mtime_ns for path in units} == units
    whole = again(tmp_path / "whole", seeds=3)
    assert [point.returns for point in whole.points] == [point.returns for point in found.points]
    again(swept)  # as it was


@pytest.mark.parametrize("where", ["figure1", "sweep"])
def test_a_folder_with_other_things_is_refused(where: str, tmp_path: Path) -> None:
    (tmp_path / where).mkdir()
    (tmp_path / where / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds figures|is not empty"):
        again(tmp_path)
    assert contents(tmp_path) == {f"{where}/mine.txt": b"mine"}


def test_the_declaration_is_read_back(swept: Path) -> None:
    kept = read_sweep(swept / "sweep").sweep
    assert Sweep.from_json(json.loads(json.dumps(kept.to_json()))) == kept
    text = (swept / "sweep" / "sweep.json").read_text()
    (swept / "sweep" / "sweep.json").write_text(text.replace("CartPole", "MountainCar"))
    try:
        with pytest.raises(InputError, match="checksum"):
            write_report(swept)
    finally:
        (swept / "sweep" / "sweep.json").write_text(text)


def test_a_sweep_on_a_data_set(tmp_path: Path) -> None:
    file = save_npz(tmp_path / "p.npz", random_data(lambda: gym.make("Pendulum-v1"), 60))
    agent = CQL(cloning_updates=2, candidates=2, **TINY)
    budget = OfflineBudget(updates=8, evaluate_every=4, evaluation_episodes=1, checkpoint_every=4)
    task = SweepTask("Pendulum-v1", data=str(file))
    found = sweep(agent, task, [4.0], folder=tmp_path / "out", seeds=1, budget=budget)
    assert [point.constant for point in found.points] == [4.0, 0.0]
    assert found.findings[0].training.startswith("train_offline(CQL(")


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep with `auto` among its constants."""
    out = tmp_path_factory.mktemp("ruled") / "out"
    found = again(out, constants=["auto", -0.5, 0.0])
    assert [point.constant for point in found.points] == [0.0, -0.5, "auto"]
    assert [point.label for point in found.points] == ["none", "b = -0.5", "auto (terminal goal)"]
    return out


def test_auto_is_one_more_candidate(ruled: Path) -> None:
    folder = ruled / "sweep"
    claims = json.loads((folder / "claims.json").read_text())
    assert [claim["better"] for claim in claims] == ["-0.5", "-0.5", "auto", "auto"]
    with (folder / "response.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert [row["constant"] for row in rows] == ["0", "0", "-0.5", "-0.5", "auto", "auto"]
    assert "dash-dotted: auto" in (folder / "response.svg").read_text()
    assert "auto (terminal goal)" in (ruled / "report.html").read_text()
    kept = read_sweep(folder)
    assert Sweep.from_json(json.loads(json.dumps(kept.sweep.to_json()))) == kept.sweep
    assert kept.training["auto"].startswith("train(DQN(shift=Auto(), ")
    assert "constants=[0.0, -0.5, 'auto']" in kept.command


def test_auto_learns_as_its_agent_does_alone(ruled: Path) -> None:
    alone = train(DQN(shift="auto", **TINY), "CartPole-v1", seeds=2, budget=BUDGET)
    curves = read_results(ruled / "sweep" / "results.csv")
    for seed in range(2):
        (curve,) = [one for one in curves if (one.method, one.seed) == ("auto", seed)]
        wanted = [row.evaluation_return for row in alone.rows if row.seed == seed]
        assert curve.values == pytest.approx(wanted, rel=1e-5)


def test_auto_is_a_unit_of_work_beside_the_rows(ruled: Path) -> None:
    before = contents(ruled)
    assert len(list((ruled / "sweep" / "units").iterdir())) == 2
    again(ruled, constants=[-0.5, "auto"])
    assert contents(ruled) == before
    with pytest.raises(InputError, match="another configuration"):
        again(ruled, constants=[-0.5])
    found = again(ruled, constants=[-0.5, "auto"], seeds=3)
    assert {point.seeds for point in found.points} == {3}


@given(
    places=st.lists(st.floats(-5, 5), min_size=1, max_size=4),
    low=st.floats(-100, 100),
    width=st.floats(0.1, 100),
    gamma=st.floats(0, 0.99),
    scale=st.floats(0.1, 10),
)
def test_a_bias_has_the_wanted_optimism(
    places: list[float], low: float, width: float, gamma: float, scale: float
) -> None:
    shift, values = Shift(0.0, scale, gamma), (low, low + width)
    for place, bias in zip(places, biases_of(places, values, shift), strict=True):
        found = replace(shift, bias=bias).optimism(*values)
        assert found == pytest.approx(place, abs=1e-5 * (1 + (abs(low) + 6 * width) / width))


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12))
def test_the_interval_of_a_mean_is_students(scores: list[float]) -> None:
    found = mean_interval(np.array(scores))
    if np.ptp(scores) > 1e-6:
        theirs = scipy.stats.ttest_1samp(scores, 0).confidence_interval(0.95)
        assert (found.low, found.high) == pytest.approx(tuple(theirs))
    assert found.mean == pytest.approx(np.mean(scores))
    assert mean_interval(np.array(scores[:1])).low is None


def parse(kind: Callable[[list[str]], Any], line: list[str]) -> Any:
    markers = (tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes)
    with as_installed():
        return tyro.cli(kind(line), args=line[1:], config=markers, registry=REGISTRY)


@pytest.mark.parametrize(
    "line",
    [
        "dqn --env CartPole-v1 --shift -1 0.5 --double --gamma 0.9 --steps 70",
        "dqn --env CartPole-v1 --shift auto -0.5 0 --terminal absorbing --double --steps 70",
        "dqn --env CartPole-v1 --optimism auto 2 --values 0 20",
        "td3 --env Pendulum-v1 --shift auto",
        "dqn --env CartPole-v1 --optimism 2 --rewards -1 0 --intrinsic rnd(shift=-1.0) --seeds 3",
        "td3 --env Pendulum-v1 --shift -1 --scale 0.5 --terminal absorbing --reward-range -17 0",
        "cql --data a.npz --env Pendulum-v1 --shift 4 --transitions 50 --network mlp(hidden=(8,))",
    ],
)
def test_the_commands_are_what_was_asked_for(line: str) -> None:
    asked: SweepJob = parse(sweep_jobs, ["sweep", *line.split()])
    kept = asked.kept()
    same: SweepJob = parse(sweep_jobs, shlex.split(kept.command)[1:])
    assert same.kept() == kept
    for constant, text in zip(kept.sweep.constants, kept.training.values(), strict=True):
        job: Job = parse(jobs, shlex.split(text)[1:])
        assert job.options.shifted(job.agent) == with_constant(kept.sweep.agent, constant)
        assert job.budget == kept.sweep.budget
        assert job.options.seeds == asked.options.seeds


def test_the_command_tells_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    command = ["sweep", "dqn", *FLAGS, "--shift", "-0.5", "--seeds", "2", "--jobs", "1"]
    assert main([*command, "--out", out]) == 0
    said = capsys.readouterr().out
    assert "1 unit of work, about" in said
    assert "2 seeds: too few for a verdict, which needs 8." in said
    assert "train:   rewardshift train dqn --shift" in said
    assert f"report:  {out}/report.html" in said
    before = contents(Path(out))
    assert main([*command, "--out", out]) == 0
    assert "no unit of work is left to do" in capsys.readouterr().out
    assert contents(Path(out)) == before


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
        ("--shift auto --scale 2", "'auto' chooses the scale itself"),
        ("--shift auto --n-step 3", "needs n_step=1"),
        ("--optimism 1", "--values LOW HIGH"),
        ("--optimism 1 --values 2 1", "low < high"),
        ("--shift 1 --values 0 1 --rewards 0 1", "either values or rewards"),
        ("--shift 1 --seeds 0", "seeds must be 1 or more"),
        ("--shift 1 --jobs 0", "jobs must be 1 or more"),
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


@pytest.mark.parametrize(
    "changes",
    [
        {"agent": DQN},
        {"agent": DQN(shift=(-1.0, 1.0), **TINY)},
        {"agent": DQN(shift="auto", **TINY)},
        {"agent": CQL(**TINY), "constants": ["auto"]},
        {"constants": 0.5},
        {"constants": []},
        {"constants": ["a"]},
        {"task": "NoSuch-v0"},
        {"budget": OfflineBudget()},
        {"seeds": 0},
    ],
)
def test_a_bad_call_is_refused_before_any_work(changes: dict[str, Any], tmp_path: Path) -> None:
    with as_installed(), pytest.raises(InputError):
        again(tmp_path / "out", **changes)
    assert not (tmp_path / "out").exists()
