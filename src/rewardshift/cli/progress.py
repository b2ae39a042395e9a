"""Progress bars for long work."""

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

from rewardshift.lab.figure import Unit
from rewardshift.lab.runner import Outcome, Place, Plan, run_units

ROWS = 16  # the most running units to show, so that the bar stays on the screen
SECONDS = 0.5  # between two updates of a bar

# A function of the amount done, and of a function that returns the returns to show.
Count = Callable[[int, Callable[[], Sequence[float]]], None]


@contextlib.contextmanager
def counting_bar(name: str, total: int, unit: str) -> Iterator[Count]:
    """A bar with the mean of the returns, the speed and the remaining time.

    Args:
        name: The name of the work.
        total: The amount of work.
        unit: The unit of the amount.
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
            if not bar.live.is_started:  # only now: refused work shows no bar
                begun.enter_context(bar)
            now = time.perf_counter()
            if now - clock < SECONDS and done < total:
                return
            seen = f"return {np.mean(recent):.2f}" if (recent := returns()) else "return -"
            if done > last:
                bar.update(task, speed=(done - last) / (now - clock))
            bar.update(task, completed=done, seen=seen)
            last, clock = done, now

        yield count


def run_with_progress(plan: Plan, units: list[Unit], place: Place) -> list[Outcome]:
    """Runs the units, prints the errors of failed ones, and returns those."""
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
    # A log file gets a line for each unit instead of a moving bar.
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
    """The units that are running: a place takes them in order, as many as it has slots.

    Args:
        units: All units, in the order in which the place takes them.
        place: The place where they run.
    """

    def __init__(self, units: list[Unit], place: Place) -> None:
        self.place = place
        self._left = list(map(_name, units))
        self._since: dict[str, float] = {}

    def running(self) -> dict[str, float]:
        """The running units, with their seconds so far."""
        now = time.monotonic()
        return {
            name: now - self._since.setdefault(name, now)
            for name in self._left[: self.place.slots()]
        }

    def ended(self, unit: Unit) -> None:
        """Removes a unit that has ended."""
        self._left.remove(_name(unit))

    def tables(self) -> list[Table]:
        """A table of the running units, if there are any."""
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
