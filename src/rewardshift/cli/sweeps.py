"""The command that sweeps constants."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Generic

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    StructConstructorSpec,
    StructTypeInfo,
)

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift.agents.base import Agent
from rewardshift.auto import AUTO
from rewardshift.cli.parts import flag
from rewardshift.cli.reproduce import PlaceOptions, run_with_progress
from rewardshift.cli.train import (
    AgentT,
    BudgetT,
    OfflineTask,
    OnlineTask,
    ShiftOptions,
    TaskT,
    by_agent,
)
from rewardshift.errors import InputError, needs
from rewardshift.lab.sweep.agents import SweptAgent
from rewardshift.lab.sweep.constants import Constant
from rewardshift.lab.sweep.declaration import Sweep
from rewardshift.lab.sweep.trials import SweptTrial, load_trial
from rewardshift.shift import Shift, Terminal
from rewardshift.training.config import plain_name

FLAGS = ConstructorRegistry()
FLAGS.primitive_rule(flag)
WHOLE = "whole"  # marks the question for all flags of an agent


def _constant(texts: list[str]) -> Constant:
    """A number, auto, or the numbers of members with commas between them."""
    if texts == [AUTO]:
        return "auto"
    biases = tuple(map(float, texts[0].split(",")))
    return biases[0] if len(biases) == 1 else biases


CONSTANT = PrimitiveConstructorSpec(
    nargs=1,
    metavar=f"FLOAT|{AUTO}|FLOAT,FLOAT,...",
    instance_from_str=_constant,
    is_instance=lambda _: True,
    str_from_instance=lambda constant: [str(constant)],
)


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """Settings of every sweep.

    Args:
        shift: The constants; 0, no shift, is always added. `auto` chooses one from the rewards, or
            from the data set. Several numbers with commas between them are those of the members of
            one agent.
        seeds: The number of seeds; a verdict needs eight.
        out: The folder for the results; by default one in `sweeps/`, named after the configuration.
    """

    shift: tuple[Annotated[Constant, CONSTANT], ...]
    seeds: int = 8
    out: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None


@dataclass(frozen=True, kw_only=True)
class TrialOptions:
    """Settings of a trial.

    Args:
        gamma: The discount of the trial's agent, for "auto" and for --terminal. By default the
            trial's own attribute gamma, or 0.99.
        terminal: The shift's treatment of terminal states: "zero" as in the paper, "absorbing", or
            "goal". The default is "zero" for numbers; for "auto" it is "goal".
        evaluation_episodes: The greedy episodes for each policy that the trial yields.
    """

    gamma: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = None
    terminal: Annotated[Terminal | None, tyro.conf.arg(metavar="{zero,absorbing,goal}")] = None
    evaluation_episodes: int = 10


@dataclass(frozen=True, kw_only=True)
class TrialJob:
    """A sweep of a trial of your own: a function of an environment and a seed."""

    task: OnlineTask
    sweep: SweepOptions
    trial: TrialOptions
    place: PlaceOptions


@dataclass(frozen=True, kw_only=True)
class SweepJob(Generic[TaskT, AgentT, BudgetT]):
    """A sweep of an agent."""

    task: TaskT
    sweep: SweepOptions
    shift: ShiftOptions
    agent: AgentT
    budget: BudgetT
    place: PlaceOptions


@FLAGS.struct_rule
def _without_shift(info: StructTypeInfo) -> StructConstructorSpec | None:
    """The flags of an agent but --shift, which names the constants."""
    is_agent = isinstance(info.type, type) and issubclass(info.type, Agent)
    if not is_agent or WHOLE in info.markers:
        return None
    whole = ConstructorRegistry.get_struct_spec(replace(info, markers=(*info.markers, WHOLE)))
    assert isinstance(whole, StructConstructorSpec)
    return replace(whole, fields=tuple(one for one in whole.fields if one.name != "shift"))


def sweep(subject: str, typed: str) -> Callable[..., None]:
    """The command `sweep`, with a subcommand for each agent, and for the trial that is named.

    Args:
        subject: The word after `sweep`: the name of an agent, the user's own as `MODULE:CLASS`, or
            a trial as `FILE.py:NAME`.
        typed: The whole command.
    """
    is_trial = ".py:" in subject
    jobs = by_agent(SweepJob, subject if ":" in subject and not is_trial else None)
    if is_trial:
        jobs |= Annotated[TrialJob, tyro.conf.subcommand(subject)]

    def sweep_constants(
        job: Annotated[TrialJob | SweepJob[Any, Any, Any], tyro.conf.arg(constructor=jobs)],
    ) -> None:
        """Train with several constants, and compare each of them with none.

        After a stop, the same command continues. The results are in OUT/sweep, the page is
        OUT/report.html.

        Args:
            job: Your own trial as FILE.py:FUNCTION, or an agent: its name, or your own as
                MODULE:CLASS.
        """
        with needs("paper"):  # before any work
            from rewardshift.report.response import HEADS  # noqa: PLC0415
            from rewardshift.report.sweeps import answer  # noqa: PLC0415
        swept: SweptTrial | SweptAgent
        if isinstance(job, TrialJob):
            swept = SweptTrial.of(load_trial(subject), job.task.env, **vars(job.trial))
        else:
            swept = _swept(job)
        whole, place = Sweep(swept, job.sweep.shift), job.place.place()
        out = job.sweep.out
        if out is None:
            name = swept.name.lower() if swept.name.isidentifier() else "trial"
            out = Path("sweeps") / plain_name(name, swept.task, whole.digest)
        found = answer(whole, typed, job.sweep.seeds, out, place, run_with_progress)
        table = Table(*HEADS, title=whole.figure().title, title_justify="left")
        for row in found.rows:
            table.add_row(*map(escape, row))
        Console().print(table)
        for text in (found.warning, *(one.words for one in found.findings), found.advice):
            if text:
                print(text)
        print(f"picture: {out / 'sweep' / 'response.png'}")
        print(f"report:  {found.page}")

    return sweep_constants


def _swept(job: SweepJob[Any, Any, Any]) -> SweptAgent:
    """The agent of a sweep, with the scale and the treatment of terminal states of its shifts."""
    if AUTO in job.sweep.shift and job.shift.terminal == Shift.terminal:
        raise InputError(
            "beside numbers with --terminal zero, 'auto' has a treatment of its own: leave"
            " --terminal zero out, or train 'auto' apart (train --shift auto --terminal zero)"
        )
    data, subset = None, None
    if isinstance(job.task, OfflineTask):
        data, subset = job.task.data, job.task.subset
    return SweptAgent(job.shift.given_to(job.agent), job.task.env, job.budget, data, subset)
