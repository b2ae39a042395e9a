"""The command that sweeps constants."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift.agents.base import Agent
from rewardshift.auto import AUTO
from rewardshift.cli.parts import command, flags, shift_flags
from rewardshift.cli.reproduce import PlaceOptions, run_with_progress
from rewardshift.cli.train import (
    AGENTS,
    HIDDEN,
    OPTIONS,
    Budget,
    OfflineOptions,
    OnlineOptions,
    by_agent,
    checked,
    unchecked,
)
from rewardshift.errors import InputError, needs
from rewardshift.lab.sweep.agents import SweptAgent
from rewardshift.lab.sweep.constants import Constant, Constants, method_name
from rewardshift.lab.sweep.declaration import Sweep, SweepFile, unseen_seeds
from rewardshift.lab.sweep.trials import load_trial
from rewardshift.shift import Shift
from rewardshift.training.config import chosen_seeds, plain_name

SEEDS = 8  # enough for a verdict


@dataclass(frozen=True, kw_only=True)
class TrialOptions:
    """Settings of a trial.

    Args:
        gamma: The discount of the trial's agent, for "auto" and for --terminal. By default the
            trial's own attribute gamma, or 0.99.
        evaluation_episodes: The greedy episodes for each policy that the trial yields.
    """

    gamma: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = None
    evaluation_episodes: int = 10


class SweepJob(NamedTuple):
    """A `rewardshift sweep` command."""

    file: SweepFile
    options: OnlineOptions | OfflineOptions
    place: PlaceOptions


def sweep_jobs(arguments: Sequence[str]) -> Any:
    """The type of a `SweepJob` for tyro: a subcommand for each agent.

    Args:
        arguments: The command line. If it names a trial, as in `sweep my_trial.py:trial`, or the
            user's own agent, that is a subcommand too.
    """
    name = "".join(arguments[1:2])
    if ".py:" not in name:
        return by_agent("sweep", _maker, arguments, (Constants, PlaceOptions))
    trial: Any = Annotated[Any, tyro.conf.subcommand(name, constructor=_trial_maker(name))]
    return trial | by_agent("sweep", _maker, ())


def _trial_maker(name: str) -> Callable[..., SweepJob]:
    """A function whose parameters are the flags of a sweep of this trial."""
    raw_constants = unchecked(Constants)

    def make(
        run: Any,
        trial: Any = TrialOptions(),  # noqa: B008  tyro's defaults
        constants: Any = raw_constants(),  # noqa: B008
        place: Any = PlaceOptions(),  # noqa: B008
    ) -> SweepJob:
        chosen_seeds(run.seeds)
        given = checked(Constants, constants)
        settings = (*flags(run, without=("out",)), *flags(trial))
        with needs("paper"):
            from rewardshift.report.sweeps import trial_file  # noqa: PLC0415
        file = trial_file(
            load_trial(name),
            run.env,
            given,
            command("sweep", name, *flags(given), *settings),
            terminal=run.terminal,
            **vars(trial),
        )
        return SweepJob(file, run, place)

    make.__annotations__.update(
        run=unchecked(OnlineOptions, scale=HIDDEN, first_seed=HIDDEN, seeds=SEEDS),
        trial=TrialOptions,
        constants=raw_constants,
        place=PlaceOptions,
    )
    make.__doc__ = "A trial of your own: a function of an environment and a seed."
    return make


def _maker(kind: type[Any], default: Budget) -> Callable[..., SweepJob]:
    """A function whose parameters tyro shows as flags."""
    raw_budget, raw_constants = unchecked(type(default)), unchecked(Constants)
    options = OPTIONS[type(default)]
    names = {one: name for name, (one, _) in AGENTS.items()}
    name = names.get(kind, f"{kind.__module__}:{kind.__qualname__}")

    def make(
        run: Any,
        agent: Any,
        constants: Any = raw_constants(),  # noqa: B008  tyro's defaults
        budget: Any = raw_budget(**vars(default)),  # noqa: B008
        place: Any = PlaceOptions(),  # noqa: B008
    ) -> SweepJob:
        given = options(**vars(run))
        swept, its_budget = checked(kind, agent), checked(type(default), budget)
        file = _agent_file(name, swept, given, checked(Constants, constants), its_budget, default)
        return SweepJob(file, given, place)

    make.__annotations__.update(
        run=unchecked(options, first_seed=HIDDEN, seeds=SEEDS),
        agent=unchecked(kind, shift=HIDDEN),
        constants=raw_constants,
        budget=raw_budget,
        place=PlaceOptions,
    )
    make.__doc__ = (kind.__doc__ or "").partition("\n")[0]
    return make


def _agent_file(
    name: str,
    agent: Agent,
    options: OnlineOptions | OfflineOptions,
    constants: Constants,
    budget: Any,
    usual_budget: Budget,
) -> SweepFile:
    """The sweep of an agent, with the commands that run it and that train with each constant."""
    chosen_seeds(options.seeds)
    if AUTO in (*constants.shift, *constants.optimism) and options.terminal == Shift.terminal:
        raise InputError(
            "beside numbers with --terminal zero, 'auto' has a treatment of its own: leave"
            " --terminal zero out, or train 'auto' apart (train --shift auto --terminal zero)"
        )
    data, subset = None, None
    if isinstance(options, OfflineOptions):
        data, subset = options.data, options.subset()
    swept = SweptAgent(options.shifted(agent), options.env, budget, data, subset)
    sweep = Sweep.of(swept, constants)
    module = ("--import", name.partition(":")[0]) if ":" in name else ()
    settings = [
        *flags(options, without=("out", "scale", "terminal", "first_seed", "seeds")),
        *shift_flags(swept.shift),
        *flags(swept.agent, without=("shift",)),
        *flags(budget, usual_budget),
    ]
    unseen = unseen_seeds(options.seeds)
    again = ("--seeds", str(len(unseen)), "--first-seed", str(unseen[0]))

    def training(constant: Constant) -> str:
        members = constant if isinstance(constant, tuple) else (constant,)
        shift = ("--shift", *map(str, members))
        return command(*module, "train", name, *shift, *settings, *again)

    return SweepFile(
        sweep,
        command(*module, "sweep", name, *flags(constants), *settings, *again[:2]),
        {method_name(constant): training(constant) for constant in sweep.constants},
    )


def sweep_constants(job: SweepJob) -> None:
    """Train with several constants, and compare each of them with none.

    After a stop, the same command continues. The results are in OUT/sweep, the page is
    OUT/report.html.

    Args:
        job: Your own trial as FILE.py:FUNCTION, or an agent: its name, or your own as MODULE:CLASS.
    """
    with needs("paper"):  # before any work
        from rewardshift.report.response import HEADS  # noqa: PLC0415
        from rewardshift.report.sweeps import answer  # noqa: PLC0415
    file, place = job.file, job.place.place()
    subject = file.sweep.subject
    agent = subject.name.lower() if subject.name.isidentifier() else "trial"
    name = plain_name(agent, subject.task, file.sweep.digest)
    out = job.options.out or Path("sweeps") / name
    found = answer(file, job.options.seeds, out, place, run_with_progress)
    table = Table(*HEADS, title=file.sweep.figure().title, title_justify="left")
    for row in found.rows:
        table.add_row(*map(escape, row))
    Console().print(table)
    if found.warning:
        print(found.warning)
    for one in found.findings:
        print(one.words)
    for line in found.training:
        print(f"train:   {line}")
    print(f"picture: {out / 'sweep' / 'response.png'}")
    print(f"report:  {found.page}")
