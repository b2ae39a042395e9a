"""The commands `train` and `resume`.

The flags of `train` are the fields of the agent's and the budget's own dataclasses; their
docstrings are the help. Only `RunOptions` belongs to the command line.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, make_dataclass, replace
from functools import cache, partial, reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast, get_type_hints

import numpy as np
import tyro

from rewardshift.agents.base import Agent
from rewardshift.agents.bcq import BCQ
from rewardshift.agents.cql import CQL
from rewardshift.agents.dqn import DQN
from rewardshift.agents.sac import SAC
from rewardshift.agents.td3 import TD3
from rewardshift.auto import Cautious
from rewardshift.cli.parts import flag_type
from rewardshift.cli.progress import last_rows, training_bar
from rewardshift.data.dataset import Pick, Subset
from rewardshift.errors import InputError, one_line, stop_requests
from rewardshift.shift import Terminal
from rewardshift.training.budgets import OfflineBudget, OnlineBudget
from rewardshift.training.config import chosen_seeds, find_part
from rewardshift.training.run_folder import read_config
from rewardshift.training.runs import Result, Run, offline_run, online_run, resume

Budget = OnlineBudget | OfflineBudget
LONG = OnlineBudget(steps=1_000_000, capacity=1_000_000, evaluate_every=5_000)

# The agents by name, each with its default budget, whose type says whether it learns online.
AGENTS: dict[str, tuple[type[Any], Budget]] = {
    "dqn": (DQN, OnlineBudget()),
    "td3": (TD3, LONG),
    "sac": (SAC, LONG),
    "bcq": (BCQ, OfflineBudget()),
    "cql": (CQL, OfflineBudget()),
}
HIDDEN = object()  # see `unchecked`
SHIFT = ("scale", "terminal")  # the settings of a shift beside its bias


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Settings of every run.

    Args:
        scale: The factor on every reward, for all numbers of --shift.
        terminal: The shift's treatment of terminal states: "zero" as in the paper, "absorbing", or
            "goal". The default is "zero" for numbers; for "auto" it is "goal", and "absorbing" on a
            data set.
        seeds: The number of seeds, which run side by side.
        first_seed: The first seed; the others count up from it.
        out: The folder for the results; by default one in `runs/` or `sweeps/`, named after the
            configuration.
    """

    scale: float = 1.0
    terminal: Annotated[Terminal | None, tyro.conf.arg(metavar="{zero,absorbing,goal}")] = None
    seeds: int = 1
    first_seed: int = 0
    out: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None

    def seed_numbers(self) -> tuple[int, ...]:
        """The seeds."""
        chosen_seeds(self.seeds)
        return tuple(range(self.first_seed, self.first_seed + self.seeds))

    def shifted(self, agent: Any) -> Agent:
        """The agent with this scale and treatment of terminal states in all its shifts."""
        names = [name for name in SHIFT if getattr(self, name) != getattr(RunOptions, name)]
        if not names:
            return cast("Agent", agent)
        changes = {name: getattr(self, name) for name in names}
        several = isinstance(agent.shift, tuple)
        members = agent.shift if several else (agent.shift,)
        try:
            changed = tuple(replace(member, **changes) for member in members)
        except TypeError as error:
            raise InputError(
                f"--{' and --'.join(names)}: {type(agent).__name__} has the shift {agent.shift},"
                " which is no Shift, or 'auto', which has a scale of its own"
            ) from error
        return cast("Agent", replace(agent, shift=changed if several else changed[0]))


@dataclass(frozen=True, kw_only=True)
class OnlineOptions(RunOptions):
    """Settings of a run in an environment.

    Args:
        env: A registered Gymnasium environment; for module:Name-v0 the module is imported first.
    """

    env: str

    def prepare(self, agent: Agent, budget: OnlineBudget) -> Run:
        """The run, configured and checked."""
        return online_run(agent, self.env, self.seed_numbers(), budget)


@dataclass(frozen=True, kw_only=True)
class OfflineOptions(RunOptions):
    """Settings of a run on a data set.

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

    def prepare(self, agent: Agent, budget: OfflineBudget) -> Run:
        """The run, configured and checked."""
        return offline_run(agent, self.data, self.env, self.seed_numbers(), budget, self.subset())

    def subset(self) -> Subset | None:
        """The part of the data set to learn from."""
        if self.transitions is None:
            if (self.pick, self.data_seed) != ("episodes", 0):
                raise InputError(
                    "--pick and --data-seed need --transitions, the number of transitions to take"
                )
            return None
        return Subset(self.transitions, self.pick, self.data_seed)


# The settings of a run with such a budget.
OPTIONS: dict[type[Budget], type[OnlineOptions | OfflineOptions]] = {
    OnlineBudget: OnlineOptions,
    OfflineBudget: OfflineOptions,
}


class Job(NamedTuple):
    """The agent, options and budget of a `rewardshift train` command."""

    agent: Agent
    options: OnlineOptions | OfflineOptions
    budget: Any


def by_agent(
    command: str,
    maker: Callable[[type[Any], Budget], Callable[..., Any]],
    arguments: Sequence[str],
    others: tuple[type[Any], ...] = (),
) -> Any:
    """A type for tyro with a subcommand for each agent.

    Args:
        command: The command.
        maker: Makes, of an agent and its default budget, the function whose parameters are flags.
        arguments: The command line. If it names the user's own agent, as in
            `train mymodule:Mine`, that is a subcommand too.
        others: Dataclasses whose fields are flags too, beside those of the run and the budget.
    """
    agents = dict(AGENTS)
    if arguments[:1] == [command] and ":" in "".join(arguments[1:2]):
        agents[arguments[1]] = _own_agent(command, arguments[1], others)
    commands: list[Any] = [
        Annotated[Any, tyro.conf.subcommand(name, constructor=maker(*agents[name]))]
        for name in agents
    ]
    return reduce(or_, commands)


def _own_agent(command: str, name: str, others: tuple[type[Any], ...]) -> tuple[type[Any], Budget]:
    """A user's agent and its default budget; an agent with `act` learns in an environment."""
    kind = find_part(name)
    if not (isinstance(kind, type) and issubclass(kind, Agent)):
        raise InputError(f"{name} must be an agent, a class that extends rewardshift.Agent")
    budget = OfflineBudget() if kind.act is Agent.act else OnlineBudget()
    parts = (OPTIONS[type(budget)], type(budget), *others)
    taken = {flag.name for part in parts for flag in fields(part)} - {"shift"}
    for flag in fields(kind):
        if flag.name in taken:
            raise InputError(
                f"the setting {flag.name!r} of {name} has the name of another flag of {command};"
                f" give it another name, or {command} from Python"
            )
    return kind, budget


def _job_maker(kind: type[Any], default: Budget) -> Callable[..., Job]:
    """A function whose parameters tyro shows as flags."""
    raw_budget = unchecked(type(default))

    def make(run: Any, agent: Any, budget: Any = raw_budget(**vars(default))) -> Job:  # noqa: B008
        return Job(run.shifted(checked(kind, agent)), run, checked(type(default), budget))

    make.__annotations__.update(
        run=OPTIONS[type(default)], agent=unchecked(kind), budget=raw_budget
    )
    make.__doc__ = (kind.__doc__ or "").partition("\n")[0]
    return make


def _unchecked(kind: type[Any], **changed: Any) -> type[Any]:
    """The dataclass as tyro reads it: without its checks, whose errors tyro would show as its own.

    Args:
        kind: The dataclass.
        changed: New defaults of some fields, or `HIDDEN` for a field that is no flag and keeps its
            default.
    """
    flags: list[Any] = []
    hints = get_type_hints(kind, include_extras=True)
    for one in fields(kind):
        value = changed.get(one.name)
        shown = one.init and value is not HIDDEN
        usual = field(default=one.default, default_factory=one.default_factory, init=shown)
        default = usual if value in (None, HIDDEN) else field(default=value)
        flags.append((one.name, flag_type(hints[one.name]), default))
    same = {"__doc__": kind.__doc__, "__module__": kind.__module__}
    body = {**same, "__post_init__": lambda _: None}
    return make_dataclass(
        kind.__name__, flags, bases=(kind,), namespace=body, frozen=True, kw_only=True
    )


# The same class for the same arguments: tyro reads the source of each new one for its help.
unchecked: Callable[..., type[Any]] = cache(_unchecked)


def checked(kind: type[Any], raw: Any) -> Any:
    """The dataclass from the flags of its `unchecked` form."""
    try:
        return kind(**vars(raw))
    except ValueError as error:  # a user's agent may not raise InputError
        raise InputError(one_line(error)) from error


# The type of a `Job` for tyro, by the arguments of the command line.
jobs = partial(by_agent, "train", _job_maker)


def train_agent(job: Job) -> None:
    """Train an agent, with all its seeds in one process.

    The run has its own folder with checkpoints. After a stop, the same command, or
    `rewardshift resume FOLDER`, continues it; the results are those of an uninterrupted run.

    Args:
        job: The agent: its name, or your own as MODULE:CLASS.
    """
    with stop_requests():
        run = job.options.prepare(job.agent, job.budget)
        if isinstance(job.agent.shift, Cautious):
            shift: Any = run.config.agent.shift
            lowest = -shift.bias / (1 - run.config.agent.gamma)
            print(
                f"The data choose a shift of {shift.bias:.6g} (terminal {shift.terminal}): the"
                " lowest value that such rewards can add up to"
                f" is {f'{lowest:.6g}' if shift.bias else 'not negative'}."
            )
        folder = job.options.out or Path("runs") / run.config.name
        with training_bar(folder, run.config.budget.steps) as on_progress:
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
    with stop_requests(), training_bar(folder, total) as on_progress:
        result = resume(folder, on_progress, steps=steps)
        _check_finished(result)
    _print_run(folder, result)


def _check_finished(result: Result) -> None:
    """Raises KeyboardInterrupt if a signal stopped the run: its handler is called later."""
    if not result.finished:
        raise KeyboardInterrupt


def _print_run(folder: Path, result: Result) -> None:
    last = last_rows(result.rows)
    returns = np.mean([row.evaluation_return for row in last])
    rates = [rate for row in last if (rate := getattr(row, "success_rate", None)) is not None]
    success = f", success rate {np.mean(rates):.2f}" if rates else ""
    seeds = f"{len(last)} seed{'s' * (len(last) > 1)}"
    print(f"last evaluation: mean return {returns:.2f} over {seeds}{success}")
    print(f"run:     {folder}")
