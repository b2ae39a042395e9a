"""The commands that train: `train`, `resume` and `play`."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from rewardshift.cli.agents import Job
from rewardshift.cli.progress import counting_bar
from rewardshift.rollout.play import record_episode
from rewardshift.training.config import read_config
from rewardshift.training.runs import Result, resume
from rewardshift.training.trainer import OnProgress


def train_agent(job: Job) -> None:
    """Train an agent, all its seeds in one process.

    The run goes to a folder of its own, with checkpoints: when it is stopped, the same
    command, or `rewardshift resume FOLDER`, goes on and ends as if nothing had happened.

    Args:
        job: The agent, by its name or as MODULE:CLASS of your own.
    """
    run = job.prepare()
    folder = job.options.out or Path("runs") / run.config.name
    with _training_bar(folder.name, run.config.budget.steps) as on_progress:
        result = run.start(folder, on_progress)
    _print_run(folder, result)


def resume_run(folder: Annotated[Path, tyro.conf.Positional], /) -> None:
    """Go on with a run that was stopped.

    Args:
        folder: The run's folder.
    """
    steps = read_config(folder).budget.steps
    with _training_bar(folder.name, steps) as on_progress:
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
        folder: The run's folder.
        film: The file to make, .gif or .mp4; by default episode.gif in the run's folder.
        seed: Which of the run's seeds acts.
        episode: Another number is another start.
    """
    path = film or folder / "episode.gif"
    total = record_episode(folder, path, seed, episode)
    print(f"return {total:g}: {path}")


@contextlib.contextmanager
def _training_bar(name: str, steps: int) -> Iterator[OnProgress]:
    """A bar with the returns of the last evaluation."""
    with counting_bar(name, steps, "steps") as count:
        yield lambda step, rows: count(
            step, lambda: [row.evaluation_return for row in _last_rows(rows)]
        )


def _last_rows(rows: Sequence[Any]) -> list[Any]:
    """Those of the last evaluation, one for each seed."""
    return [row for row in rows if row.step == rows[-1].step]


def _print_run(folder: Path, result: Result) -> None:
    if not result.finished:
        print(
            f"stopped at step {result.step}; go on from the last checkpoint with:"
            f" rewardshift resume {folder}"
        )
        raise KeyboardInterrupt
    last = _last_rows(result.rows)
    returns = np.mean([row.evaluation_return for row in last])
    rates = [rate for row in last if (rate := getattr(row, "success_rate", None)) is not None]
    success = f", success rate {np.mean(rates):.2f}" if rates else ""
    seeds = f"{len(last)} seed{'s' * (len(last) > 1)}"
    print(f"last evaluation: mean return {returns:.2f} over {seeds}{success}")
    print(f"run:     {folder}")
