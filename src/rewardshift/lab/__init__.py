"""Figures: their declarations, and the register of their names.

`import rewardshift.paper` registers the paper's.
"""

import re
from difflib import get_close_matches

from rewardshift.errors import InputError, shown
from rewardshift.lab.figure import (
    Claim,
    Curve,
    Figure,
    Method,
    Panel,
    Preset,
    Style,
    Unit,
    orderings,
    smoke_preset,
    task_panels,
)
from rewardshift.lab.trainings import Budget, Task, budget_lifetimes, budgets, train_unit

__all__ = [
    "Budget",
    "Claim",
    "Curve",
    "Figure",
    "Method",
    "Panel",
    "Preset",
    "Style",
    "Task",
    "Unit",
    "budget_lifetimes",
    "budgets",
    "find_figure",
    "orderings",
    "register",
    "smoke_preset",
    "task_panels",
    "train_unit",
]

# The figures by name, in the order of their registration.
FIGURES: dict[str, Figure] = {}

RESERVED = ("all", "sweep")  # names that commands and folders use otherwise

# The modules of registered figures. Worker processes import them.
MODULES: dict[str, str] = {}


def register(figure: Figure, *, module: str) -> None:
    """Registers your own figure, for `rewardshift --import MODULE reproduce FIGURE`.

    Args:
        figure: The figure; its name becomes the name of a folder.
        module: The module that registers it, `__name__`. Worker processes import it.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", figure.name):
        raise InputError(
            "the name of a figure must be lower-case letters, digits, dots, dashes and underlines,"
            f" beginning with a letter or a digit, got {shown(figure.name)}"
        )
    if figure.name in RESERVED or "quick" not in figure.presets:
        raise InputError(
            "a figure needs a preset called 'quick' and another name than 'all' and 'sweep', got"
            " the name"
            f" {figure.name!r} and the presets {', '.join(figure.presets) or 'none'}"
        )
    panels = {panel.name for panel in figure.panels}
    methods = {method.name for method in figure.methods}
    for panel in figure.panels:
        if panel.task not in figure.tasks:
            raise InputError(
                f"the panel {panel.name!r} names no task of the figure: {panel.task!r}"
            )
    for claim in figure.claims:
        named = {claim.better, claim.worse} - ({None} if claim.bound is not None else set())
        if claim.panel not in panels or not named <= methods:
            raise InputError(
                f"the claim {claim.id!r} must name a panel and two methods of the figure, got"
                f" {claim.panel!r}, {claim.better!r} and {claim.worse!r}"
            )
    if len({claim.id for claim in figure.claims}) < len(figure.claims):
        raise InputError(f"two claims of the figure {figure.name!r} have the same id")
    if figure.name in FIGURES and MODULES.get(figure.name) != module:
        raise InputError(f"there is a figure called {figure.name!r} already; take another name")
    FIGURES[figure.name], MODULES[figure.name] = figure, module


def find_figure(name: str) -> Figure:
    """The figure of that name."""
    if name in FIGURES:
        return FIGURES[name]
    close = get_close_matches(name, FIGURES, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise InputError(f"no figure is called {name!r}; {hint}there are: {', '.join(FIGURES)}")
