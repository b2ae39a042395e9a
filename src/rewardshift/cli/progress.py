"""What is seen of long work while it runs."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from rewardshift.experiments.figure import Unit
from rewardshift.experiments.runner import Outcome, Place, Plan, run_units

ROWS = 16  # of units that are running, so that the bar stays on the screen
SECONDS = 0.5  # between two pictures of a bar

# Takes how much is done, and what gives the returns to be shown when they are.
Count = Callable[[int, Callable[[], Sequence[float]]], None]


@contextlib.contextmanager
def counting_bar(name: str, total: int, unit: str) -> Iterator[Count]:
    """A bar with the mean of the returns, the speed and the time that is left.

    Args:
        name: What is done.
        total: How much there is to do.
        unit: What is counted.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn(f"{{task.completed}}/{{task.total}} {unit}"),
        TextColumn("{task.fields[seen]}, {task.fields[speed]:,.0f}/s, left"),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=Console(stderr=True))
    with contextlib.ExitStack() as begun:
        task = bar.add_task(name, total=total, seen="return -", speed=0.0)
        last, clock = 0, time.perf_counter()

        def count(done: int, returns: Callable[[], Sequence[float]]) -> None:
            nonlocal last, clock
            if not bar.live.is_started:  # only now: what is refused has no bar
                begun.enter_context(bar)
            now = time.perf_counter()
            if now - clock < SECONDS and done < total:
                return
            seen = f"return {np.mean(recent):.2f}" if (recent := returns()) else "return -"
            bar.update(task, completed=done, seen=seen, speed=(done - last) / (now - clock))
            last, clock = done, now

        yield count


def run_with_progress(plan: Plan, units: list[Unit], place: Place) -> list[Outcome]:
    """Runs the units; those that failed, with what they failed of on the screen."""
    if not units:
        print(f"{plan.figure}: no unit of work is left to do")
        return []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("units, {task.fields[running]} running, {task.fields[failed]} failed, elapsed"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns)
    task = bar.add_task(f"{plan.figure}, {plan.preset}", total=len(units), running=0, failed=0)
    work = Work(units, place)
    failed: list[Outcome] = []
    console = Console(stderr=True)
    # In a file no bar moves: there a line for each unit has to do.
    log = not console.is_terminal
    with Live(console=console, transient=log, get_renderable=lambda: Group(*work.tables(), bar)):
        bar.update(task, running=len(work.running()))
        for number, outcome in enumerate(run_units(plan, units, place), start=1):
            work.ended(outcome.unit)
            if outcome.error is not None:
                failed.append(outcome)
                console.print(_failure(outcome), markup=False, highlight=False, soft_wrap=True)
            elif log:
                said = f"{number}/{len(units)} done: {_name(outcome.unit)}"
                console.print(said, markup=False, highlight=False, soft_wrap=True)
            bar.update(task, advance=1, running=len(work.running()), failed=len(failed))
    return failed


class Work:
    """Which units are at work: a place takes them in order, as many as it has slots.

    Args:
        units: All, in the order in which they are taken.
        place: Where they run.
    """

    def __init__(self, units: list[Unit], place: Place) -> None:
        self.place = place
        self._left = list(map(_name, units))
        self._since: dict[str, float] = {}

    def running(self) -> dict[str, float]:
        """The units that are at work now, and for how many seconds."""
        now = time.monotonic()
        return {
            name: now - self._since.setdefault(name, now)
            for name in self._left[: self.place.slots()]
        }

    def ended(self, unit: Unit) -> None:
        """Takes a unit out, however it ended."""
        self._left.remove(_name(unit))

    def tables(self) -> list[Table]:
        """A table of the units that are at work, if any is."""
        running = self.running()
        table = Table("running", "for", box=None, padding=(0, 2, 0, 0))
        for name, seconds in list(running.items())[:ROWS]:
            table.add_row(escape(name), "{}:{:02}".format(*divmod(int(seconds), 60)))
        if len(running) > ROWS:
            table.add_row(f"and {len(running) - ROWS} more")
        return [table] if running else []


def _name(unit: Unit) -> str:
    return ", ".join((*unit.tasks, *unit.methods, *(f"seed {seed}" for seed in unit.seeds)))


def _failure(outcome: Outcome) -> str:
    return f"failed: {_name(outcome.unit)}\n{(outcome.error or '').rstrip()}"
