"""The commands `train` and `resume`.

The flags of `train` are the fields of the agent's and the budget's own dataclasses; their
docstrings are the help. Only the settings of a run belong to the command line.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial, reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar, get_type_hints

import numpy as np
import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from rewardshift.agents.base import Agent
from rewardshift.agents.bcq import BCQ
from rewardshift.agents.cql import CQL
from rewardshift.agents.dqn import DQN
from rewardshift.agents.sac import SAC
from rewardshift.agents.td3 import TD3
from rewardshift.auto import Cautious
from rewardshift.data.dataset import Pick, Subset
from rewardshift.errors import InputError, stop_requests
from rewardshift.shift import Terminal
from rewardshift.training.budgets import OfflineBudget, OnlineBudget
from rewardshift.training.config import chosen_seeds, find_part
from rewardshift.training.run_folder import how_to_resume, read_config
from rewardshift.training.runs import Result, offline_run, online_run, resume
from rewardshift.training.trainer import OnProgress

RunBudget = OnlineBudget | OfflineBudget
SECONDS = 0.5  # between two updates of the bar
LONG = OnlineBudget(steps=1_000_000, capacity=1_000_000, evaluate_every=5_000)

# The agents by name, each with its default budget, whose type says whether it learns online.
AGENTS: dict[str, tuple[type[Any], RunBudget]] = {
    "dqn": (DQN, OnlineBudget()),
    "td3": (TD3, LONG),
    "sac": (SAC, LONG),
    "bcq": (BCQ, OfflineBudget()),
    "cql": (CQL, OfflineBudget()),
}


@dataclass(frozen=True, kw_only=True)
class OnlineTask:
    """The environment to learn in.

    Args:
        env: A registered Gymnasium environment; for module:Name-v0 the module is imported first.
    """

    env: str


@dataclass(frozen=True, kw_only=True)
class OfflineTask:
    """The data set to learn from.

    Args:
        data: A data set: embedded/NAME, a Minari id or folder, or an HDF5 or npz file.
        env: The environment for evaluations; by default the one that the data set names.
        transitions: The number of transitions to take from the data set; by default all.
        pick: Whether --transitions takes whole episodes, with the last one cut, or single
            transitions.
        data_seed: The seed that chooses the transitions.
    """

    data: str
    env: Annotated[str | None, tyro.conf.arg(metavar="STR")] = None
    transitions: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    pick: Pick = "episodes"
    data_seed: int = 0

    @property
    def subset(self) -> Subset | None:
        """The part of the data set to learn from."""
        if self.transitions is None:
            if (self.pick, self.data_seed) != ("episodes", 0):
                raise InputError(
                    "--pick and --data-seed need --transitions, the number of transitions to take"
                )
            return None
        return Subset(self.transitions, self.pick, self.data_seed)


@dataclass(frozen=True, kw_only=True)
class ShiftOptions:
    """Settings of a shift beside its constant.

    Args:
        scale: The factor on every reward, for all numbers of --shift.
        terminal: The shift's treatment of terminal states: "zero" as in the paper, "absorbing", or
            "goal". The default is "zero" for numbers; for "auto" it is "goal", and "absorbing" on a
            data set.
    """

    scale: float = 1.0
    terminal: Annotated[Terminal | None, tyro.conf.arg(metavar="{zero,absorbing,goal}")] = None

    def given_to(self, agent: Any) -> Any:
        """The agent with these settings in all its shifts."""
        changes = {name: value for name, value in vars(self).items() if value not in (None, 1.0)}
        if not changes:
            return agent
        several = isinstance(agent.shift, tuple)
        members = agent.shift if several else (agent.shift,)
        try:
            changed = tuple(replace(member, **changes) for member in members)
        except TypeError as error:
            raise InputError(
                f"--{' and --'.join(changes)}: {type(agent).__name__} has the shift {agent.shift},"
                " which is no Shift, or 'auto', which has a scale of its own"
            ) from error
        return replace(agent, shift=changed if several else changed[0])


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Settings of every run.

    Args:
        seeds: The number of seeds, which run side by side.
        first_seed: The first seed; the others count up from it.
        out: The folder for the results; by default one in `runs/`, named after the configuration.
    """

    seeds: int = 1
    first_seed: int = 0
    out: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None


TaskT = TypeVar("TaskT")
AgentT = TypeVar("AgentT")
BudgetT = TypeVar("BudgetT")


@dataclass(frozen=True, kw_only=True)
class Job(Generic[TaskT, AgentT, BudgetT]):
    """A `rewardshift train` command."""

    task: TaskT
    run: RunOptions
    shift: ShiftOptions
    agent: AgentT
    budget: BudgetT


def by_agent(job: type[Any], own: str | None = None) -> Any:
    """A type for tyro: a subcommand for each agent, whose flags are the fields of its job.

    Args:
        job: `Job`, or a dataclass with the same type parameters.
        own: The user's own agent as `MODULE:CLASS`, which gets a subcommand too.
    """
    agents = dict(AGENTS)
    if own is not None:
        agents[own] = _own_agent(job, own)
    commands: list[Any] = []
    for name, (kind, budget) in agents.items():
        task = OnlineTask if isinstance(budget, OnlineBudget) else OfflineTask
        usual = {field.name: tyro.MISSING_NONPROP for field in fields(job)} | {"budget": budget}
        text = (kind.__doc__ or "").partition("\n")[0]
        command = tyro.conf.subcommand(name, default=job(**usual), description=text)
        commands.append(Annotated[job[task, kind, type(budget)], command])
    return reduce(or_, commands)


def _own_agent(job: type[Any], name: str) -> tuple[type[Any], RunBudget]:
    """A user's agent and its default budget; an agent with `act` learns in an environment."""
    kind = find_part(name)
    if not (isinstance(kind, type) and issubclass(kind, Agent)):
        raise InputError(f"{name} must be an agent, a class that extends rewardshift.Agent")
    offline = kind.act is Agent.act
    budget, task = (OfflineBudget(), OfflineTask) if offline else (OnlineBudget(), OnlineTask)
    own = [one for one in get_type_hints(job).values() if is_dataclass(one)]
    taken = {flag.name for part in (task, type(budget), *own) for flag in fields(part)} - {"shift"}
    for flag in fields(kind):
        if flag.name in taken:
            raise InputError(
                f"the setting {flag.name!r} of {name} has the name of another flag; give it another"
                " name, or use it from Python"
            )
    return kind, budget


def train(subject: str, _: str) -> Callable[..., None]:
    """The command `train`, with a subcommand for each agent.

    Args:
        subject: The word after `train`: the name of an agent, or the user's own as `MODULE:CLASS`.
    """
    agents = by_agent(Job, subject if ":" in subject else None)

    def train_agent(job: Annotated[Job[Any, Any, Any], tyro.conf.arg(constructor=agents)]) -> None:
        """Train an agent, with all its seeds in one process.

        The run has its own folder with checkpoints. After a stop, the same command, or
        `rewardshift resume FOLDER`, continues it; the results are those of an uninterrupted run.

        Args:
            job: The agent: its name, or your own as MODULE:CLASS.
        """
        seeds = tuple(job.run.first_seed + seed for seed in chosen_seeds(job.run.seeds))
        agent, task = job.shift.given_to(job.agent), job.task
        with stop_requests():
            if isinstance(task, OnlineTask):
                run = online_run(agent, task.env, seeds, job.budget)
            else:
                run = offline_run(agent, task.data, task.env, seeds, job.budget, task.subset)
            if isinstance(agent.shift, Cautious):
                shift: Any = run.config.agent.shift
                lowest = -shift.bias / (1 - run.config.agent.gamma)
                print(
                    f"The data choose a shift of {shift.bias:.6g} (terminal {shift.terminal}): the"
                    " lowest value that such rewards can add up to"
                    f" is {f'{lowest:.6g}' if shift.bias else 'not negative'}."
                )
            folder = job.run.out or Path("runs") / run.config.name
            _run_under_bar(folder, run.config.budget.steps, partial(run.start, folder))

    return train_agent


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
    total = read_config(folder).longer(steps).budget.steps
    with stop_requests():
        _run_under_bar(folder, total, partial(resume, folder, steps=steps))


def _run_under_bar(folder: Path, steps: int, start: Callable[[OnProgress], Result]) -> None:
    """Runs a training under a bar, and says how it ended.

    Args:
        folder: The run's folder.
        steps: The length of the training.
        start: A function that runs it.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} steps"),
        TextColumn("{task.fields[seen]}, {task.fields[speed]:,.0f}/s, left"),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=Console(stderr=True))
    task = bar.add_task(folder.name, total=steps, speed=0.0)
    last, clock = 0, time.perf_counter()

    def on_progress(step: int, rows: Sequence[Any]) -> None:
        nonlocal last, clock
        seconds = time.perf_counter() - clock
        if seconds < SECONDS and step < steps:
            return
        # It is also called at every step of an evaluation, in which the training stands still.
        speed: dict[str, Any] = {"speed": (step - last) / seconds} if step > last else {}
        bar.update(task, completed=step, seen=_last_evaluation(rows), **speed)
        bar.start()  # only now: refused work shows no bar
        last, clock = step, clock + seconds

    try:
        result = start(on_progress)
    finally:
        bar.stop()
    if not result.finished:  # a signal stopped it, whose handler is called later
        print(
            f"stopped at step {result.step}; go on from the last checkpoint with:"
            f" {how_to_resume(folder)}"
        )
        raise KeyboardInterrupt
    print(f"last evaluation: mean {_last_evaluation(result.rows)}")
    print(f"run:     {folder}")


def _last_evaluation(rows: Sequence[Any]) -> str:
    """The mean return of the last evaluation, and the success rate if there is one, in words."""
    last = [row for row in rows if row.step == rows[-1].step]
    if not last:
        return "return -"
    rates = [rate for row in last if (rate := getattr(row, "success_rate", None)) is not None]
    success = f", success rate {np.mean(rates):.2f}" if rates else ""
    returns = np.mean([row.evaluation_return for row in last])
    return f"return {returns:.2f} over {len(last)} seed{'s' * (len(last) > 1)}{success}"
