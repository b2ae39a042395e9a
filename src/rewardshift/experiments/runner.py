"""Turns a figure into units of work, runs those that are not finished, and keeps the results.

A unit is a few seeds of a whole figure. Its result is one file, written when it is
complete, so a run that was interrupted goes on with the units that are missing.
"""

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
from rewardshift.experiments.results import (
    UnitResult,
    load_units,
    merge_made_with,
    save_unit,
    write_results,
)
from rewardshift.files import writable_folder, write_atomic
from rewardshift.shift import Terminal

Seeds = tuple[int, ...]


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

    @property
    def digest(self) -> str:
        """Of the declaration, as `Figure.digest` has it."""
        return find_figure(self.figure).digest(self.preset, self.terminal)

    @property
    def command(self) -> str:
        """The command that runs this plan."""
        return (
            f"rewardshift reproduce {self.figure} --preset {self.preset}"
            f" --seeds {self.seeds} --terminal {self.terminal}"
        )


def pending_units(plan: Plan) -> list[Seeds]:
    """The seeds that are not finished yet, grouped into units of work."""
    writable_folder(plan.folder)
    finished = {seed for unit in load_units(plan.folder, plan.digest) for seed in unit.seeds}
    missing = [seed for seed in range(plan.seeds) if seed not in finished]
    size = find_figure(plan.figure).seeds_per_unit
    return [tuple(missing[start : start + size]) for start in range(0, len(missing), size)]


def run_units(plan: Plan, units: list[Seeds], jobs: int) -> Iterator[Seeds]:
    """Runs the units in up to `jobs` processes, and yields each one when it is finished."""
    if min(jobs, len(units)) <= 1:
        yield from (run_unit(plan, seeds) for seeds in units)
        return
    pool = ProcessPoolExecutor(
        min(jobs, len(units)),
        mp_context=multiprocessing.get_context("spawn"),  # JAX does not survive a fork
        initializer=_leave_interrupts_to_the_parent,
    )
    try:
        futures = [pool.submit(run_unit, plan, seeds) for seeds in units]
        yield from (future.result() for future in as_completed(futures))
        pool.shutdown()
    except BaseException:  # also when the caller is interrupted: nothing may linger
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        raise


def run_unit(plan: Plan, seeds: Seeds) -> Seeds:
    """Runs one unit and keeps its result."""
    figure = find_figure(plan.figure)
    started = time.perf_counter()
    curves = figure.run(figure, figure.presets[plan.preset].budget, plan.terminal, seeds)
    seconds = time.perf_counter() - started
    save_unit(plan.folder, UnitResult(plan.digest, seeds, seconds, made_with(), curves))
    return seeds


def collect(plan: Plan) -> None:
    """Writes `results.csv` and `provenance.json` from the finished units."""
    figure = find_figure(plan.figure)
    units = load_units(plan.folder, plan.digest)
    curves = [curve for unit in units for curve in unit.curves if curve.seed < plan.seeds]
    write_results(plan.folder / "results.csv", figure, curves)
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
    packages = ("rewardshift", "jax", "jaxlib", "numpy")
    return {
        "commit": _commit(),
        "python": platform.python_version(),
        **{package: importlib.metadata.version(package) for package in packages},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


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


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
