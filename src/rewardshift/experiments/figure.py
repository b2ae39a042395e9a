"""What a figure is: a declaration of its panels, methods, budgets and claims.

Nothing here runs anything. The runner turns a declaration into work, `report/` judges
its claims from the results.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rewardshift.shift import Terminal

Metric = Literal["auc", "final", "best", "drop"]
Source = Literal["paper", "ours"]
PresetName = Literal["smoke", "quick", "paper"]
Group = tuple[tuple[str, ...], tuple[str, ...]]

SCENARIOS = ("maze", "S1 offline", "S2 control", "S3 curiosity", "goals", "theory")

CORES = 2  # the machine that the times of presets are for


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


class Style(NamedTuple):
    """How a method is drawn: its colour, and its line in Matplotlib's words."""

    color: str
    line: str


# For methods without a style: distinct in colour, and without it by their dashes.
PALETTE = (
    Style("#525252", "--"),
    Style("#2171b5", "-"),
    Style("#d94801", "-."),
    Style("#005a32", ":"),
    Style("#6a51a3", "-"),
    Style("#cc5f9e", "--"),
    Style("#e69f00", "-."),
    Style("#41ab9d", ":"),
)


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
        y_range: The range of the values, where the task has one.
        methods: The names of the methods that it shows; None: all of the figure's.
    """

    name: str
    title: str
    y_label: str
    task: str
    measure: str
    lower_is_better: bool = False
    y_range: tuple[float, float] | None = None
    methods: tuple[str, ...] | None = None

    def shows(self, method: str) -> bool:
        """Whether the method has a line in this panel."""
        return self.methods is None or method in self.methods


@dataclass(frozen=True)
class Method:
    """One line in every panel.

    Args:
        name: As it stands in `results.csv`.
        label: In the legend.
        agent: The configured agent.
        style: How it is drawn. None takes one that its place in the figure gives it.
    """

    name: str
    label: str
    agent: Any
    style: Style | None = None


@dataclass(frozen=True)
class Claim:
    """A sentence as a comparison of two methods in one panel.

    Args:
        id: Unique within the figure.
        panel: The panel's name.
        statement: The sentence.
        better, worse: Names of the two methods; for "alike", in any order.
        metric: `"auc"`: the mean of the curve. `"final"`: the mean of its end. `"best"`: its
            highest value. `"drop"`: the second minus the third, nearer to 0 if less was lost.
        source: Whose claim it is: the paper's, or ours.
        alike: If given, the claim is that the two are alike: that their difference is smaller
            than this share of the range of the panel's values.
        until: If given, only the curve up to this step counts.
        end: The share of the curve that is its end.
    """

    id: str
    panel: str
    statement: str
    better: str
    worse: str
    metric: Metric = "auc"
    source: Source = "paper"
    alike: float | None = None
    until: int | None = None
    end: float = 0.1


@dataclass(frozen=True)
class Preset:
    """How much of a figure to run.

    Args:
        seeds: How many, unless the user says otherwise.
        budget: What the figure's `run` takes.
        seconds: About how long that takes on two cores.
        note: What is less than in the paper, beside the seeds; empty if nothing is.
        decides: Whether its results are worth a verdict.
        left_out: The tasks of the figure that are not run, each with about the core-hours that it
            would take.
    """

    seeds: int
    budget: Any
    seconds: float
    note: str = ""
    decides: bool = True
    left_out: Mapping[str, float] = field(default_factory=dict)

    @property
    def core_hours(self) -> float:
        """About the hours of one core that it takes."""
        return self.seconds * CORES / 3600


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
        scenario: The group of figures that it belongs to, by which the report filters claims:
            one of `SCENARIOS`, or another for a figure of your own.
        wording: The paper's words on it, quoted; empty if it has none.
        lifetimes: Tells how many lifetimes of a shift a task's budget is (see `lifetime` in
            `rewardshift.shift`), where its agents have target networks.
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
    scenario: str = "other"
    wording: str = ""
    lifetimes: Callable[["Figure", str, str], float] | None = None

    def at(self, preset: str) -> "Figure":
        """The figure with the tasks of a preset alone; the claims stay all."""
        left_out = self.presets[preset].left_out
        return replace(
            self,
            tasks={name: task for name, task in self.tasks.items() if name not in left_out},
            panels=tuple(panel for panel in self.panels if panel.task not in left_out),
        )

    def style(self, method: Method) -> Style:
        """How a method of the figure is drawn."""
        return method.style or PALETTE[self.methods.index(method) % len(PALETTE)]

    def unit(self, preset: str, terminal: Terminal, group: Group, seeds: Sequence[int]) -> Unit:
        """These seeds of a group, as a unit of work."""
        return Unit(*group, tuple(seeds), self.presets[preset].budget, terminal)

    @property
    def groups(self) -> list[Group]:
        """The tasks and methods of the units of work, all together or one by one.

        A method that no panel of a task shows is not run there.
        """
        tasks, methods = tuple(self.tasks), tuple(method.name for method in self.methods)
        task_groups = [tasks] if "task" in self.unit_spans else [(task,) for task in tasks]
        method_groups = [methods] if "method" in self.unit_spans else [(m,) for m in methods]
        shown = {(panel.task, m) for panel in self.panels for m in methods if panel.shows(m)}
        return [
            group
            for group in product(task_groups, method_groups)
            if not shown.isdisjoint(product(*group))
        ]

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


def rounded(number: float) -> str:
    """A number of hours, lifetimes or deviations, as it is shown to a person."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
