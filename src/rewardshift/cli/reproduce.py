"""The command `reproduce`."""

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column, Table

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift.checks import Count, checked
from rewardshift.cli.progress import SECONDS
from rewardshift.errors import InputError, TrainingError, shown
from rewardshift.lab import FIGURES, find_figure
from rewardshift.lab.cluster import RayCluster
from rewardshift.lab.figure import PresetName, Unit, duration
from rewardshift.lab.processes import Processes
from rewardshift.lab.runner import (
    WHOLE,
    Outcome,
    Place,
    Plan,
    Shard,
    gather,
    missing_seeds,
    pending_units,
    run_units,
    share_done,
)
from rewardshift.lab.sweep.declaration import refuse_sweep

COLORS = {
    "supported": "green",
    "contradicted": "red",
    "inconclusive": "yellow",
    "not tested": "blue",
}
ROWS = 16  # the most running units to show, so that the bar stays on the screen


@dataclass(frozen=True, kw_only=True)
class PlaceOptions:
    """Where units of work run.

    Args:
        jobs: The number of processes; by default one per core.
        on: Where to run: in processes of this machine, or on a Ray cluster.
        address: The address of the Ray cluster; by default one is started on this machine.
    """

    jobs: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    on: Literal["here", "ray"] = "here"
    address: Annotated[str | None, tyro.conf.arg(metavar="ADDRESS")] = None

    def place(self) -> Place:
        """The place that performs units of work."""
        if self.on == "ray":
            if self.jobs is not None:
                raise InputError("--jobs is for processes of this machine, not for --on ray")
            return RayCluster(self.address)
        if self.address is not None:
            raise InputError("--address is for --on ray")
        jobs = self.jobs if self.jobs is not None else os.cpu_count() or 1
        return Processes(checked("jobs", Count, jobs))


def reproduce(
    figure: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FIGURE")],
    /,
    *,
    preset: PresetName = "quick",
    seeds: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
    out: Path = Path("out"),
    shard: Annotated[str, tyro.conf.arg(metavar="I/N")] = "1/1",
    place: PlaceOptions = PlaceOptions(),  # noqa: B008  tyro's default
    terminal: Literal["zero", "absorbing"] = "zero",
) -> None:
    """Run a figure of the paper and judge its claims.

    The same command continues an interrupted run; finished units of work are not run twice. A
    failing unit does not stop the others.

    Args:
        figure: The figure's name, as `rewardshift list` prints it, or "all".
        preset: The size of the run.
        seeds: The number of seeds; by default the preset's.
        out: The folder for the results, with a subfolder for each figure.
        shard: The part of the work to run here, for example 2/4, the second of four, if several
            machines share the work. Afterwards the command without --shard combines the results.
        place: Where to run.
        terminal: "zero" cuts the shift off at a terminal state, as the paper does;
            "absorbing" makes it exactly policy-invariant. Figures whose methods have treatments of
            their own ignore it.
    """
    from rewardshift.report import write_figure, write_page  # noqa: PLC0415  an extra, asked early

    machines = place.place()
    refuse_sweep(out)
    names = list(FIGURES) if figure == "all" else [find_figure(figure).name]
    plans = [
        Plan(
            figure=name,
            preset=preset,
            seeds=seeds if seeds is not None else FIGURES[name].preset(preset).seeds,
            terminal=terminal,
            out=out,
        )
        for name in names
    ]
    part = _parse_shard(shard)
    failed = []
    work = [(plan, pending_units(plan, part)) for plan in plans]
    for plan, units in work:
        failed += run_with_progress(plan, units, machines)
        if part != WHOLE and missing_seeds(plan):
            print(f"{plan.figure}: shard {shard} is done; others are missing")
        elif gather(plan):
            _print_claims(plan.figure, write_figure(plan.folder))
            print(f"picture: {plan.folder / 'figure.png'}")
    print(f"report:  {write_page(out)}")
    if failed:
        raise TrainingError(
            f"{len(failed)} unit{'s' * (len(failed) > 1)} of work failed, see above; the same"
            " command runs what is missing"
        )


def _parse_shard(text: str) -> Shard:
    parts = re.fullmatch("([0-9]{1,9})/([0-9]{1,9})", text)
    if parts is not None:
        shard = Shard(*map(int, parts.groups()))
        if 1 <= shard.number <= shard.of:
            return shard
    raise InputError(f"shard must be I/N with I from 1 to N, for example 2/4, got {shown(text)}")


def _print_claims(figure: str, claims: list[dict[str, Any]]) -> None:
    from rewardshift.report.verdicts import evidence, verdict_words  # noqa: PLC0415

    verdict_column = Column("verdict", no_wrap=True)
    table = Table(verdict_column, "source", "claim", "measured", title=figure, title_justify="left")
    for claim in claims:
        verdict = claim["verdict"]
        table.add_row(
            f"[{COLORS[verdict]}]{verdict_words(claim)}[/]",
            claim["source"],
            escape(f"{claim['panel']}: {claim['statement']}"),
            escape(evidence(claim)),
        )
    Console().print(table)


def run_with_progress(plan: Plan, units: list[Unit], place: Place) -> list[Outcome]:
    """Runs the units, prints the errors of failed ones, and returns those."""
    if not units:
        print(f"{plan.figure}: no unit of work is left to do")
        return []
    count = f"{len(units)} unit{'s' * (len(units) > 1)} of work"
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("units, {task.fields[running]} running, {task.fields[failed]} failed, elapsed"),
        TimeElapsedColumn(),
        TextColumn("left {task.fields[left]}"),
    )
    bar = Progress(*columns)
    fields: dict[str, Any] = {"running": 0, "failed": 0, "left": "-"}
    task = bar.add_task(f"{plan.figure}, {plan.preset}", total=len(units), **fields)
    running, failed = RunningUnits(units, place), []
    console = Console(stderr=True)
    log = not console.is_terminal  # a log file gets a line for each unit instead of a moving bar

    def tell(seconds: float) -> None:
        if log and bar.tasks[task].fields["left"] == "-":
            console.print(f"{count}, about {duration(seconds)} left by the speed so far")
        bar.update(task, left=duration(seconds))

    with (
        Live(Group(running, bar), console=console, transient=log),
        _time_left(plan, len(units), running.left, tell),
    ):
        bar.update(task, running=running.count())
        for number, outcome in enumerate(run_units(plan, units, place), start=1):
            running.end(outcome.unit)
            text = f"{number}/{len(units)} done: {_name(outcome.unit)}" if log else ""
            if outcome.error is not None:
                failed.append(outcome)
                text = f"failed: {_name(outcome.unit)}\n{outcome.error.rstrip()}"
            if text:
                console.print(text, markup=False, highlight=False, soft_wrap=True)
            bar.update(task, advance=1, running=running.count(), failed=len(failed))
    return failed


@contextlib.contextmanager
def _time_left(
    plan: Plan, total: int, left: list[Unit], tell: Callable[[float], None]
) -> Iterator[None]:
    """Tells the seconds left, as soon as checkpoints or finished units show the speed.

    Args:
        plan: The plan.
        total: The number of units.
        left: The units that have not ended; the caller removes the others.
        tell: A function of the seconds, called in a thread.
    """

    def done() -> float:
        return total - len(left) + sum(share_done(plan, unit) for unit in list(left))

    ended = threading.Event()

    def look() -> None:
        last, first = done(), None
        while not ended.wait(SECONDS):
            now, clock = done(), time.monotonic()
            if now > last and first is None:
                first = now, clock  # not earlier: the beginning compiles the programs
            elif now > last and first is not None:
                tell((clock - first[1]) * (total - now) / (now - first[0]))
            last = now

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class RunningUnits(Progress):
    """A line for each running unit: a place takes units in order, as many as it has slots.

    Args:
        units: All units, in the order in which the place takes them.
        place: The place where they run.
    """

    def __init__(self, units: list[Unit], place: Place) -> None:
        super().__init__(TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        self.left, self._place = list(units), place
        self._lines: dict[str, TaskID] = {}

    def count(self) -> int:
        """The number of running units; adds a line for each new one."""
        running = self.left[: self._place.slots()]
        for name in map(_name, running[:ROWS]):
            if name not in self._lines:
                self._lines[name] = self.add_task(name, total=None)
        return len(running)

    def end(self, unit: Unit) -> None:
        """Removes a unit that has ended."""
        self.left.remove(unit)
        if (name := _name(unit)) in self._lines:
            self.remove_task(self._lines.pop(name))


def _name(unit: Unit) -> str:
    return ", ".join((*unit.tasks, *unit.methods, *(f"seed {seed}" for seed in unit.seeds)))
