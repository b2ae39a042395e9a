"""Damaged and hostile folders of sweeps and runs: taken, or refused in one line, never harmed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fuzzing import as_installed, assert_clear, contents, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_fuzz_files import Damage, damaged_bytes, damaged_csv, damaged_json

from rewardshift import DQN, MLP, InputError, OnlineBudget, train
from rewardshift.files import read_sealed, write_sealed
from rewardshift.lab.figure import Curve
from rewardshift.lab.results import UnitResult, save_unit
from rewardshift.lab.runner import gather, pending_units
from rewardshift.lab.sweep.agents import SweptAgent
from rewardshift.lab.sweep.declaration import (
    Sweep,
    plan_sweep,
    sweep_folder,
)
from rewardshift.report import write_figure
from rewardshift.report.page import render_page
from rewardshift.report.reading import read_report
from rewardshift.training.checkpoint import FORMAT
from rewardshift.training.doctor import doctor

SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
TINY: dict[str, Any] = {"network": MLP((4,)), "batch_size": 2}
BUDGET = OnlineBudget(
    steps=4, capacity=4, evaluate_every=2, evaluation_episodes=1, checkpoint_every=2
)
KEPT = Sweep(SweptAgent(DQN(**TINY), "CartPole-v1", BUDGET), ("auto", -0.5))
SEALED = ("sweep.json", "units")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished sweep with curves of no account."""
    out = tmp_path_factory.mktemp("swept") / "out"
    plan = plan_sweep(KEPT, "rewardshift sweep", 1, out, 1)
    with sweep_folder(out, KEPT) as folder:
        for unit in pending_units(plan):
            digest = plan.declared.digest(plan.preset, plan.terminal, (unit.tasks, unit.methods))
            curves = [Curve("return", method, 0, [2, 4], [0.0, 1.0]) for method in unit.methods]
            save_unit(folder, UnitResult(digest, unit.seeds, 1.0, {"commit": None}, curves))
        gather(plan)
        write_figure(folder)
    return out


def go_on(out: Path) -> None:
    """What the same sweep does with a folder before and after its trainings."""
    plan = plan_sweep(KEPT, "rewardshift sweep", 1, out, 1)
    with sweep_folder(out, KEPT):
        pending_units(plan)
        gather(plan)


def show(out: Path) -> str:
    """The page of a folder."""
    return render_page(read_report(out))


def refused(doing: Callable[[], Any], named: Path) -> str | None:
    """How it is refused, in one line with the name of a file; None if it is not."""
    try:
        with as_installed():
            doing()
    except InputError as error:
        assert_clear(str(error), str(named))
        return str(error)
    return None


def files_of(out: Path, names: tuple[str, ...]) -> list[Path]:
    found = sorted((out / "sweep").rglob("*.*"))
    return [path for path in found if path.relative_to(out / "sweep").parts[0] in names]


@settings(max_examples=60, suppress_health_check=SHARED)
@given(damage=damaged_bytes() | damaged_json(), which=st.integers(0, 5))
def test_a_damaged_declaration_or_unit_ends_a_sweep(
    damage: Damage, which: int, swept: Path
) -> None:
    paths = files_of(swept, SEALED)
    path = paths[which % len(paths)]
    whole = path.read_bytes()
    path.write_bytes(content := damage(whole))
    before = contents(swept)
    try:
        same = content == whole or _same_json(content, whole)
        assert same == (refused(lambda: go_on(swept), path) is None)
        if path.name == "sweep.json":
            assert same == (refused(lambda: show(swept), swept) is None)
        assert contents(swept) == before
    finally:
        path.write_bytes(whole)


def _same_json(content: bytes, whole: bytes) -> bool:
    """Whether damage changed nothing, as a space or a name given twice with the same value."""
    try:
        return json.dumps(json.loads(content)) == json.dumps(json.loads(whole))
    except (ValueError, RecursionError):
        return False


@settings(max_examples=60, suppress_health_check=SHARED)
@given(
    st.tuples(st.just("results.csv"), damaged_bytes() | damaged_csv())
    | st.tuples(st.just("provenance.json"), damaged_bytes() | damaged_json())
)
def test_what_a_sweep_writes_it_writes_again(swept: Path, case: tuple[str, Damage]) -> None:
    name, damage = case
    path = swept / "sweep" / name
    before = contents(swept)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    try:
        refused(lambda: show(swept), swept)
        assert refused(lambda: go_on(swept), path) is None
        assert contents(swept) == before
    finally:
        path.write_bytes(whole)


def test_a_unit_with_a_curve_of_another_panel_is_refused(swept: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(swept, out)
    path = files_of(out, ("units",))[0]
    curve = {"panel": "x", "method": "none", "seed": 0, "steps": [2], "values": [1.0]}
    write_sealed(path, {**read_sealed(path, version=1), "curves": [curve]})
    before = contents(out)
    assert refused(lambda: go_on(out), out / "sweep")
    assert contents(out) == before


@pytest.mark.parametrize(
    "name", ["", "sweep.json", "results.csv", "claims.json", "units", "running"]
)
def test_a_link_in_a_sweep_leads_nowhere(name: str, swept: Path, tmp_path: Path) -> None:
    out, outside = tmp_path / "out", tmp_path / "outside"
    shutil.copytree(swept, out)
    place = out / "sweep" / name
    if place.exists():
        place.rename(outside)  # what is read would be right
    else:
        outside.mkdir()
    place.symlink_to(outside)
    before = contents(tmp_path)
    assert "symbolic link" in (refused(lambda: go_on(out), place) or "")
    assert "symbolic link" in (refused(lambda: show(out), place) or "")
    code, told, _ = run(["report", str(out)])
    assert (code, told.count("\n")) == (2, 1)
    assert contents(tmp_path) == before


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    train(DQN(**TINY), "CartPole-v1", budget=BUDGET, folder=folder)
    return folder


def examine(folder: Path) -> None:
    doctor(folder, episodes=1, states=2)


@settings(max_examples=60, suppress_health_check=SHARED)
@given(damage=damaged_bytes() | damaged_json(), which=st.integers(0, 20))
def test_a_damaged_run_is_examined_or_refused(damage: Damage, which: int, trained: Path) -> None:
    paths = [trained / "config.json", *sorted((trained / "checkpoints").iterdir())]
    path = paths[which % len(paths)]
    whole = path.read_bytes()
    try:
        path.write_bytes(damage(whole))
    except (ValueError, UnicodeDecodeError):  # damage of JSON, and the file is none
        return
    before = contents(trained)
    try:
        refused(lambda: examine(trained), trained)
        assert contents(trained) == before
    finally:
        path.write_bytes(whole)


@pytest.mark.parametrize("change", [{"segments": {}}, {"step": "4"}, {"segments": {"../x": ""}}])
def test_a_forged_checkpoint_is_refused(
    change: dict[str, Any], trained: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(trained, tmp_path / "run")
    path = folder / "checkpoints" / "checkpoint-000000000004.json"
    write_sealed(path, {**read_sealed(path, version=FORMAT), **change})
    before = contents(folder)
    assert refused(lambda: examine(folder), folder)
    assert contents(folder) == before


@pytest.mark.parametrize("name", ["config.json", "checkpoints"])
def test_a_link_in_a_run_is_not_followed_by_the_doctor(
    name: str, trained: Path, tmp_path: Path
) -> None:
    folder, outside = shutil.copytree(trained, tmp_path / "run"), tmp_path / "outside"
    (folder / name).rename(outside)
    (folder / name).symlink_to(outside)
    before = contents(tmp_path)
    assert "symbolic link" in (refused(lambda: examine(folder), folder) or "")
    code, told, _ = run(["doctor", str(folder)])
    assert (code, told.count("\n")) == (2, 1)
    assert contents(tmp_path) == before
