"""The command that sweeps constants."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift.agents.base import Agent
from rewardshift.auto import AUTO
from rewardshift.cli.parts import command, flags, shift_flags
from rewardshift.cli.reproduce import place_of, run_with_progress
from rewardshift.cli.train import (
    AGENTS,
    HIDDEN,
    Budget,
    OfflineOptions,
    OnlineOptions,
    by_agent,
    checked,
    options_of,
    unchecked,
)
from rewardshift.errors import InputError
from rewardshift.extras import needs
from rewardshift.lab.figure import Unit, duration
from rewardshift.lab.runner import Outcome, Place, Plan
from rewardshift.lab.sweep.constants import Constants, method_name
from rewardshift.lab.sweep.run import SweepFile, expected_seconds
from rewardshift.lab.sweep.task import Sweep, SweepTask, make_sweep
from rewardshift.shift import Shift
from rewardshift.training.config import chosen_seeds, plain_name

SEEDS = 8  # enough for a verdict


@dataclass(frozen=True, kw_only=True)
class PlaceOptions:
    """Where a sweep runs.

    Args:
        jobs: The number of processes; by default one per core.
        on: Where to run: in processes of this machine, or on a Ray cluster.
        address: The address of the Ray cluster; by default one is started on this machine.
    """

    jobs: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    on: Literal["here", "ray"] = "here"
    address: Annotated[str | None, tyro.conf.arg(metavar="ADDRESS")] = None


class SweepJob(NamedTuple):
    """The settings of a `rewardshift sweep` command."""

    name: str
    agent: Agent
    options: OnlineOptions | OfflineOptions
    constants: Constants
    budget: Any
    usual_budget: Any
    place: PlaceOptions

    def kept(self) -> SweepFile:
        """The sweep, with the commands that run it and that train with each constant."""
        rule = AUTO in (*self.constants.shift, *self.constants.optimism)
        if rule and self.options.terminal == Shift.terminal:
            raise InputError(
                "beside numbers with --terminal zero, 'auto' has a treatment of its own: leave"
                " --terminal zero out, or train 'auto' apart (train --shift auto --terminal zero)"
            )
        sweep = make_sweep(
            self.options.shifted(self.agent), _task(self.options), self.budget, self.constants
        )
        module = ("--import", self.name.partition(":")[0]) if ":" in self.name else ()
        run = [
            *flags(self.options, without=("out", "scale", "terminal", "first_seed")),
            *shift_flags(sweep.shift),
            *flags(sweep.agent, without=("shift",)),
            *flags(self.budget, self.usual_budget),
        ]
        train = (*module, "train", self.name)
        return SweepFile(
            sweep,
            command(*module, "sweep", self.name, *flags(self.constants), *run),
            {
                method_name(constant): command(*train, "--shift", str(constant), *run)
                for constant in sweep.constants
            },
        )


def sweep_jobs(arguments: Sequence[str]) -> Any:
    """The type of a `SweepJob` for tyro: a subcommand for each agent."""
    return by_agent("sweep", arguments, _maker, (Constants, PlaceOptions))


def _maker(kind: type[Any], default: Budget) -> Callable[..., SweepJob]:
    """A function whose parameters tyro shows as flags."""
    raw_budget, options = unchecked(type(default)), options_of(default)
    raw_constants = unchecked(Constants)
    defaults = raw_budget(**vars(default))
    name = next((n for n, (one, _) in AGENTS.items() if one is kind), "")

    def make(
        run: Any,
        agent: Any,
        constants: Any = raw_constants(),  # noqa: B008  tyro's defaults
        budget: Any = defaults,
        place: Any = PlaceOptions(),  # noqa: B008
    ) -> SweepJob:
        return SweepJob(
            name or f"{kind.__module__}:{kind.__qualname__}",
            checked(kind, agent),
            options(**vars(run)),
            checked(Constants, constants),
            checked(type(default), budget),
            default,
            place,
        )

    make.__annotations__.update(
        run=unchecked(options, first_seed=HIDDEN, seeds=SEEDS),
        agent=unchecked(kind, shift=HIDDEN),
        constants=raw_constants,
        budget=raw_budget,
        place=PlaceOptions,
    )
    make.__doc__ = (kind.__doc__ or "").partition("\n")[0]
    return make


def _task(options: OnlineOptions | OfflineOptions) -> SweepTask:
    if isinstance(options, OfflineOptions):
        return SweepTask(options.env, data=options.data, subset=options.subset())
    return SweepTask(options.env)


def sweep_constants(job: SweepJob) -> None:
    """Train an agent with several constants, and compare each of them with none.

    It says beforehand how long it will take. After a stop, the same command continues. The
    results are in OUT/sweep, the page is OUT/report.html.

    Args:
        job: The agent: its name, or your own as MODULE:CLASS.
    """
    with needs("paper"):  # before any work
        from rewardshift.report.response import HEADS, cells, few_seeds  # noqa: PLC0415
        from rewardshift.report.sweeps import answer  # noqa: PLC0415
    chosen_seeds(job.options.seeds)
    place = place_of(job.place.on, job.place.jobs, job.place.address)
    kept = job.kept()
    out = job.options.out or Path("sweeps") / _folder_name(kept.sweep)
    found = answer(kept, job.options.seeds, out, place, _work)
    table = Table(*HEADS, title=kept.sweep.figure().title, title_justify="left")
    for row in cells(found.points):
        table.add_row(*map(escape, row))
    Console().print(table)
    if warning := few_seeds(found.points):
        print(warning)
    for one in found.findings:
        print(one.words)
    for line in dict.fromkeys(one.training for one in found.findings):
        print(f"train:   {line}")
    print(f"picture: {out / 'sweep' / 'response.png'}")
    print(f"report:  {found.page}")


def _folder_name(sweep: Sweep) -> str:
    return plain_name(type(sweep.agent).__name__.lower(), sweep.task.name, sweep.digest)


def _work(plan: Plan, units: list[Unit], place: Place) -> list[Outcome]:
    """Runs units with a bar, after saying how long they will take."""
    if units:
        seconds = expected_seconds(plan, units, place.slots() or len(units))
        count = f"{len(units)} unit{'s' * (len(units) > 1)} of work"
        print(f"{count}, about {duration(seconds)} by the speed of the first steps", flush=True)
    return run_with_progress(plan, units, place)
