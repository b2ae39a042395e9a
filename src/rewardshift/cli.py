"""The command line: `rewardshift train | resume | play | list | reproduce | report | suggest`."""

import contextlib
import importlib.metadata
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import numpy as np
import tyro
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from rewardshift.agents.dqn import DQN, Schedule
from rewardshift.agents.intrinsic import RND, CountBonus
from rewardshift.envs.engines import EngineName
from rewardshift.errors import InputError
from rewardshift.experiments import FIGURES, find_figure
from rewardshift.experiments.figure import PresetName, Unit
from rewardshift.experiments.runner import Plan, collect, pending_units, run_units
from rewardshift.files import writable_folder
from rewardshift.report import write_figure, write_page, write_report
from rewardshift.report.page import SYMBOLS
from rewardshift.report.verdicts import comparison, evidence
from rewardshift.shift import Goal, Shift, Terminal, suggest_shift
from rewardshift.training.online import OnlineBudget, OnProgress, Row, TrainingError
from rewardshift.training.play import record_episode
from rewardshift.training.runs import Result, make_config, read_config, resume, train

COLORS = {"supported": "green", "not supported": "red", "inconclusive": "yellow"}


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Returns:
        The exit code: 0, 1 for a training that broke down, 2 for bad input, 130 for an
        interrupted run.
    """
    commands: dict[str, Callable[..., None]] = {
        "train": train_agent,
        "resume": resume_run,
        "play": play,
        "list": list_figures,
        "reproduce": reproduce,
        "report": report,
        "suggest": suggest,
    }
    arguments = sys.argv[1:] if arguments is None else arguments
    if list(arguments) == ["--version"]:
        print(f"rewardshift {importlib.metadata.version('rewardshift')}")
        return 0
    try:
        tyro.extras.subcommand_cli_from_dict(
            commands,
            prog="rewardshift",
            description="Reward shifting for value-based agents, r' = k r + b.",
            args=arguments,
        )
    except InputError as error:
        print(f"rewardshift: {error}", file=sys.stderr)
        return 2
    except TrainingError as error:
        print(f"rewardshift: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"rewardshift: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("rewardshift: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def console() -> NoReturn:
    """The installed command."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)  # ends the workers, as Ctrl-C does
    try:
        code = main()
        sys.stdout.flush()
    except SystemExit as end:  # the parser's: help, or what does not parse
        code = int(end.code or 0)
    except BrokenPipeError:  # as in `rewardshift list | head -1`
        code = 0
    # Without the interpreter's own end: XLA's threads may still be at an interrupted
    # computation, and do not survive it.
    os._exit(code)


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
        engine: EnvPool where it has the very same task ("auto"), or always one of the two.
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


def list_figures() -> None:
    """Name every figure with its panels, methods, presets and about how long each takes."""
    for figure in FIGURES.values():
        print(f"{figure.name}: {figure.title}")
        print(f"  panels   {', '.join(panel.name for panel in figure.panels)}")
        print(f"  methods  {', '.join(method.name for method in figure.methods)}")
        for name, preset in figure.presets.items():
            note = f" ({preset.note})" if preset.note else ""
            print(f"  {name:8} {preset.seeds} seeds, about {_duration(preset.seconds)}{note}")
    print("Times are for two cores. Run one with: rewardshift reproduce FIGURE --preset PRESET")


def reproduce(
    figure: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FIGURE")],
    /,
    *,
    preset: PresetName = "quick",
    seeds: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
    out: Path = Path("out"),
    jobs: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
    terminal: Terminal = "zero",
) -> None:
    """Run a figure of the paper and judge its claims.

    An interrupted run goes on where it was when the same command is given again;
    finished units of work are not run twice.

    Args:
        figure: The figure's name, as `rewardshift list` gives it, or "all".
        preset: How much of it to run.
        seeds: How many seeds, if not the preset's number.
        out: The folder for the results; each figure gets a folder of its own in it.
        jobs: How many processes, if not one per core.
        terminal: "zero" cuts the shift off at a terminal state, as the paper does;
            "absorbing" makes it exactly policy-invariant.
    """
    jobs = jobs if jobs is not None else os.cpu_count() or 1
    if jobs < 1:
        raise InputError(f"jobs must be 1 or more, got {jobs}")
    names = list(FIGURES) if figure == "all" else [find_figure(figure).name]
    plans = [
        Plan(
            figure=name,
            preset=preset,
            seeds=seeds if seeds is not None else FIGURES[name].presets[preset].seeds,
            terminal=terminal,
            out=out,
        )
        for name in names
    ]
    for plan, units in [(plan, pending_units(plan)) for plan in plans]:
        _run_with_progress(plan, units, jobs)
        collect(plan)
        _print_claims(plan.figure, write_figure(plan.folder))
        print(f"picture: {plan.folder / 'figure.png'}")
    print(f"report:  {write_page(out)}")


def report(out: Annotated[Path, tyro.conf.Positional] = Path("out")) -> None:
    """Make verdicts, pictures and the page again from the results in a folder.

    Args:
        out: The folder that `rewardshift reproduce` wrote to.
    """
    if not out.is_dir():
        raise InputError(f"no folder {str(out)!r}")
    print(f"report:  {write_report(writable_folder(out))}")


def suggest(
    *,
    goal: Goal,
    rewards: Annotated[tuple[float, float] | None, tyro.conf.arg(metavar="LOW HIGH")] = None,
    values: Annotated[tuple[float, float] | None, tyro.conf.arg(metavar="LOW HIGH")] = None,
    gamma: float = 0.99,
    scale: float = 1.0,
    bias: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = None,
) -> None:
    """Choose a constant from the range of the rewards or of the values.

    Args:
        goal: "explore": optimistic everywhere. "exploit": cautious everywhere.
        rewards: The lowest and the highest reward of a step. Taken as if an episode
            never ended; where the reward is sparse, give the values instead.
        values: The lowest and the highest discounted return of an episode.
        gamma: The discount.
        scale: The factor k on the rewards, if you use one.
        bias: A constant of your own, to see how optimistic it is.
    """
    if (rewards is None) == (values is None):
        raise InputError("give either --rewards LOW HIGH or --values LOW HIGH")
    try:
        if rewards is not None:
            unshifted = Shift(0.0, gamma=gamma)
            values = (rewards[0] / (1 - unshifted.gamma), rewards[1] / (1 - unshifted.gamma))
        assert values is not None
        low, high = values
        suggestion = suggest_shift(goal, low, high, gamma=gamma, scale=scale)
        own = None if bias is None else Shift(bias, scale, gamma)
    except ValueError as error:
        raise InputError(str(error)) from error
    needed = "b <= -(1 - gamma) k V_high" if goal == "explore" else "b >= -(1 - gamma) k V_low"
    print(f"Values lie between V_low = {low:.6g} and V_high = {high:.6g}.")
    print("A Q that starts at zero stands for -b / ((1 - gamma) k) on the primal scale, so")
    print(f"{'optimism' if goal == 'explore' else 'caution'} everywhere needs {needed}.")
    print(f"suggested bias: {suggestion.bias:.6g}")
    for name, shift in (("it", suggestion), ("yours", own)):
        if shift is not None:
            print(
                f"{name}: b = {shift.bias:.6g} starts at {shift.initial_value:.6g},"
                f" optimism {shift.optimism(low, high):.3g}"
                " (0: fully cautious, 1: fully optimistic)"
            )
    print("Exact for tasks that never terminate, or with terminal='absorbing'.")


def _duration(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _run_with_progress(plan: Plan, units: list[Unit], jobs: int) -> None:
    if not units:
        print(f"{plan.figure}: every unit of work is finished already")
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("units, elapsed"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(f"{plan.figure}, {plan.preset}", total=len(units))
        for _ in run_units(plan, units, jobs):
            progress.advance(task)


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


def _print_claims(figure: str, claims: list[dict[str, Any]]) -> None:
    table = Table("verdict", "claim", "measured", title=figure, title_justify="left")
    for claim in claims:
        verdict = claim["verdict"]
        table.add_row(
            f"[{COLORS[verdict]}]{SYMBOLS[verdict]} {verdict}[/]",
            f"{claim['panel']}: {comparison(claim)}",
            evidence(claim),
        )
    Console().print(table)
