"""The commands that train: `train`, `resume` and `play`."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from rewardshift.agents.dqn import DQN, Schedule
from rewardshift.agents.intrinsic import RND, CountBonus
from rewardshift.envs.engines import EngineName
from rewardshift.errors import InputError
from rewardshift.shift import Terminal
from rewardshift.training.online import OnlineBudget, OnProgress, Row
from rewardshift.training.play import record_episode
from rewardshift.training.runs import Result, make_config, read_config, resume, train


@dataclass(frozen=True)
class DQNOptions:
    """DQN's settings, as `rewardshift.agents.dqn.DQN` has them."""

    gamma: float = DQN.gamma
    """The discount."""
    terminal: Terminal = DQN.terminal
    """What happens at a terminal state: "zero" as in the paper, or "absorbing"."""
    hidden: tuple[int, ...] = DQN.hidden
    """Widths of the hidden layers."""
    learning_rate: float = DQN.learning_rate
    """Of Adam."""
    batch_size: int = DQN.batch_size
    """Transitions per update."""
    tau: float = DQN.tau
    """How far the target network moves at every update."""
    double: bool = DQN.double
    """Double DQN."""
    n_step: int = DQN.n_step
    """How many rewards a target sums up."""
    epsilon: Schedule = DQN.epsilon
    """Linear as in the paper, or exponential as in the authors' code."""


_DQN_DEFAULTS, _BUDGET_DEFAULTS = DQNOptions(), OnlineBudget()


def train_agent(
    algorithm: Annotated[Literal["dqn"], tyro.conf.Positional],
    /,
    *,
    env: str,
    shift: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = None,
    shifts: tuple[float, ...] = (),
    seeds: int = 1,
    intrinsic: Literal["none", "rnd", "count"] = "none",
    intrinsic_bias: float = 0.0,
    engine: EngineName = "auto",
    out: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None,
    agent: tyro.conf.OmitArgPrefixes[DQNOptions] = _DQN_DEFAULTS,
    budget: tyro.conf.OmitArgPrefixes[OnlineBudget] = _BUDGET_DEFAULTS,
) -> None:
    """Train an agent, all its seeds in one process.

    The run goes to a folder of its own, with checkpoints: when it is stopped, the same
    command, or `rewardshift resume FOLDER`, goes on and ends as if nothing had happened.

    Args:
        algorithm: What to train.
        env: A registered Gymnasium environment with discrete actions.
        shift: The constant that is added to every reward.
        shifts: Several: Random Reward Shift, a member for each.
        seeds: How many; 0, 1, 2, ... are run side by side.
        intrinsic: An intrinsic reward beside the environment's.
        intrinsic_bias: The shift of the intrinsic reward; -1 makes it negative.
        engine: EnvPool where it has the very same task and is faster ("auto"), or one of the two.
        out: The run's folder; by default one in `runs/`, named after the configuration.
        agent: The agent's settings.
        budget: How long and how.
    """
    if shift is not None and shifts:
        raise InputError("give either --shift or --shifts")
    sources = {"none": None, "rnd": RND(intrinsic_bias), "count": CountBonus(intrinsic_bias)}
    biases = shifts or (shift if shift is not None else 0.0,)
    try:
        dqn = DQN(shifts=biases, intrinsic=sources[intrinsic], **asdict(agent))
    except ValueError as error:
        raise InputError(str(error)) from error
    config = make_config(dqn, env, seeds, budget, engine)
    name = f"{algorithm}-{env.replace('/', '-')}-{config.digest}"
    folder = out or Path("runs") / name
    with _training_progress(budget.steps, folder.name) as on_progress:
        result = train(
            dqn, env, seeds=seeds, budget=budget, engine=engine, folder=folder,
            on_progress=on_progress,
        )  # fmt: skip
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
    """Record an episode of a finished run as a GIF or MP4.

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
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} steps"),
        TextColumn("{task.fields[seen]}, {task.fields[speed]:,.0f}/s, left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(name, total=steps, seen="return -", speed=0.0)
        last, clock = 0, time.perf_counter()

        def on_progress(step: int, rows: list[Row]) -> None:
            nonlocal last, clock
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
