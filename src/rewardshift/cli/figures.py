"""The command `list`."""

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift.lab import FIGURES, budget_lifetimes
from rewardshift.lab.figure import CORES, Figure, duration, rounded


def list_figures() -> None:
    """List every figure with its panels, methods, presets, and the work that each preset takes."""
    for figure in FIGURES.values():
        print(f"{figure.name}: {figure.title}")
        print(f"  panels   {', '.join(panel.name for panel in figure.panels)}")
        print(f"  methods  {', '.join(method.name for method in figure.methods)}")
        for name, preset in figure.presets.items():
            units = len(figure.at(name).groups) * -(-preset.seeds // figure.seeds_per_unit)
            note = f" ({preset.note})" if preset.note else ""
            print(
                f"  {name:8} {preset.seeds} seeds, {units} unit{'s' * (units > 1)} of work, about"
                f" {duration(preset.seconds)}{note}"
            )
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
