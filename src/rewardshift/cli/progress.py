"""Progress bars for long work."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from rewardshift.lab.figure import Unit, duration
from rewardshift.lab.runner import Outcome, Place, Plan, run_units, share_done

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

    waiting = list(units)
    with (
        Live(Group(running, bar), console=console, transient=log),
        _time_left(plan, units, waiting, tell),
    ):
        bar.update(task, running=running.count())
        for number, outcome in enumerate(run_units(plan, units, place), start=1):
            waiting.remove(outcome.unit)
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
    plan: Plan, units: list[Unit], waiting: list[Unit], tell: Callable[[float], None]
) -> Iterator[None]:
    """Tells the seconds left, as soon as checkpoints or finished units show the speed.

    Args:
        plan: The plan.
        units: All units.
        waiting: Those that have not ended; the caller removes the others.
        tell: A function of the seconds, called in a thread.
    """

    def done() -> float:
        return len(units) - len(waiting) + sum(share_done(plan, unit) for unit in list(waiting))

    ended = threading.Event()

    def look() -> None:
        last, first = done(), None
        while not ended.wait(SECONDS):
            now, clock = done(), time.monotonic()
            if now > last and first is None:
                first = now, clock  # not earlier: the beginning compiles the programs
            elif now > last and first is not None:
                tell((clock - first[1]) * (len(units) - now) / (now - first[0]))
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
        self._waiting, self._place = list(map(_name, units)), place
        self._lines: dict[str, TaskID] = {}

    def count(self) -> int:
        """The number of running units; adds a line for each new one."""
        names = self._waiting[: self._place.slots()]
        for name in names[:ROWS]:
            if name not in self._lines:
                self._lines[name] = self.add_task(name, total=None)
        return len(names)

    def end(self, unit: Unit) -> None:
        """Removes a unit that has ended."""
        name = _name(unit)
        self._waiting.remove(name)
        if name in self._lines:
            self.remove_task(self._lines.pop(name))


def _name(unit: Unit) -> str:
    return ", ".join((*unit.tasks, *unit.methods, *(f"seed {seed}" for seed in unit.seeds)))
