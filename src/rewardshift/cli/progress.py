"""The progress bar of a training and of other long work."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

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
