"""Turns a figure into units of work, runs the unfinished ones, and keeps the results.

A unit is a few seeds of some methods on some tasks. Its result is one file, written when it is
complete, so an interrupted run continues with the missing units, and within a long unit from its
last checkpoint. A failing unit does not stop the others.
"""

import contextlib
import importlib
import itertools
import shutil
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from rewardshift.errors import FOREIGN, ForeignError, InputError, TrainingError, shown
from rewardshift.files import writable_folder
from rewardshift.lab import MODULES, find_figure, train_unit
from rewardshift.lab.figure import Figure, Group, Unit
from rewardshift.lab.provenance import made_with
from rewardshift.lab.results import (
    UnitResult,
    load_units,
    merge_made_with,
    save_unit,
    unit_name,
    write_provenance,
    write_results,
)
from rewardshift.shift import Terminal
from rewardshift.training.config import chosen_seeds
from rewardshift.training.run_folder import TIMES, time_spent


@dataclass(frozen=True)
class Plan:
    """A plan to run a figure, checked when it is made.

    Args:
        figure: The name of the figure.
        preset: The name of one of its presets.
        seeds: The number of seeds, 0, 1, 2, ...
        terminal: The treatment of terminal states: the paper's `"zero"`, or `"absorbing"`.
        out: The folder for results; those of the figure go to `out/figure`.
        sweep: The figure itself, if it is a sweep; the name finds any other.
        sweep_command: The command that makes and runs the sweep.
        module: The module that a worker imports: that of a sweep's trial, or the one that
            registered the figure, which is found.
    """

    figure: str
    preset: str
    seeds: int
    terminal: Terminal
    out: Path
    sweep: Figure | None = None
    sweep_command: str = ""
    module: str | None = None

    def __post_init__(self) -> None:
        self.declared.preset(self.preset)  # refuses an unknown one
        chosen_seeds(self.seeds)  # refuses a bad number
        if self.sweep is None:
            object.__setattr__(self, "module", MODULES.get(self.figure))

    @property
    def declared(self) -> Figure:
        """The figure."""
        return find_figure(self.figure) if self.sweep is None else self.sweep

    @property
    def isolated(self) -> bool:
        """Whether every unit needs a process of its own, because it runs a trial: foreign code."""
        return self.sweep is not None and self.module is not None

    @property
    def folder(self) -> Path:
        """The folder of the figure's results."""
        return self.out / self.figure

    def digest(self, group: Group) -> str:
        """The digest of a group's declaration."""
        return self.declared.digest(self.preset, self.terminal, group)

    def running(self, unit: Unit) -> Path:
        """The folder of the files that an unfinished unit needs to continue."""
        digest = self.digest((unit.tasks, unit.methods))
        return self.folder / RUNNING / unit_name(digest, unit.seeds)

    def finished(self, group: Group) -> list[UnitResult]:
        """The finished units of a group."""
        return load_units(self.folder, self.digest(group))

    def unfinished_seeds(self, group: Group) -> list[int]:
        """The seeds that no finished unit of a group has."""
        finished = {seed for unit in self.finished(group) for seed in unit.seeds}
        return [seed for seed in range(self.seeds) if seed not in finished]

    @property
    def command(self) -> str:
        """The command that runs this plan."""
        if self.sweep is not None:
            return self.sweep_command
        theirs = self.module is not None and self.module.partition(".")[0] != "rewardshift"
        found = f"--import {self.module} " if theirs else ""
        return (
            f"rewardshift {found}reproduce {self.figure} --preset {self.preset}"
            f" --seeds {self.seeds} --terminal {self.terminal}"
        )


RUNNING = "running"  # the folder of unfinished units
RETRIES = 2  # the number of restarts of a unit after its process or its machine is lost


class Outcome(NamedTuple):
    """The end of a unit of work: its result, or the error that stopped it."""

    unit: Unit
    result: UnitResult | None
    error: str | None


@runtime_checkable
class Place(Protocol):
    """A place that performs units of work; the runner keeps the results.

    Args:
        jobs: The number of units performed at once; 0 if that is not known.
    """

    jobs: int

    def perform(self, plan: Plan, units: list[Unit]) -> Iterator[Outcome]:
        """Performs the units and yields each one's outcome when it ends."""
        ...


def pending_units(plan: Plan) -> list[Unit]:
    """The unfinished work; makes the folders of its results, and refuses those it cannot write."""
    for folder in (plan.out, plan.folder, plan.folder / "units"):
        writable_folder(folder)
    figure = plan.declared.at(plan.preset)
    budget, size = figure.presets[plan.preset].budget, figure.seeds_per_unit
    units = []
    for group in figure.groups:
        seeds = tuple(plan.unfinished_seeds(group))
        units += [
            Unit(*group, seeds[first : first + size], budget, plan.terminal)
            for first in range(0, len(seeds), size)
        ]
    return units


def run_units(plan: Plan, units: list[Unit], place: Place) -> Iterator[Outcome]:
    """Runs units, keeps their results, and yields each one's outcome when it ends."""
    finished = [unit for group in plan.declared.groups for unit in plan.finished(group)]
    steps = {curve.panel: curve.steps for unit in finished for curve in unit.curves}
    for outcome in place.perform(plan, units):
        if outcome.result is not None:
            odd = [
                c for c in outcome.result.curves if steps.setdefault(c.panel, c.steps) != c.steps
            ]
            if odd:
                error = (
                    f"its steps in {odd[0].panel!r}, {shown(list(odd[0].steps))}, are others than"
                    f" those of the first unit, {shown(list(steps[odd[0].panel]))}; evaluate at the"
                    " same steps whatever the seed"
                )
                yield Outcome(outcome.unit, None, error)
                continue
            save_unit(plan.folder, outcome.result)
            shutil.rmtree(plan.running(outcome.unit), ignore_errors=True)
        yield outcome


def perform_unit(plan: Plan, unit: Unit) -> Outcome:
    """Performs or continues one unit, in the calling process."""
    started = time.perf_counter()
    try:
        if plan.module is not None:  # it registers the figure, or perhaps environments
            # The workers of a cluster may not have the file of a trial.
            missing = (ModuleNotFoundError,) if plan.isolated else ()
            with contextlib.suppress(*missing):
                importlib.import_module(plan.module)
        figure, digest = plan.declared, plan.digest((unit.tasks, unit.methods))
        with _running_folder(plan, unit) as folder:
            earlier = sum(time_spent(path.parent) for path in folder.rglob(TIMES))
            curves = (figure.run or train_unit)(figure, unit, folder)
    except ForeignError as error:
        return Outcome(unit, None, f"{error}\n{error.details}")
    except (InputError, TrainingError, OSError) as error:
        return Outcome(unit, None, str(error))
    except FOREIGN:  # from any library in the training; the other units go on
        return Outcome(unit, None, traceback.format_exc())
    seconds = earlier + time.perf_counter() - started
    return Outcome(unit, UnitResult(digest, unit.seeds, seconds, made_with(), curves), None)


@contextlib.contextmanager
def _running_folder(plan: Plan, unit: Unit) -> Iterator[Path]:
    """The folder of a unit's checkpoints: beside the results, or temporary if those are remote."""
    if plan.folder.is_dir():
        yield plan.running(unit)
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / "unit"


def missing_seeds(plan: Plan) -> list[str]:
    """The missing seeds in words, one line for each group of tasks and methods."""
    lines = []
    for group in plan.declared.at(plan.preset).groups:
        if lacking := plan.unfinished_seeds(group):
            names = ", ".join(itertools.chain(*group))
            seeds = ", ".join(map(str, lacking))
            lines.append(f"{names}: seed{'s' * (len(lacking) > 1)} {seeds}")
    return lines


def gather(plan: Plan) -> bool:
    """Writes `results.csv` and `provenance.json` from the finished units; False without any."""
    figure = plan.declared.at(plan.preset)
    wanted = set(range(plan.seeds))
    units = [
        unit
        for group in figure.groups
        for unit in plan.finished(group)
        if not wanted.isdisjoint(unit.seeds)
    ]
    if not units:
        return False
    # By name, because two simultaneous runs may both have finished a seed.
    curves = {
        (curve.panel, curve.method, curve.seed): curve
        for unit in units
        for curve in unit.curves
        if curve.seed in wanted
    }
    write_results(plan.folder, figure, curves.values())
    merged = merge_made_with(units)
    provenance = {
        "command": plan.command,
        "figure": plan.figure,
        "preset": plan.preset,
        "seeds": plan.seeds,
        "terminal": plan.terminal,
        "budget": repr(figure.presets[plan.preset].budget),
        "note": figure.presets[plan.preset].note,
        **({"missing": lacking} if (lacking := missing_seeds(plan)) else {}),
        "duration": round(sum(unit.seconds for unit in units), 1),
        "commit": merged.pop("commit", None),
        "machine": merged.pop("machine", None),
        "versions": merged,
    }
    write_provenance(plan.folder, provenance)
    return True
