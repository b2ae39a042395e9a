"""The flags of `rewardshift train`: the settings of an agent, of a budget and of a run.

The flags are the fields of the agent's and the budget's own dataclasses; their docstrings are the
help. Only `RunOptions` belongs to the command line.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import tyro

from rewardshift.agents.bcq import BCQ
from rewardshift.agents.cql import CQL
from rewardshift.agents.dqn import DQN
from rewardshift.agents.sac import SAC
from rewardshift.agents.td3 import TD3
from rewardshift.data.dataset import Pick, Subset
from rewardshift.envs.engines import EngineName
from rewardshift.errors import InputError, one_line
from rewardshift.rollout.parts import find_part
from rewardshift.rollout.seeding import check_count
from rewardshift.shift import Shift, Terminal
from rewardshift.training.offline import OfflineBudget
from rewardshift.training.online import OnlineBudget
from rewardshift.training.runs import Run, offline_run, online_run

Budget = OnlineBudget | OfflineBudget
RunSeed = Annotated[int | None, tyro.conf.arg(metavar="INT")]  # None: the run's first seed
LONG = OnlineBudget(steps=1_000_000, capacity=1_000_000, evaluate_every=5_000)

# The agents by name, each with its default budget, whose type says whether it learns online.
AGENTS: dict[str, tuple[type[Any], Budget]] = {
    "dqn": (DQN, OnlineBudget()),
    "td3": (TD3, LONG),
    "sac": (SAC, LONG),
    "bcq": (BCQ, OfflineBudget()),
    "cql": (CQL, OfflineBudget()),
}


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Settings of every run.

    Args:
        scale: The factor on every reward, for all numbers of --shift.
        terminal: The shift's treatment of terminal states: "zero" as in the paper, or "absorbing".
        seeds: The number of seeds, which run side by side.
        first_seed: The first seed; the others count up from it.
        out: The run's folder. The default is a folder in `runs/`, named after the configuration.
    """

    scale: float = 1.0
    terminal: Terminal = "zero"
    seeds: int = 1
    first_seed: int = 0
    out: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None

    def numbers(self) -> tuple[int, ...]:
        """The seeds."""
        check_count(self.seeds)
        return tuple(range(self.first_seed, self.first_seed + self.seeds))

    def shifted(self, agent: Any) -> Any:
        """The agent with this scale and treatment of terminal states in all its shifts."""
        if (self.scale, self.terminal) == (RunOptions.scale, RunOptions.terminal):
            return agent
        given = getattr(agent, "shift", None)
        members = given if isinstance(given, tuple) else (given,)
        if not all(isinstance(member, Shift) for member in members):
            raise InputError(
                f"--scale and --terminal are for agents that hold a Shift, {type(agent).__name__}"
                " does not"
            )
        changed = tuple(
            replace(member, scale=self.scale, terminal=self.terminal) for member in members
        )
        return replace(agent, shift=changed if isinstance(given, tuple) else changed[0])


@dataclass(frozen=True, kw_only=True)
class OnlineOptions(RunOptions):
    """Settings of a run in an environment.

    Args:
        env: A registered Gymnasium environment; for module:Name-v0 the module is imported first.
        engine: The engine that steps the environment. "auto" takes EnvPool if it has the same task
            and is faster.
    """

    env: str
    engine: EngineName = "auto"

    def prepare(self, agent: Any, budget: OnlineBudget) -> Run:
        """The run, configured and checked."""
        return online_run(agent, self.env, self.numbers(), budget, self.engine)


@dataclass(frozen=True, kw_only=True)
class OfflineOptions(RunOptions):
    """Settings of a run on a data set.

    Args:
        data: A data set: embedded/NAME, a Minari id or folder, or an HDF5 or npz file.
        env: The environment for evaluations; by default the one that the data set names.
        transitions: The number of transitions to take from the data set; by default all.
        pick: Whether --transitions takes whole episodes, with the last one cut, or single
            transitions.
        data_seed: The seed of the choice of --transitions.
    """

    data: str
    env: Annotated[str | None, tyro.conf.arg(metavar="STR")] = None
    transitions: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    pick: Pick = "episodes"
    data_seed: int = 0

    def prepare(self, agent: Any, budget: OfflineBudget) -> Run:
        """The run, configured and checked."""
        return offline_run(agent, self.data, self.env, self.numbers(), budget, self._subset())

    def _subset(self) -> Subset | None:
        if self.transitions is None:
            if (self.pick, self.data_seed) != ("episodes", 0):
                raise InputError("--pick and --data-seed choose --transitions; say how many")
            return None
        return Subset(self.transitions, self.pick, self.data_seed)


class Job(NamedTuple):
    """The agent, options and budget of a `rewardshift train` command."""

    agent: Any
    options: OnlineOptions | OfflineOptions
    budget: Any

    def prepare(self) -> Run:
        """The run, configured and checked."""
        return self.options.prepare(self.options.shifted(self.agent), self.budget)


def jobs(arguments: Sequence[str]) -> Any:
    """The type of a `Job` for tyro: a subcommand for each agent.

    Args:
        arguments: The command line. If it names the user's own agent, as in
            `train mymodule:Mine`, that is a subcommand too.
    """
    agents = dict(AGENTS)
    if arguments[:1] == ["train"] and ":" in "".join(arguments[1:2]):
        agents[arguments[1]] = _own_agent(arguments[1])
    commands: list[Any] = [
        Annotated[Any, tyro.conf.subcommand(name, constructor=_job_maker(*agents[name]))]
        for name in agents
    ]
    return reduce(or_, commands)


def _own_agent(name: str) -> tuple[type[Any], Budget]:
    """A user's agent and its default budget; an agent with `act` learns in an environment."""
    kind = find_part(name)
    budget = OnlineBudget() if hasattr(kind, "act") else OfflineBudget()
    taken = {field.name for part in (_options(budget), budget) for field in fields(part)}
    for field in fields(kind):
        if field.name in taken:
            raise InputError(
                f"the setting {field.name!r} of {name} has the name of another flag of train; give"
                " it another name, or train from Python"
            )
    return kind, budget


def _job_maker(kind: type[Any], default: Budget) -> Callable[..., Job]:
    """A function whose parameters tyro shows as flags."""
    raw_budget = _unchecked(type(default))

    defaults = raw_budget(**_values(default))

    def make(run: Any, agent: Any, budget: Any = defaults) -> Job:
        try:
            return Job(kind(**_values(agent)), run, type(default)(**_values(budget)))
        except ValueError as error:  # a user's agent may not raise InputError
            raise InputError(one_line(error)) from error

    make.__annotations__.update(run=_options(default), agent=_unchecked(kind), budget=raw_budget)
    make.__doc__ = (kind.__doc__ or "").partition("\n")[0]
    return make


def _unchecked(kind: type[Any]) -> type[Any]:
    """The dataclass without its checks, whose errors tyro would show as its own."""
    same = {"__doc__": kind.__doc__, "__module__": kind.__module__, "__post_init__": _nothing}
    return type(kind.__name__, (kind,), same)


def _values(config: Any) -> dict[str, Any]:
    return {field.name: getattr(config, field.name) for field in fields(config) if field.init}


def _nothing(_: Any) -> None:
    pass


def _options(budget: Budget) -> type[OnlineOptions | OfflineOptions]:
    return OnlineOptions if isinstance(budget, OnlineBudget) else OfflineOptions
