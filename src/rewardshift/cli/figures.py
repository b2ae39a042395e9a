"""The commands about figures: `list`, `reproduce` and `report`."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.table import Table

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift.cli.progress import run_with_progress
from rewardshift.errors import InputError, TrainingError, shown
from rewardshift.extras import needs
from rewardshift.files import writable_folder
from rewardshift.lab import FIGURES, find_figure
from rewardshift.lab.cluster import RayCluster
from rewardshift.lab.figure import CORES, Figure, PresetName, duration, rounded
from rewardshift.lab.processes import Processes
from rewardshift.lab.runner import (
    WHOLE,
    Place,
    Plan,
    Shard,
    gather,
    missing_seeds,
    pending_units,
)
from rewardshift.lab.sweep.declaration import refuse_sweep


def list_figures(*, cost: bool = False) -> None:
    """List every figure with its panels, methods, presets and their approximate durations.

    Args:
        cost: Print instead the cost of each figure: its units of work and core-hours.
    """
    if cost:
        Console().print(_costs())
        return
    for figure in FIGURES.values():
        print(f"{figure.name}: {figure.title}")
        print(f"  panels   {', '.join(panel.name for panel in figure.panels)}")
        print(f"  methods  {', '.join(method.name for method in figure.methods)}")
        for name, preset in figure.presets.items():
            note = f" ({preset.note})" if preset.note else ""
            print(f"  {name:8} {preset.seeds} seeds, about {duration(preset.seconds)}{note}")
            for line in _details(figure, name):
                print(f"  {'':8} {line}")
    print(
        f"Times are for {CORES} cores. Run one with: rewardshift reproduce FIGURE --preset PRESET"
    )


def _details(figure: Figure, name: str) -> Iterator[str]:
    """More about a preset: its budget in lifetimes, and the tasks left out."""
    if figure.lifetimes is not None:
        tasks = figure.at(name).tasks
        found = sorted(figure.lifetimes(figure, task, name) for task in tasks)
        ends = dict.fromkeys(rounded(count) for count in (found[0], found[-1]))
        yield f"trains for {' to '.join(ends)} lifetimes of a shift"
    left_out = figure.presets[name].left_out
    if left_out:
        texts = [f"{task} (about {rounded(hours)} core-hours)" for task, hours in left_out.items()]
        yield f"leaves out {', '.join(texts)}"


def _costs() -> Table:
    table = Table("figure", "preset", "units", "core-hours", title="About what a figure costs")
    for figure in FIGURES.values():
        for name, preset in figure.presets.items():
            groups = len(figure.at(name).groups)
            units = groups * -(-preset.seeds // figure.seeds_per_unit)
            table.add_row(figure.name, name, f"{units}", rounded(preset.core_hours))
    return table


def reproduce(
    figure: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FIGURE")],
    /,
    *,
    preset: PresetName = "quick",
    seeds: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
    out: Path = Path("out"),
    jobs: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
    shard: Annotated[str, tyro.conf.arg(metavar="I/N")] = "1/1",
    on: Literal["here", "ray"] = "here",
    address: Annotated[str | None, tyro.conf.arg(metavar="ADDRESS")] = None,
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
        jobs: The number of processes; by default one per core.
        shard: The part of the work to run here, for example 2/4, the second of four, if several
            machines share the work. Afterwards the command without --shard combines the results.
        on: Where to run: in processes of this machine, or on a Ray cluster.
        address: The address of the Ray cluster; by default one is started on this machine.
        terminal: "zero" cuts the shift off at a terminal state, as the paper does;
            "absorbing" makes it exactly policy-invariant. Figures whose methods have treatments of
            their own ignore it.
    """
    with needs("paper"):  # before any work
        from rewardshift.cli import verdicts  # noqa: PLC0415
    place = place_of(on, jobs, address)
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
    part = _parse_shard(shard)
    failed = []
    work = [(plan, pending_units(plan, part)) for plan in plans]
    for plan, units in work:
        failed += run_with_progress(plan, units, place)
        if part != WHOLE and missing_seeds(plan):
            print(f"{plan.figure}: shard {shard} is done; others are missing")
        elif gather(plan):
            verdicts.judge_figure(plan)
    verdicts.make_page(out)
    if failed:
        raise TrainingError(
            f"{len(failed)} unit{'s' * (len(failed) > 1)} of work failed, see above; the same"
            " command runs what is missing"
        )


def place_of(on: str, jobs: int | None, address: str | None) -> Place:
    """The place that performs units of work."""
    if on == "ray":
        if jobs is not None:
            raise InputError("--jobs is for processes of this machine, not for --on ray")
        return RayCluster(address)
    if address is not None:
        raise InputError("--address is for --on ray")
    jobs = jobs if jobs is not None else os.cpu_count() or 1
    if jobs < 1:
        raise InputError(f"jobs must be 1 or more, got {jobs}")
    return Processes(jobs)


def _parse_shard(text: str) -> Shard:
    parts = re.fullmatch("([0-9]{1,9})/([0-9]{1,9})", text)
    if parts is not None:
        shard = Shard(*map(int, parts.groups()))
        if 1 <= shard.number <= shard.of:
            return shard
    raise InputError(f"shard must be I/N with I from 1 to N, for example 2/4, got {shown(text)}")


def report(
    out: Annotated[Path, tyro.conf.Positional] = Path("out"),
    *,
    markdown: bool = False,
    seal: bool = False,
) -> None:
    """Make verdicts, pictures and the page again from the results in a folder.

    Results that were changed after they were written are refused; a seal in provenance.json
    protects them.

    Args:
        out: The folder that `rewardshift reproduce` or `rewardshift sweep` wrote to.
        markdown: Print the counts of the verdicts as Markdown.
        seal: Seal results without a seal, such as those of earlier versions.
    """
    if not out.is_dir():
        raise InputError(f"no folder {str(out)!r}")
    with needs("paper"):
        from rewardshift.cli import verdicts  # noqa: PLC0415
    verdicts.make_report(writable_folder(out), markdown=markdown, seal=seal)
