"""The declaration of a figure: its panels, methods, budgets and claims.

Nothing here runs anything. The runner turns a declaration into work, and `report/` judges
its claims from the results.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rewardshift.errors import InputError
from rewardshift.shift import Terminal

Metric = Literal["auc", "final", "best", "drop", "deviation"]
Source = Literal["paper", "ours"]
PresetName = Literal["smoke", "quick", "paper"]
Group = tuple[tuple[str, ...], tuple[str, ...]]

# The groups of figures, each with the question that they ask.
SCENARIOS = {
    "maze": "Does a negative shift help a simple agent to find a far goal in a maze?",
    "S3 curiosity": "Does a negative shift help to explore, also where curiosity is rewarded?",
    "S2 control": "Do shifts help simulated robots to learn to run?",
    "goals": "Does the sign of the reward matter where a robot arm has to reach goals?",
    "S1 offline": "Does a positive shift help an agent that learns from recorded data alone?",
    "theory": "Where do values start, how long does a shift last, what does it do at an end?",
    "auto": "Can a shift choose its own constant?",
}

CORES = 2  # of the machine that the times of presets refer to


class Unit(NamedTuple):
    """A unit of a figure's work: these methods on these tasks for these seeds."""

    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    budget: Any
    terminal: Terminal


class Curve(NamedTuple):
    """The learning curve of one seed of one method in one panel."""

    panel: str
    method: str
    seed: int
    steps: Sequence[int]
    values: Sequence[float]


class Style(NamedTuple):
    """The style of a method in plots: its colour, and Matplotlib's name of its line style."""

    color: str
    line: str


# Styles for methods without one. They differ in colour; dashes help where colours are not visible.
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
        name: The name in `results.csv`.
        title: The title above the plot.
        y_label: The label of the values.
        task: The name of one of the figure's tasks.
        measure: The measured quantity, one of those that the figure's `run` knows.
        lower_is_better: Whether lower values are better, as for distances and errors. Claims
            respect it.
        y_range: The range of the values, if the task has one.
        methods: The names of the shown methods. None shows all of the figure's.
        plot: In a picture against constants, the title of the plot that it shares with other
            panels; by default it has its own.
        line: Its label in that plot.
    """

    name: str
    title: str
    y_label: str
    task: str
    measure: str
    lower_is_better: bool = False
    y_range: tuple[float, float] | None = None
    methods: tuple[str, ...] | None = None
    plot: str = ""
    line: str = ""

    def shows(self, method: str) -> bool:
        """Whether the method has a line in this panel."""
        return self.methods is None or method in self.methods


@dataclass(frozen=True)
class Method:
    """One line in every panel.

    Args:
        name: The name in `results.csv`.
        label: The label in the legend.
        agent: The agent. None takes that of each task.
        style: The style in plots. None takes one from `PALETTE`, by the method's index.
        apart: Whether it is a unit of work by itself even if the other methods share one.
        constant: Its place in a picture against constants.
    """

    name: str
    label: str
    agent: Any = None
    style: Style | None = None
    apart: bool = False
    constant: float | None = None


@dataclass(frozen=True)
class Claim:
    """A claim: a sentence, and the comparison of two methods in a panel that tests it.

    Args:
        id: Unique within the figure.
        panel: The panel's name.
        statement: The sentence.
        better, worse: The names of the two methods; with `alike`, in any order. None as `worse`
            needs a `bound`.
        metric: `"auc"`: the mean of the curve. `"final"`: the mean of its end. `"best"`: its
            highest value. `"drop"`: `"final"` minus `"best"`, near 0 if little is lost.
            `"deviation"`: its largest absolute value.
        source: The source of the claim: the paper, or us.
        alike: If given, the claim is that the two are alike: their difference is smaller than
            this share of the range of the panel's values.
        allowance: If given, the claim is that `better` is not worse by more than this share of the
            range of the panel's values.
        bound: If given, the claim is that the metric is nearer to 0 than this, in the panel's
            units. The curve is that of `better`, minus that of `worse` with the same seed if there
            is one.
        until: If given, only the curve up to this step counts.
        end: The share of the curve that is its end.
    """

    id: str
    panel: str
    statement: str
    better: str
    worse: str | None
    metric: Metric = "auc"
    source: Source = "paper"
    alike: float | None = None
    allowance: float | None = None
    bound: float | None = None
    until: int | None = None
    end: float = 0.1


@dataclass(frozen=True)
class Preset:
    """A size at which to run a figure.

    Args:
        seeds: The default number of seeds.
        budget: The `Budget` of all tasks, or a mapping with that of each.
        seconds: The approximate duration on two cores that do nothing else.
        note: The reductions compared to the paper that save computing time, beside the seeds;
            empty if there are none.
        decides: Whether its results allow a verdict.
        left_out: The tasks of the figure that are not run, each with the approximate core-hours
            that it would take.
    """

    seeds: int
    budget: Any
    seconds: float
    note: str = ""
    decides: bool = True
    left_out: Mapping[str, float] = field(default_factory=dict)

    @property
    def core_hours(self) -> float:
        """The approximate core-hours."""
        return self.seconds * CORES / 3600


@dataclass(frozen=True)
class Figure:
    """A figure: its tasks, methods, panels, claims and presets.

    Args:
        name: The name on the command line and of the folder.
        title: The title.
        tasks: The tasks by name, each a `Task`, or what the figure's own `run` takes.
        panels, methods, claims: See `Panel`, `Method` and `Claim`.
        presets: The presets by name.
        x_label: The label of the steps.
        form: What the picture shows. `"curves"`: a plot of learning curves for each panel. The
            others show one number for each curve, that by which the first claim compares:
            `"constants"` its mean and interval against the constants of the methods, `"table"`
            its mean, with a row for each panel and a column for each method.
        constants: The words for the methods' constants, in the picture against them.
        columns: The number of plots side by side.
        run: A function of your own that trains the methods on the tasks of a `Unit` for its seeds
            and returns the curves. A curve must not depend on the rest of the unit. The function
            may store in the given folder the files that it needs to continue after an interruption.
            None trains one method on one task, with `train` or `train_offline`.
        unit_spans: The axes that one unit of work of your own `run` spans; along the others every
            unit has one task or one method.
        seeds_per_unit: The number of seeds in one unit of work.
        revision: A number to raise by hand when a change of the code behind `run` changes curves.
        scenario: The group of figures that the report filters claims by: one of `SCENARIOS`, or
            another one for a figure of your own.
        wording: The paper's words about it, quoted; empty if it has none.
        differs: What differs from the paper's setting in every preset, beside the seeds; empty if
            nothing does.
        takes_terminal: Whether the treatment of terminal states is a setting of the whole figure.
            False if its tasks or methods have their own.
    """

    name: str
    title: str
    tasks: Mapping[str, Any]
    panels: tuple[Panel, ...]
    methods: tuple[Method, ...]
    claims: tuple[Claim, ...]
    presets: Mapping[str, Preset]
    x_label: str = "environment steps"
    form: Literal["curves", "constants", "table"] = "curves"
    constants: str = "constant b"
    columns: int = 3
    run: Callable[["Figure", "Unit", Path], list[Curve]] | None = None
    unit_spans: tuple[Literal["task", "method"], ...] = ()
    seeds_per_unit: int = 8
    revision: int = 1
    scenario: str = "other"
    wording: str = ""
    differs: str = ""
    takes_terminal: bool = True

    def at(self, preset: str) -> "Figure":
        """The figure with only the tasks of a preset, but with all claims."""
        left_out = self.preset(preset).left_out
        return replace(
            self,
            tasks={name: task for name, task in self.tasks.items() if name not in left_out},
            panels=tuple(panel for panel in self.panels if panel.task not in left_out),
        )

    def preset(self, name: str) -> Preset:
        """The preset of this name; InputError if there is none."""
        if name not in self.presets:
            raise InputError(
                f"preset must be one of {', '.join(self.presets)} for {self.name}, got {name!r}"
            )
        return self.presets[name]

    def style(self, method: Method) -> Style:
        """The style of a method of the figure."""
        return method.style or PALETTE[self.methods.index(method) % len(PALETTE)]

    @property
    def groups(self) -> list[Group]:
        """The groups of tasks and methods that units of work cover.

        A method that no panel of a task shows is not run on that task.
        """
        tasks, methods = tuple(self.tasks), tuple(method.name for method in self.methods)
        task_groups = [tasks] if "task" in self.unit_spans else [(task,) for task in tasks]
        together = [m.name for m in self.methods if "method" in self.unit_spans and not m.apart]
        alone = [(name,) for name in methods if name not in together]
        method_groups = [tuple(together), *alone] if together else alone
        shown = {(panel.task, m) for panel in self.panels for m in methods if panel.shows(m)}
        return [
            group
            for group in product(task_groups, method_groups)
            if not shown.isdisjoint(product(*group))
        ]

    def digest(self, preset: str, terminal: Terminal, group: Group) -> str:
        """A short hash of everything that the curves of a group depend on.

        Units of work are stored under it, so results of different declarations never mix.
        """
        tasks, methods = group
        budget = self.presets[preset].budget
        # Of budgets for each task, those of these tasks alone.
        own = [budget[task] for task in tasks] if isinstance(budget, Mapping) else budget
        parts = (
            self.name,
            self.revision,
            [(task, self.tasks[task]) for task in tasks],
            [(m.name, m.agent) for m in self.methods if m.name in methods],
            [(p.name, p.task, p.measure) for p in self.panels if p.task in tasks],
            own,
            terminal,
        )
        return sha256(repr(parts).encode()).hexdigest()[:12]


def task_panels(
    tasks: Iterable[str],
    y_label: str = "return",
    measure: str = "evaluation_return",
    *,
    title: Callable[[str], str] = str,
    **settings: Any,
) -> tuple[Panel, ...]:
    """A panel for each task, called like it.

    Args:
        tasks: The names of the tasks.
        y_label, measure: As in `Panel`; by default the return of evaluations.
        title: The title from the name of a task; by default the name.
        **settings: Other fields of every panel.
    """
    return tuple(Panel(task, title(task), y_label, task, measure, **settings) for task in tasks)


def orderings(
    panels: Iterable[str],
    sentences: Iterable[tuple[str, str, str] | tuple[str, str, str, Mapping[str, Any]]],
    ids: str = "{panel}-{better}-above-{worse}",
    **settings: Any,
) -> tuple[Claim, ...]:
    """The claims that compare the same methods in each panel, by default that one is above another.

    Args:
        panels: The names of the panels.
        sentences: The better method, the worse one, the statement, and perhaps a mapping with
            `ids` and other fields of these claims alone.
        ids: The id of a claim, with the names of the panel and of the methods in braces.
        **settings: Other fields of every claim.
    """
    claims = []
    for panel, sentence in product(panels, sentences):
        better, worse, statement = sentence[:3]
        given: dict[str, Any] = {"ids": ids, **settings}
        for own in sentence[3:]:
            given |= own
        name = given.pop("ids").format(panel=panel, better=better, worse=worse)
        claims.append(Claim(name, panel, statement, better, worse, **given))
    return tuple(claims)


def smoke_preset(budget: Any, seconds: float) -> Preset:
    """The preset of two seeds that decides nothing; see `Preset`."""
    return Preset(2, budget, seconds, "shows that it runs, nothing else", decides=False)


def rounded(number: float) -> str:
    """A number of hours, lifetimes or deviations, rounded for display."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def duration(seconds: float) -> str:
    """A duration in words."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
