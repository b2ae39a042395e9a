"""Declarations, units of work and the files that results live in."""

import json
import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift.errors import InputError
from rewardshift.files import writable_folder, write_atomic
from rewardshift.lab import FIGURES
from rewardshift.lab.figure import Curve
from rewardshift.lab.processes import Processes, _begin_work
from rewardshift.lab.results import (
    UnitResult,
    load_units,
    read_results,
    save_unit,
    write_provenance,
    write_results,
)
from rewardshift.lab.runner import (
    Plan,
    gather,
    pending_units,
    run_units,
)


def smoke(out: Path, seeds: int = 2, figure: str = "figure1") -> Plan:
    return Plan(figure, "smoke", seeds, "zero", out)


def run(plan: Plan, jobs: int = 1) -> list[tuple[int, ...]]:
    done = list(run_units(plan, pending_units(plan), Processes(jobs)))
    gather(plan)
    assert [outcome.error for outcome in done if outcome.error] == []
    return sorted(outcome.unit.seeds for outcome in done)


def pending_seeds(plan: Plan) -> list[tuple[int, ...]]:
    return [unit.seeds for unit in pending_units(plan)]


def test_units_group_the_missing_seeds_and_finished_ones_are_not_run_again(tmp_path: Path) -> None:
    assert pending_seeds(smoke(tmp_path, 5)) == [(0, 1), (2, 3), (4,)]
    assert run(smoke(tmp_path, 3)) == [(0, 1), (2,)]
    assert pending_units(smoke(tmp_path, 3)) == []
    before = {path: path.read_bytes() for path in (tmp_path / "figure1" / "units").iterdir()}
    assert run(smoke(tmp_path, 6)) == [(3, 4), (5,)]
    assert all(path.read_bytes() == content for path, content in before.items())
    assert run(smoke(tmp_path, 1)) == []  # fewer seeds later are taken from the finished units
    assert {c.seed for c in read_results(tmp_path / "figure1")} == {0}
    assert run(smoke(tmp_path, 6)) == []
    seeds = {curve.seed for curve in read_results(tmp_path / "figure1")}
    assert seeds == set(range(6))
    assert pending_units(replace(smoke(tmp_path, 6), terminal="absorbing")) != []


def test_a_seed_that_two_runs_did_counts_once(tmp_path: Path) -> None:
    plan = smoke(tmp_path, 3)
    run(plan)
    overlapping = pending_units(smoke(tmp_path / "other", 3))[0]._replace(seeds=(1, 2))
    before = (plan.folder / "results.csv").read_bytes()
    list(run_units(plan, [overlapping], Processes(1)))
    gather(plan)
    assert (plan.folder / "results.csv").read_bytes() == before


def test_processes_and_interruptions_change_nothing(tmp_path: Path) -> None:
    plan, other = smoke(tmp_path / "one", 4), smoke(tmp_path / "two", 4)
    run(plan)
    bystander = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    bystander.start()
    for _ in run_units(other, pending_units(other), Processes(2)):
        break  # as if interrupted after the first unit
    deadline = time.monotonic() + 20
    while len(multiprocessing.active_children()) > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert multiprocessing.active_children() == [bystander]  # ours are gone, others live
    bystander.kill()
    assert 0 < len(list((other.folder / "units").glob("*.json"))) <= 2
    run(other, jobs=2)
    assert (plan.folder / "results.csv").read_bytes() == (other.folder / "results.csv").read_bytes()


def xla_threads() -> int:
    """How many threads XLA has in this process for its products."""
    jax.block_until_ready(jnp.ones((256, 256)) @ jnp.ones((256, 256)))
    names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    return sum("XLAEigen" in name for name in names)


def xla_threads_of_a_worker(compiled: Path) -> int:
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        1, mp_context=spawn, initializer=_begin_work, initargs=(str(compiled),)
    ) as pool:
        return pool.submit(xla_threads).result()


@pytest.mark.parametrize("said", [None, "3"])
def test_a_worker_keeps_to_one_thread_if_nobody_has_said_otherwise(
    said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last bits depend on the number of threads, and shall not on the machine's cores."""
    monkeypatch.delenv("NPROC", raising=False)
    if said is not None:
        monkeypatch.setenv("NPROC", said)
    assert xla_threads_of_a_worker(tmp_path) == int(said or 1)


@pytest.mark.parametrize("said", [None, "theirs"])
def test_a_worker_keeps_what_it_compiles_for_the_others(
    said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    if said is not None:
        monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / said))
    xla_threads_of_a_worker(tmp_path / "ours")
    assert [path.name for path in tmp_path.iterdir()] == [said or "ours"]


def test_the_provenance_says_what_made_the_results(tmp_path: Path) -> None:
    run(smoke(tmp_path))
    provenance = json.loads((tmp_path / "figure1" / "provenance.json").read_text())
    assert provenance["command"] == (
        "rewardshift reproduce figure1 --preset smoke --seeds 2 --terminal zero"
    )
    assert provenance["duration"] > 0
    assert provenance["budget"].startswith("Budget(steps=20, ")
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, check=True
    )
    assert provenance["commit"].removesuffix("+changes") == head.stdout.decode().strip()
    assert "machine" in provenance
    assert {"python", "jax", "numpy", "scipy", "rewardshift"} <= set(provenance["versions"])
    assert str(tmp_path) not in json.dumps(provenance)


def test_two_machines_results_name_both(tmp_path: Path) -> None:
    plan = smoke(tmp_path, 3)
    run(plan)
    unit = plan.finished(FIGURES["figure1"].groups[0])[1]
    save_unit(plan.folder, replace(unit, made_with={**unit.made_with, "python": "3.99.0"}))
    gather(plan)
    provenance = json.loads((plan.folder / "provenance.json").read_text())
    assert provenance["versions"]["python"] == [".".join(map(str, sys.version_info[:3])), "3.99.0"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"seconds": ', '"seconds": 1', 1),
        lambda text: json.dumps({**json.loads(text), "format": 0}),
        lambda _: "[]",
    ],
    ids=["cut", "changed", "of another format", "of another form"],
)
def test_a_damaged_unit_is_refused_by_name_and_kept(
    tmp_path: Path, damage: Callable[[str], str]
) -> None:
    unit = UnitResult("abc", (0, 1), 1.5, {"python": "3"}, [Curve("p", "m", 0, [0], [1.0])])
    path = save_unit(writable_folder(tmp_path / "figure1"), unit)
    path.with_name("other-0.json").write_text(path.read_text())
    with pytest.raises(InputError, match="of another declaration, 'abc'"):
        load_units(path.parents[1], "other")
    assert load_units(path.parents[1], "abc")[0].curves == unit.curves
    path.write_text(damaged := damage(path.read_text()))
    with pytest.raises(InputError, match=f"{path.name}.*Move that file away"):
        load_units(path.parents[1], "abc")
    assert path.read_text() == damaged


def test_results_survive_a_round_trip(tmp_path: Path) -> None:
    figure = FIGURES["figure1"]
    curves = [
        Curve("q-gap", "shift", 1, [0, 10], [0.25, 1e-9]),
        Curve("success", "count", 0, [0, 10], [0.5, 1.0]),
    ]
    write_results(tmp_path, figure, curves)
    write_provenance(tmp_path, {})
    assert read_results(tmp_path) == curves[::-1]


@pytest.mark.parametrize("value", [float("nan"), 1e39])
def test_values_that_are_not_finite_are_refused(tmp_path: Path, value: float) -> None:
    curves = [Curve("success", "count", 0, [0, 10], [0.5, value])]
    with pytest.raises(InputError, match="'count' in 'success', seed 0, has a value"):
        write_results(tmp_path, FIGURES["figure1"], curves)


def test_an_atomic_write_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, "old")
    with pytest.raises(TypeError):
        write_atomic(path, 3)  # type: ignore[arg-type]
    assert path.read_text() == "old"
    write_atomic(path, b"new")
    assert path.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_unit_of_several_tasks_gives_every_panel_its_curves(tmp_path: Path) -> None:
    run(smoke(tmp_path, figure="maze-sizes"))
    curves = read_results(tmp_path / "maze-sizes")
    panels, methods = FIGURES["maze-sizes"].panels, FIGURES["maze-sizes"].methods
    expected = [(p.name, m.name, seed) for p in panels for m in methods for seed in range(2)]
    assert [(curve.panel, curve.method, curve.seed) for curve in curves] == expected
    assert all(np.isfinite(curve.values).all() for curve in curves)
    head, *_ = (tmp_path / "maze-sizes" / "results.csv").read_text().splitlines()
    assert head == "figure,panel,method,seed,step,value"


def test_a_preset_may_take_fewer_tasks() -> None:
    figure = FIGURES["control"]
    quick, whole = figure.at("quick"), figure.at("paper")
    assert (whole.tasks, whole.panels) == (figure.tasks, figure.panels)
    assert list(quick.tasks) == ["Hopper", "HalfCheetah"]
    assert {panel.task for panel in quick.panels} == {"Hopper", "HalfCheetah"}
    assert quick.claims == figure.claims  # those of the other tasks are "not tested"
    assert len(quick.groups) == 2 * 4
    group = quick.groups[0]  # the tasks that are left out do not decide what is run
    assert quick.digest("quick", "zero", group) == figure.digest("quick", "zero", group)
