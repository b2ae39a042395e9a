"""The command line: `rewardshift list | reproduce | report | suggest`."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

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

from rewardshift.errors import InputError
from rewardshift.experiments import FIGURES, find_figure
from rewardshift.experiments.figure import PresetName
from rewardshift.experiments.runner import Plan, Seeds, collect, pending_units, run_units
from rewardshift.files import writable_folder
from rewardshift.report import write_figure, write_page, write_report
from rewardshift.report.page import SYMBOLS
from rewardshift.report.verdicts import comparison, evidence
from rewardshift.shift import Goal, Shift, Terminal, suggest_shift

COLORS = {"supported": "green", "not supported": "red", "inconclusive": "yellow"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Returns:
        The exit code: 0, 2 for bad input, or 130 for an interrupted run.
    """
    commands: dict[str, Callable[..., None]] = {
        "list": list_figures,
        "reproduce": reproduce,
        "report": report,
        "suggest": suggest,
    }
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
    except KeyboardInterrupt:
        print("rewardshift: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def list_figures() -> None:
    """Name every figure with its panels, methods, presets and about how long each takes."""
    for figure in FIGURES.values():
        print(f"{figure.name}: {figure.title}")
        print(f"  panels   {', '.join(panel.name for panel in figure.panels)}")
        print(f"  methods  {', '.join(method.name for method in figure.methods)}")
        for name, preset in figure.presets.items():
            note = f" ({preset.note})" if preset.note else ""
            print(f"  {name:8} {preset.seeds} seeds, about {preset.seconds:g} s{note}")
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
        horizon = 1.0 if rewards is None else 1 / (1 - Shift(0.0, gamma=gamma).gamma)
        low, high = (bound * horizon for bound in rewards or values or ())
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


def _run_with_progress(plan: Plan, units: list[Seeds], jobs: int) -> None:
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
