"""Sweeps: the folder, the answer, `auto` among the constants."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import outside
import pytest
from browser import Browser, needs_browser
from data_makers import random_data, save_npz
from fuzzing import as_installed
from selenium_axe_python.axe import Axe

from rewardshift import (
    CQL,
    DQN,
    MLP,
    InputError,
    OfflineBudget,
    OnlineBudget,
    sweep,
    train,
)
from rewardshift.cli import main
from rewardshift.lab.results import read_results
from rewardshift.report import write_report

TINY: dict[str, Any] = {"network": MLP((8,)), "batch_size": 8}
BUDGET = OnlineBudget(
    steps=60, capacity=60, evaluate_every=20, evaluation_episodes=1, checkpoint_every=30
)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sweep") / "out"
    found = again(out)
    assert [point.method for point in found.points] == ["none", "-0.5", "-2"]
    assert [one.metric for one in found.findings] == ["auc", "final"]
    assert "Inconclusive: 2 seeds; a verdict needs 8." in found.findings[0].words or (
        "No constant has a higher mean than none" in found.findings[0].words
    )
    best_is_none = all(one.best.method == "none" for one in found.findings)
    assert best_is_none or "seeds=range(100, 102)" in found.advice
    assert found.page == out / "report.html"
    return out


def contents(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.*")}


def again(out: Path, **changes: Any) -> Any:
    settings = {"subject": DQN(**TINY), "env": "CartPole-v1", "seeds": 2, "budget": BUDGET}
    return sweep(**{**settings, "constants": [-0.5, -2], "folder": out, **changes})


def test_a_sweep_is_a_figure_on_disk(swept: Path) -> None:
    folder = swept / "sweep"
    with (folder / "response.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert [(row["constant"], row["metric"]) for row in rows] == [
        (bias, metric) for bias in ("0", "-0.5", "-2") for metric in ("auc", "final")
    ]
    assert {row["seeds"] for row in rows} == {"2"}
    provenance = json.loads((folder / "provenance.json").read_text())
    call = "'CartPole-v1', [0.0, -0.5, -2.0], seeds=2, budget=OnlineBudget(steps=60"
    assert provenance["command"].startswith("sweep(DQN(")
    assert call in provenance["command"]
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


@needs_browser
def test_the_page_of_a_sweep_in_a_browser(swept: Path) -> None:
    with Browser() as browser:
        browser.get((swept / "report.html").as_uri())
        figure = browser.show("sweep")
        assert browser.one(f"{figure} .wide img").is_displayed()
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
        {"subject": DQN(gamma=0.9, **TINY)},
        {"constants": [-1.0]},
        {"budget": replace(BUDGET, steps=80)},
        {"env": "MountainCar-v0"},
    ]
    for other in others:
        with pytest.raises(InputError, match="holds a sweep with another configuration"):
            again(swept, **other)
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


def test_a_sweep_on_a_data_set(tmp_path: Path) -> None:
    file = save_npz(tmp_path / "p.npz", random_data(lambda: gym.make("Pendulum-v1"), 60))
    agent = CQL(cloning_updates=2, candidates=2, **TINY)
    budget = OfflineBudget(updates=8, evaluate_every=4, evaluation_episodes=1, checkpoint_every=4)
    where: dict[str, Any] = {"data": str(file), "folder": tmp_path / "out"}
    found = sweep(agent, "Pendulum-v1", [4.0], seeds=1, budget=budget, **where)
    assert [point.constant for point in found.points] == [4.0, 0.0]


def make_cart_pole() -> gym.Env[Any, Any]:
    return gym.make("CartPole-v1")


@pytest.mark.parametrize(
    ("agent", "env"),
    [(outside.Linear(), "CartPole-v1"), (DQN(**TINY), make_cart_pole)],
    ids=["agent from outside", "function that makes the environment"],
)
def test_what_train_takes_a_sweep_takes(agent: Any, env: Any, tmp_path: Path) -> None:
    found = again(tmp_path / "out", subject=agent, env=env, constants=[-0.5], seeds=1)
    assert [point.constant for point in found.points] == [0.0, -0.5]
    alone = train(replace(agent, shift=-0.5), env, seeds=1, budget=BUDGET)
    curves = read_results(tmp_path / "out" / "sweep")
    (curve,) = [one for one in curves if one.method == "-0.5"]
    assert curve.values == pytest.approx([row.evaluation_return for row in alone.rows], rel=1e-5)
    write_report(tmp_path / "out")  # which makes no environment


def test_members_are_constants_too(tmp_path: Path) -> None:
    found = again(tmp_path / "out", constants=[(-0.5, 0.0, 0.5)], seeds=1)
    assert [point.label for point in found.points] == ["none", "members -0.5, 0, 0.5"]
    assert found.points[1].constant == (-0.5, 0.0, 0.5)
    assert "-0.5,0,0.5" in (tmp_path / "out" / "sweep" / "response.svg").read_text()


def test_no_constant_is_best_among_equals(tmp_path: Path) -> None:
    """On MountainCar, no short training reaches the flag."""
    found = again(tmp_path / "out", env="MountainCar-v0", seeds=1)
    assert [one.words for one in found.findings] == [
        "No best constant over the whole training: the mean return of each is -200.",
        "No best constant at its end: the mean return of each is -200.",
    ]
    assert {one.best.method for one in found.findings} == {"none"}
    assert found.advice == ""


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep with `auto` among its constants."""
    out = tmp_path_factory.mktemp("ruled") / "out"
    found = again(out, constants=["auto", -0.5, 0.0])
    assert [point.constant for point in found.points] == [0.0, -0.5, "auto"]
    assert [point.label for point in found.points] == ["none", "b = -0.5", "auto"]
    return out


def test_auto_is_one_more_candidate(ruled: Path) -> None:
    folder = ruled / "sweep"
    claims = json.loads((folder / "claims.json").read_text())
    assert [claim["better"] for claim in claims] == ["-0.5", "-0.5", "auto", "auto"]
    with (folder / "response.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert [row["constant"] for row in rows] == ["0", "0", "-0.5", "-0.5", "auto", "auto"]
    assert "<!-- auto -->" in (folder / "response.svg").read_text()


def test_auto_learns_as_its_agent_does_alone(ruled: Path) -> None:
    alone = train(DQN(shift="auto", **TINY), "CartPole-v1", seeds=2, budget=BUDGET)
    curves = read_results(ruled / "sweep")
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


@pytest.mark.parametrize(
    "changes",
    [
        {"subject": DQN},
        {"subject": DQN(shift=(-1.0, 1.0), **TINY)},
        {"subject": DQN(shift="auto", **TINY)},
        {"subject": CQL(shift="auto", **TINY)},
        {"constants": 0.5},
        {"constants": []},
        {"constants": ["a"]},
        {"env": "NoSuch-v0"},
        {"env": lambda: gym.make("CartPole-v1")},
        {"budget": OfflineBudget()},
        {"budget": {}},
        {"jobs": 0},
        {"seeds": 0},
        {"seeds": 1.5},
    ],
)
def test_a_bad_call_is_refused_before_any_work(changes: dict[str, Any], tmp_path: Path) -> None:
    with as_installed(), pytest.raises(InputError):
        again(tmp_path / "out", **changes)
    assert not (tmp_path / "out").exists()
