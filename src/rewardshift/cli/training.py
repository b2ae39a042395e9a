"""The commands that train: `train`, `resume` and `play`."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from rewardshift.cli.options import (
    BCQOptions,
    CQLOptions,
    DQNOptions,
    OfflineOptions,
    TD3Options,
)
from rewardshift.errors import InputError
from rewardshift.training.common import MOST_SEEDS, OnProgress
from rewardshift.training.config import read_config
from rewardshift.training.play import record_episode
from rewardshift.training.runs import Result, offline_run, online_run, resume


def train_agent(
    options: tyro.conf.OmitArgPrefixes[
        tyro.conf.OmitSubcommandPrefixes[
            Annotated[DQNOptions, tyro.conf.subcommand("dqn")]
            | Annotated[TD3Options, tyro.conf.subcommand("td3")]
            | Annotated[BCQOptions, tyro.conf.subcommand("bcq")]
            | Annotated[CQLOptions, tyro.conf.subcommand("cql")]
        ]
    ],
) -> None:
    """Train an agent, all its seeds in one process.

    The run goes to a folder of its own, with checkpoints: when it is stopped, the same
    command, or `rewardshift resume FOLDER`, goes on and ends as if nothing had happened.

    Args:
        options: Of the algorithm.
    """
    try:
        agent = options.agent()
    except ValueError as error:
        raise InputError(str(error)) from error
    if not 1 <= options.seeds <= MOST_SEEDS:
        raise InputError(f"seeds must be 1 or more, up to {MOST_SEEDS}, got {options.seeds}")
    seeds = tuple(range(options.first_seed, options.first_seed + options.seeds))
    if isinstance(options, OfflineOptions):
        run = offline_run(agent, options.data, options.env, seeds, options.budget, options.subset())
    else:
        run = online_run(agent, options.env, seeds, options.budget, options.engine)
    folder = options.out or Path("runs") / run.config.name
    with _training_progress(run.config.budget.steps, folder.name) as on_progress:
        result = run.start(folder, on_progress)
    _print_run(folder, result)


def resume_run(folder: Annotated[Path, tyro.conf.Positional], /) -> None:
    """Go on with a run that was stopped.

    Args:
        folder: Of the run.
    """
    steps = read_config(folder).budget.steps
    with _training_progress(steps, folder.name) as on_progress:
        result = resume(folder, on_progress)
    _print_run(folder, result)


def play(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    *,
    film: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None,
    seed: int = 0,
    episode: int = 0,
) -> None:
    """Record an episode of a run as a GIF or MP4.

    Args:
        folder: Of the run.
        film: The file to make, .gif or .mp4; by default episode.gif in the run's folder.
        seed: Which of the run's seeds acts.
        episode: Another number is another start.
    """
    path = film or folder / "episode.gif"
    total = record_episode(folder, path, seed, episode)
    print(f"return {total:g}: {path}")


@contextlib.contextmanager
def _training_progress(steps: int, name: str) -> Iterator[OnProgress]:
    """A bar with the last returns, the speed and the time that is left."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} steps"),
        TextColumn("{task.fields[seen]}, {task.fields[speed]:,.0f}/s, left"),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=Console(stderr=True))
    with contextlib.ExitStack() as begun:
        task = progress.add_task(name, total=steps, seen="return -", speed=0.0)
        last, clock = 0, time.perf_counter()

        def on_progress(step: int, rows: list[Any]) -> None:
            nonlocal last, clock
            if not progress.live.is_started:  # only now: what is refused has no bar
                begun.enter_context(progress)
            now = time.perf_counter()
            if now - clock < 0.5 and step < steps:  # a picture twice a second is enough
                return
            recent = [row.evaluation_return for row in rows if row.step == rows[-1].step]
            seen = f"return {np.mean(recent):.2f}" if recent else "return -"
            progress.update(task, completed=step, seen=seen, speed=(step - last) / (now - clock))
            last, clock = step, now

        yield on_progress


def _print_run(folder: Path, result: Result) -> None:
    if not result.finished:
        print(
            f"stopped at step {result.step}; go on from the last checkpoint with:"
            f" rewardshift resume {folder}"
        )
        raise KeyboardInterrupt
    last = [row.evaluation_return for row in result.rows if row.step == result.rows[-1].step]
    if last:
        print(f"last evaluation: mean return {np.mean(last):.2f} over {len(last)} seeds")
    print(f"run:     {folder}")
