"""What a figure is: a declaration of its panels, methods, budgets and claims.

Nothing here runs anything. The runner turns a declaration into work, `report/` judges
its claims from the results.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rewardshift.shift import Terminal

Metric = Literal["auc", "final", "best", "drop"]
PresetName = Literal["smoke", "quick", "paper"]
Group = tuple[tuple[str, ...], tuple[str, ...]]


class Unit(NamedTuple):
    """A piece of a figure that is run as one: these methods on these tasks for these seeds."""

    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    budget: Any
    terminal: Terminal


class Curve(NamedTuple):
    """One learning curve: what one seed of one method did in one panel."""

    panel: str
    method: str
    seed: int
    steps: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True)
class Panel:
    """One plot of a figure.

    Args:
        name: As it stands in `results.csv`.
        title: Above the plot.
        y_label: What the values are.
        task: The task that is trained on, one of the figure's.
        measure: What is looked at in it, one of those that the figure's `run` knows.
        lower_is_better: For distances and errors; claims follow it.
        y_range: Of the axis, where the values have one.
    """

    name: str
    title: str
    y_label: str
    task: str
    measure: str
    lower_is_better: bool = False
    y_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Method:
    """One line in every panel.

    Args:
        name: As it stands in `results.csv`; the line's colour hangs on it.
        label: In the legend.
        agent: The configured agent.
    """

    name: str
    label: str
    agent: Any


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper as a comparison of two methods in one panel.

    Args:
        id: Unique within the figure.
        panel: The panel's name.
        statement: The sentence.
        better, worse: Names of the two methods; for "alike", in any order.
        metric: `"auc"`: the mean of the curve. `"final"`: the mean of its last tenth. `"best"`: its
            highest value. `"drop"`: the second minus the third, nearer to 0 if less was lost.
        margin: If given, the claim is that the two are alike: that their difference is
            smaller than this.
        until: If given, only the curve up to this step counts.
    """

    id: str
    panel: str
    statement: str
    better: str
    worse: str
    metric: Metric = "auc"
    margin: float | None = None
    until: int | None = None


@dataclass(frozen=True)
class Preset:
    """How much of a figure to run.

    Args:
        seeds: How many, unless the user says otherwise.
        budget: What the figure's `run` takes.
        seconds: About how long that takes on two cores.
        note: What is less than in the paper, beside the seeds; empty if nothing is.
        decides: Whether its results are worth a verdict.
        tasks: Which of the figure's tasks, if not all.
    """

    seeds: int
    budget: Any
    seconds: float
    note: str = ""
    decides: bool = True
    tasks: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Figure:
    """A figure of the paper.

    Args:
        name: On the command line and as a folder.
        title: What it shows.
        tasks: Names of the tasks, and what makes them.
        panels, methods, claims: See there.
        presets: By name.
        x_label: What a step is.
        run: Trains the methods on the tasks of a `Unit` for its seeds and returns the curves.
            A curve must not depend on what else is in the unit. In the folder that it is given it
            may keep what it needs to go on after an interruption.
        unit_spans: Which axes one unit of work takes whole; along the others every unit has
            one task or one method.
        seeds_per_unit: How many seeds one unit of work takes together.
        revision: Raised by hand when the code behind `run` gives other curves than before.
    """

    name: str
    title: str
    tasks: Mapping[str, Any]
    panels: tuple[Panel, ...]
    methods: tuple[Method, ...]
    claims: tuple[Claim, ...]
    presets: Mapping[str, Preset]
    x_label: str
    run: Callable[["Figure", "Unit", Path], list[Curve]]
    unit_spans: tuple[Literal["task", "method"], ...]
    seeds_per_unit: int
    revision: int = 1

    def at(self, preset: str) -> "Figure":
        """The figure with the tasks of a preset alone."""
        chosen = self.presets[preset].tasks
        if chosen is None:
            return self
        panels = tuple(panel for panel in self.panels if panel.task in chosen)
        shown = {panel.name for panel in panels}
        return replace(
            self,
            tasks={name: task for name, task in self.tasks.items() if name in chosen},
            panels=panels,
            claims=tuple(claim for claim in self.claims if claim.panel in shown),
        )

    def unit(self, preset: str, terminal: Terminal, group: Group, seeds: Sequence[int]) -> Unit:
        """These seeds of a group, as a unit of work."""
        return Unit(*group, tuple(seeds), self.presets[preset].budget, terminal)

    @property
    def groups(self) -> list[Group]:
        """The tasks and methods of the units of work, all together or one by one."""
        tasks, methods = tuple(self.tasks), tuple(method.name for method in self.methods)
        task_groups = [tasks] if "task" in self.unit_spans else [(task,) for task in tasks]
        method_groups = [methods] if "method" in self.unit_spans else [(m,) for m in methods]
        return list(product(task_groups, method_groups))

    def digest(self, preset: str, terminal: Terminal, group: Group) -> str:
        """A short name for everything that decides the curves of a group.

        Units of work are kept under it, so results of another declaration are never
        taken for these.
        """
        tasks, methods = group
        parts = (
            self.name,
            self.revision,
            [(task, self.tasks[task]) for task in tasks],
            [(m.name, m.agent) for m in self.methods if m.name in methods],
            [(p.name, p.task, p.measure) for p in self.panels if p.task in tasks],
            self.presets[preset].budget,
            terminal,
        )
        return sha256(repr(parts).encode()).hexdigest()[:12]
