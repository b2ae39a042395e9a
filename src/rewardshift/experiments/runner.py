"""Turns a figure into units of work, runs those that are not finished, and keeps the results.

A unit is a few seeds of some methods on some tasks. Its result is one file, written when it is
complete, so a run that was interrupted goes on with the units that are missing.
"""

import contextlib
import importlib.metadata
import json
import multiprocessing
import os
import platform
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from rewardshift.errors import InputError
from rewardshift.experiments import find_figure
from rewardshift.experiments.figure import Group, Unit
from rewardshift.experiments.results import (
    UnitResult,
    load_units,
    merge_made_with,
    save_unit,
    write_results,
)
from rewardshift.files import writable_folder, write_atomic
from rewardshift.shift import Terminal


@dataclass(frozen=True)
class Plan:
    """A figure as it shall be run. Checked when it is made, before any work.

    Args:
        figure: Its name.
        preset: The name of one of its presets.
        seeds: How many; 0, 1, 2, ... are run.
        terminal: How terminal states are treated: the paper's `"zero"`, or `"absorbing"`.
        out: The results go to the folder `out/figure`.
    """

    figure: str
    preset: str
    seeds: int
    terminal: Terminal
    out: Path

    def __post_init__(self) -> None:
        presets = find_figure(self.figure).presets
        if self.preset not in presets:
            raise InputError(f"preset must be one of {', '.join(presets)}, got {self.preset!r}")
        if self.seeds < 1:
            raise InputError(f"seeds must be 1 or more, got {self.seeds}")

    @property
    def folder(self) -> Path:
        """Where the figure's results are."""
        return self.out / self.figure

    def finished(self, group: Group) -> list[UnitResult]:
        """The finished units of a group."""
        digest = find_figure(self.figure).digest(self.preset, self.terminal, group)
        return load_units(self.folder, digest)

    @property
    def command(self) -> str:
        """The command that runs this plan."""
        return (
            f"rewardshift reproduce {self.figure} --preset {self.preset}"
            f" --seeds {self.seeds} --terminal {self.terminal}"
        )


def pending_units(plan: Plan) -> list[Unit]:
    """The work that is not finished yet."""
    for folder in (plan.out, plan.folder, plan.folder / "units"):
        writable_folder(folder)
    figure = find_figure(plan.figure).at(plan.preset)
    units = []
    for group in figure.groups:
        finished = {seed for unit in plan.finished(group) for seed in unit.seeds}
        missing = [seed for seed in range(plan.seeds) if seed not in finished]
        units += [
            figure.unit(plan.preset, plan.terminal, group, missing[i : i + figure.seeds_per_unit])
            for i in range(0, len(missing), figure.seeds_per_unit)
        ]
    return units


def run_units(plan: Plan, units: list[Unit], jobs: int) -> Iterator[Unit]:
    """Runs the units in up to `jobs` processes, and yields each one when it is finished."""
    if min(jobs, len(units)) <= 1:
        yield from (run_unit(plan, unit) for unit in units)
        return
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        min(jobs, len(units)),
        mp_context=multiprocessing.get_context("spawn"),  # JAX does not survive a fork
    )
    try:
        with _interrupts_held():  # the workers inherit that, so Ctrl-C is the parent's alone
            futures = [pool.submit(run_unit, plan, unit) for unit in units]
        yield from (future.result() for future in as_completed(futures))
        pool.shutdown()
    except BaseException:  # also when the caller is interrupted: nothing may linger
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise


def run_unit(plan: Plan, unit: Unit) -> Unit:
    """Runs one unit and keeps its result."""
    figure = find_figure(plan.figure)
    digest = figure.digest(plan.preset, plan.terminal, (unit.tasks, unit.methods))
    started = time.perf_counter()
    curves = figure.run(figure, unit)
    seconds = time.perf_counter() - started
    save_unit(plan.folder, UnitResult(digest, unit.seeds, seconds, made_with(), curves))
    return unit


def collect(plan: Plan) -> None:
    """Writes `results.csv` and `provenance.json` from the finished units."""
    figure = find_figure(plan.figure).at(plan.preset)
    wanted = set(range(plan.seeds))
    units = [
        unit
        for group in figure.groups
        for unit in plan.finished(group)
        if not wanted.isdisjoint(unit.seeds)
    ]
    # By name, because two runs at once may both have done a seed.
    curves = {
        (curve.panel, curve.method, curve.seed): curve
        for unit in units
        for curve in unit.curves
        if curve.seed in wanted
    }
    write_results(plan.folder / "results.csv", figure, curves.values())
    merged = merge_made_with(units)
    provenance = {
        "command": plan.command,
        "figure": plan.figure,
        "preset": plan.preset,
        "seeds": plan.seeds,
        "terminal": plan.terminal,
        "budget": repr(figure.presets[plan.preset].budget),
        "note": figure.presets[plan.preset].note,
        "duration": round(sum(unit.seconds for unit in units), 1),
        "commit": merged.pop("commit"),
        "machine": merged.pop("machine"),
        "versions": merged,
    }
    write_atomic(plan.folder / "provenance.json", json.dumps(provenance, indent=2) + "\n")


def made_with() -> dict[str, str | None]:
    """What the results depend on beside the declaration."""
    packages = (
        *("rewardshift", "jax", "jaxlib", "optax", "numpy", "scipy"),
        *("gymnasium", "gymnasium-robotics", "minigrid", "mujoco", "envpool"),
    )
    return {
        "commit": _commit(),
        "python": platform.python_version(),
        **{package: _version(package) for package in packages},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None  # an extra that is not installed


def _commit() -> str | None:
    """The commit of this source, if it is a checkout; with a mark if it has been changed since."""
    package = Path(__file__).parents[1]

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *arguments], cwd=package, capture_output=True, text=True, check=False
        )

    try:
        # Asked of this very file: an installed package may lie within somebody else's repository.
        if git("ls-files", "--error-unmatch", __file__).returncode:
            return None
        changed = git("diff", "--quiet", "HEAD", "--", str(package)).returncode
        return git("rev-parse", "HEAD").stdout.strip() + ("+changes" if changed else "")
    except OSError:  # no git here
        return None


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Holds SIGINT back; one that comes meanwhile is delivered afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
