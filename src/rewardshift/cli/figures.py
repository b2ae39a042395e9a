"""The command `list`."""

from rich.console import Console
from rich.table import Table

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift.lab import FIGURES
from rewardshift.lab.figure import CORES, Figure, duration, rounded
from rewardshift.lab.trainings import budget_lifetimes


def list_figures(*, cost: bool = False) -> None:
    """List every figure with its panels, methods, presets and their approximate durations.

    Args:
        cost: Print instead the cost of each figure: its units of work and core-hours.
    """
    if cost:
        table = Table("figure", "preset", "units", "core-hours", title="About what a figure costs")
        for figure in FIGURES.values():
            for name, preset in figure.presets.items():
                units = len(figure.at(name).groups) * -(-preset.seeds // figure.seeds_per_unit)
                table.add_row(figure.name, name, f"{units}", rounded(preset.core_hours))
        Console().print(table)
        return
    for figure in FIGURES.values():
        print(f"{figure.name}: {figure.title}")
        print(f"  panels   {', '.join(panel.name for panel in figure.panels)}")
        print(f"  methods  {', '.join(method.name for method in figure.methods)}")
        for name, preset in figure.presets.items():
            note = f" ({preset.note})" if preset.note else ""
            print(f"  {name:8} {preset.seeds} seeds, about {duration(preset.seconds)}{note}")
            _print_details(figure, name)
    print(
        f"Times are for {CORES} cores. Run one with: rewardshift reproduce FIGURE --preset PRESET"
    )


def _print_details(figure: Figure, name: str) -> None:
    """Prints the budget of a preset in lifetimes, and the tasks left out."""
    told = (budget_lifetimes(figure, task, name) for task in figure.at(name).tasks)
    if found := sorted(count for count in told if count is not None):
        ends = dict.fromkeys(rounded(count) for count in (found[0], found[-1]))
        noun = "lifetime" if list(ends) == ["1"] else "lifetimes"
        print(f"  {'':8} trains for {' to '.join(ends)} {noun} of a shift")
    left_out = figure.presets[name].left_out
    if left_out:
        texts = [f"{task} (about {rounded(hours)} core-hours)" for task, hours in left_out.items()]
        print(f"  {'':8} leaves out {', '.join(texts)}")
