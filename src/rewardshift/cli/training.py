"""The commands about runs: `train`, `resume`, `evaluate` and `play`."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from rewardshift.auto import Cautious
from rewardshift.cli.agents import Job, RunSeed
from rewardshift.cli.progress import counting_bar
from rewardshift.files import was_cut_off
from rewardshift.interrupts import stop_requests
from rewardshift.shift import Shift
from rewardshift.training.film import record_episode
from rewardshift.training.initial_values import read_initial_values
from rewardshift.training.run_folder import how_to_resume, load, read_config
from rewardshift.training.runs import Result, resume
from rewardshift.training.trainer import OnProgress


def train_agent(job: Job) -> None:
    """Train an agent, with all its seeds in one process.

    The run has its own folder with checkpoints. After a stop, the same command, or
    `rewardshift resume FOLDER`, continues it; the results are those of an uninterrupted run.

    Args:
        job: The agent: its name, or your own as MODULE:CLASS.
    """
    with stop_requests():
        run = job.prepare()
        if isinstance(job.agent.shift, Cautious):
            _print_choice(run.config.agent)
        folder = job.options.out or Path("runs") / run.config.name
        with _training_bar(folder, run.config.budget.steps) as on_progress:
            result = run.start(folder, on_progress)
            _check_finished(result)
    _print_run(folder, result)


def resume_run(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    *,
    steps: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
) -> None:
    """Continue a stopped run, or extend a finished one.

    Args:
        folder: The run's folder.
        steps: A larger number of steps, or of updates, which extends the run. Settings that depend
            on the length, such as DQN's linear epsilon, follow the new length from there on.
    """
    config = read_config(folder)
    total = config.longer(steps).budget.steps if steps is not None else config.budget.steps
    with stop_requests(), _training_bar(folder, total) as on_progress:
        result = resume(folder, on_progress, steps=steps)
        _check_finished(result)
    _print_run(folder, result)


def evaluate(
    path: Annotated[Path, tyro.conf.Positional],
    /,
    *,
    episodes: int = 10,
    run_seed: RunSeed = None,
    seed: int = 0,
) -> None:
    """Run greedy episodes of a trained policy and print their returns.

    Args:
        path: The run's folder, or a file that `Policy.save` wrote.
        episodes: The number of episodes.
        run_seed: The run's seed whose policy acts; by default its first.
        seed: The seed of the episodes.
    """
    policy = load(path, run_seed)
    found = policy.evaluate(episodes, seed=seed)
    returns = found.returns
    print(f"mean return {returns.mean():.6g}, from {returns.min():.6g} to {returns.max():.6g}")
    print(f"mean length {found.lengths.mean():.6g}, {episodes} episodes, step {policy.step}")
    if not np.isnan(found.success).any():
        print(f"success rate {found.success.mean():.2f}")


def play(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    *,
    film: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None,
    run_seed: RunSeed = None,
    episode: int = 0,
) -> None:
    """Record an episode of a run as a GIF or MP4.

    Args:
        folder: The run's folder, or a file that Policy.save wrote.
        film: The file to write, .gif or .mp4; by default episode.gif in the run's folder, or beside
            the file.
        run_seed: The run's seed whose policy acts; by default its first.
        episode: The number of the episode; each number has another start.
    """
    policy = load(folder, run_seed)
    path = film or (folder.parent if folder.is_file() else folder) / "episode.gif"
    total = record_episode(policy, path, episode)
    print(f"return {total:g}: {path}")


def _print_choice(agent: Any) -> None:
    """Prints the shift that the data set chose."""
    shift: Shift = agent.shift
    lowest = f"is {-shift.bias / (1 - agent.gamma):.6g}" if shift.bias else "is not negative"
    print(
        f"The data choose a shift of {shift.bias:.6g} (terminal {shift.terminal}): the lowest value"
        f" that such rewards can add up to {lowest}."
    )


@contextlib.contextmanager
def _training_bar(folder: Path, steps: int) -> Iterator[OnProgress]:
    """A bar with the returns of the last evaluation, and a line about where the networks begin.

    An interrupt says how to continue.
    """
    reached, started = 0, False

    def on_progress(step: int, rows: Sequence[Any]) -> None:
        nonlocal reached, started
        reached = step
        if rows and not started:  # the file is there by the first evaluation
            started, values = True, read_initial_values(folder)
            if values is not None:
                print(values)
        count(step, lambda: [row.evaluation_return for row in _last_rows(rows)])

    try:
        if was_cut_off(folder):
            print(
                f"The last start of {folder} did not end: its process was killed, or the"
                " environment ended it. It goes on from its last checkpoint."
            )
        with counting_bar(folder.name, steps, "steps") as count:
            yield on_progress
    except KeyboardInterrupt:
        print(
            f"stopped at step {reached}; go on from the last checkpoint with:"
            f" {how_to_resume(folder)}"
        )
        raise


def _check_finished(result: Result) -> None:
    """Raises KeyboardInterrupt if a signal stopped the run: its handler is called later."""
    if not result.finished:
        raise KeyboardInterrupt


def _last_rows(rows: Sequence[Any]) -> list[Any]:
    """The rows of the last evaluation, one for each seed."""
    return [row for row in rows if row.step == rows[-1].step]


def _print_run(folder: Path, result: Result) -> None:
    last = _last_rows(result.rows)
    returns = np.mean([row.evaluation_return for row in last])
    rates = [rate for row in last if (rate := getattr(row, "success_rate", None)) is not None]
    success = f", success rate {np.mean(rates):.2f}" if rates else ""
    seeds = f"{len(last)} seed{'s' * (len(last) > 1)}"
    print(f"last evaluation: mean return {returns:.2f} over {seeds}{success}")
    print(f"run:     {folder}")
