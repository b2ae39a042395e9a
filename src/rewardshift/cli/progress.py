"""Progress bars of a training and of other long work."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from rewardshift.files import was_cut_off
from rewardshift.training.run_folder import how_to_resume
from rewardshift.training.trainer import OnProgress

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


@contextlib.contextmanager
def training_bar(folder: Path, steps: int) -> Iterator[OnProgress]:
    """A bar with the returns of the last evaluation. An interrupt says how to continue."""
    reached = 0

    def on_progress(step: int, rows: Sequence[Any]) -> None:
        nonlocal reached
        reached = step
        count(step, lambda: [row.evaluation_return for row in last_rows(rows)])

    if was_cut_off(folder):
        print(
            f"The last start of {folder} did not end: its process was killed, or the environment"
            " ended it. It goes on from its last checkpoint."
        )
    try:
        with counting_bar(folder.name, steps, "steps") as count:
            yield on_progress
    except KeyboardInterrupt:
        print(
            f"stopped at step {reached}; go on from the last checkpoint with:"
            f" {how_to_resume(folder)}"
        )
        raise


def last_rows(rows: Sequence[Any]) -> list[Any]:
    """The rows of the last evaluation, one for each seed."""
    return [row for row in rows if row.step == rows[-1].step]
