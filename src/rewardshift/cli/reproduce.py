"""The command `reproduce`."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift.checks import Count, checked
from rewardshift.errors import InputError, TrainingError
from rewardshift.lab import FIGURES, find_figure
from rewardshift.lab.cluster import RayCluster
from rewardshift.lab.figure import PresetName, Unit, duration
from rewardshift.lab.processes import Processes
from rewardshift.lab.runner import Outcome, Place, Plan, gather, pending_units, run_units
from rewardshift.lab.sweep.declaration import refuse_sweep

COLORS = {
    "supported": "green",
    "contradicted": "red",
    "inconclusive": "yellow",
    "not tested": "blue",
}


@dataclass(frozen=True, kw_only=True)
class PlaceOptions:
    """Where units of work run.

    Args:
        jobs: The number of processes; by default one per core.
        on: Where to run: in processes of this machine, or on a Ray cluster.
        address: The address of the Ray cluster; by default one is started on this machine.
    """

    jobs: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    on: Literal["here", "ray"] = "here"
    address: Annotated[str | None, tyro.conf.arg(metavar="ADDRESS")] = None

    def place(self) -> Place:
        """The place that performs units of work."""
        if self.on == "ray":
            if self.jobs is not None:
                raise InputError("--jobs is for processes of this machine, not for --on ray")
            return RayCluster(self.address)
        if self.address is not None:
            raise InputError("--address is for --on ray")
        jobs = self.jobs if self.jobs is not None else os.cpu_count() or 1
        return Processes(checked("jobs", Count, jobs))


def reproduce(
    figure: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FIGURE")],
    /,
    *,
    preset: PresetName = "quick",
    seeds: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
    out: Path = Path("out"),
    place: PlaceOptions = PlaceOptions(),  # noqa: B008  tyro's default
    terminal: Literal["zero", "absorbing"] = "zero",
) -> None:
    """Run a figure of the paper and judge its claims.

    The same command continues an interrupted run; finished units of work are not run twice. A
    failing unit does not stop the others.

    Args:
        figure: The figure's name, as `rewardshift list` prints it, or "all".
        preset: The size of the run.
        seeds: The number of seeds; by default the preset's.
        out: The folder for the results, with a subfolder for each figure.
        place: Where to run.
        terminal: "zero" cuts the shift off at a terminal state, as the paper does;
            "absorbing" makes it exactly policy-invariant. Figures whose methods have treatments of
            their own ignore it.
    """
    from rewardshift.report import write_figure, write_page  # noqa: PLC0415  an extra, asked early

    machines = place.place()
    refuse_sweep(out)
    names = list(FIGURES) if figure == "all" else [find_figure(figure).name]
    plans = [
        Plan(
            figure=name,
            preset=preset,
            seeds=seeds if seeds is not None else FIGURES[name].preset(preset).seeds,
            terminal=terminal,
            out=out,
        )
        for name in names
    ]
    failed, judged = [], []
    work = [(plan, pending_units(plan)) for plan in plans]
    for plan, units in work:
        failed += run_with_progress(plan, units, machines)
        if gather(plan):
            judged.append(write_figure(plan.folder))
            _print_claims(plan.figure, judged[-1].claims)
            print(f"picture: {plan.folder / 'figure.png'}")
    print(f"report:  {write_page(out, known=judged)}")
    if failed:
        raise TrainingError(
            f"{len(failed)} unit{'s' * (len(failed) > 1)} of work failed, see above; the same"
            " command runs what is missing"
        )


def _print_claims(figure: str, claims: list[dict[str, Any]]) -> None:
    from rewardshift.report.verdicts import evidence, verdict_words  # noqa: PLC0415

    verdict_column = Column("verdict", no_wrap=True)
    table = Table(verdict_column, "source", "claim", "measured", title=figure, title_justify="left")
    for claim in claims:
        verdict = claim["verdict"]
        table.add_row(
            f"[{COLORS[verdict]}]{verdict_words(claim)}[/]",
            claim["source"],
            escape(f"{claim['panel']}: {claim['statement']}"),
            escape(evidence(claim)),
        )
    Console().print(table)


def run_with_progress(plan: Plan, units: list[Unit], place: Place) -> list[Outcome]:
    """Runs the units under a bar, prints a line for each that ends, and returns the failed ones."""
    if not units:
        print(f"{plan.figure}: no unit of work is left to do")
        return []
    console, total, started = Console(stderr=True), len(units), time.monotonic()
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("units of work,"),
        TimeElapsedColumn(),
    )
    failed = []
    with Progress(*columns, console=console, transient=not console.is_terminal) as bar:
        task = bar.add_task(f"{plan.figure}, {plan.preset}", total=total)
        for number, outcome in enumerate(run_units(plan, units, place), start=1):
            unit = outcome.unit
            name = ", ".join((*unit.tasks, *unit.methods, *(f"seed {seed}" for seed in unit.seeds)))
            left = duration((time.monotonic() - started) / number * (total - number))
            text = f"{number}/{total} done, about {left} left: {name}"
            if outcome.error is not None:
                failed.append(outcome)
                text = f"failed: {name}\n{outcome.error.rstrip()}"
            bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
            bar.advance(task)
    return failed
