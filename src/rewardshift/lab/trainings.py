"""The usual work of a figure: from its tasks, methods and budgets to trainings and their curves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from rewardshift.agents.base import Agent
from rewardshift.data.dataset import Dataset
from rewardshift.data.loading import load_dataset
from rewardshift.errors import InputError
from rewardshift.lab.figure import Curve, Figure, Method, Unit
from rewardshift.shift import Shift, Terminal
from rewardshift.training.budgets import OfflineBudget, OnlineBudget
from rewardshift.training.hindsight import Hindsight
from rewardshift.training.runs import Result, train, train_offline


@dataclass(frozen=True)
class Task:
    """A task of a figure: an environment, or a data set, and what the agents need there.

    Args:
        env: A registered environment; with a data set, the one for evaluations.
        data: The source of a data set, as `load_dataset` takes it; or a function of a number of
            transitions and a seed that makes another one for every seed. Its `repr` must tell it
            from others.
        digest: The digest of the named data set. Other contents are refused.
        agent: The agent of all methods that have none of their own.
        settings: Settings of every agent on this task, in place of its own. `"network.hidden"` is
            the setting `hidden` of its network.
        methods: The same for single methods, by their names.
        hindsight: How the replay relabels goals, for goal tasks.
    """

    env: str | None = None
    data: str | Callable[[int, int], Dataset] | None = None
    digest: str | None = None
    agent: Agent | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    hindsight: Hindsight | None = None

    def load(self, transitions: int, seed: int) -> Dataset:
        """The data set.

        Args:
            transitions: The size, if a function makes it.
            seed: The seed, if a function makes it.
        """
        if callable(self.data):
            return self.data(transitions, seed)
        assert self.data is not None
        data = load_dataset(self.data)
        if self.digest not in (None, data.digest):
            raise InputError(
                f"the data set {self.data} is not the one of this figure: its digest is"
                f" {data.digest}, not {self.digest}"
            )
        return data


@dataclass(frozen=True)
class Budget:
    """The length of a figure's trainings, and the settings of its agents at that length.

    Args:
        steps: Environment steps of each seed; updates on a data set; episodes of a table.
        evaluations: Points of a curve.
        evaluation_episodes: Episodes per point.
        settings: As in `Task`, for all tasks of the budget.
        capacity: Transitions in the replay. None takes the default of `OnlineBudget`.
        transitions: The size of a data set that a function makes.
        diagnose: As in `OnlineBudget`.
    """

    steps: int
    evaluations: int = 25
    evaluation_episodes: int = 5
    settings: Mapping[str, Any] = field(default_factory=dict)
    capacity: int | None = None
    transitions: int = 5000
    diagnose: bool = False

    @property
    def evaluate_every(self) -> int:
        """The steps between two evaluations."""
        return self.steps // self.evaluations

    def online(self, hindsight: Hindsight | None = None) -> OnlineBudget:
        """The budget for `train`."""
        return OnlineBudget(
            steps=self.steps,
            capacity=OnlineBudget.capacity if self.capacity is None else self.capacity,
            hindsight=hindsight,
            evaluate_every=self.evaluate_every,
            evaluation_episodes=self.evaluation_episodes,
            diagnose=self.diagnose,
        )

    def offline(self) -> OfflineBudget:
        """The budget for `train_offline`."""
        return OfflineBudget(
            updates=self.steps,
            evaluate_every=self.evaluate_every,
            evaluation_episodes=self.evaluation_episodes,
        )


def budgets(steps: Mapping[str, int], **settings: Any) -> dict[str, Budget]:
    """A budget for each task.

    Args:
        steps: The steps of each task.
        **settings: Other fields of every budget.
    """
    return {task: Budget(count, **settings) for task, count in steps.items()}


def budget_for(task: str, budget: Any) -> Any:
    """The budget of a task: a preset has one for all tasks, or one for each."""
    return budget[task] if isinstance(budget, Mapping) else budget


def agent_for(method: Method, task: Task, budget: Budget, terminal: Terminal = "zero") -> Agent:
    """The agent of a method on a task.

    Args:
        method: The method.
        task: The task.
        budget: The budget on this task.
        terminal: The treatment of terminal states. Rules, and shifts that name another treatment
            than the default, keep their own.
    """
    agent: Any = task.agent if method.agent is None else method.agent
    settings = {**task.settings, **budget.settings, **task.methods.get(method.name, {})}
    agent = _with_settings(agent, settings)
    shift = agent.shift
    if isinstance(shift, tuple):
        shift = tuple(_treated(member, terminal) for member in shift)
    elif isinstance(shift, Shift):
        shift = _treated(shift, terminal)
    return cast("Agent", replace(agent, shift=shift))


def _with_settings(part: Any, settings: Mapping[str, Any]) -> Any:
    changed: dict[str, Any] = {}
    for name, value in settings.items():
        first, _, rest = name.partition(".")
        if not hasattr(part, first):
            raise InputError(f"{type(part).__name__} has no setting called {name!r}")
        before = changed.get(first, getattr(part, first))
        if not rest:
            changed[first] = value
        elif before is not None:  # a part that the agent does not have needs no settings
            changed[first] = _with_settings(before, {rest: value})
    return replace(part, **changed)


def _treated(shift: Any, terminal: Terminal) -> Any:
    return replace(shift, terminal=terminal) if shift.terminal == Shift.terminal else shift


def train_unit(figure: Figure, unit: Unit, folder: Path) -> list[Curve]:
    """Trains one method on one task, all seeds of the unit side by side.

    On data that are made for every seed, one seed is trained after the other.
    """
    (name,), (chosen,) = unit.tasks, unit.methods
    (method,) = [method for method in figure.methods if method.name == chosen]
    task, budget = figure.tasks[name], budget_for(name, unit.budget)
    agent = agent_for(method, task, budget, unit.terminal if figure.takes_terminal else "zero")
    parts = [(unit, folder)]
    if callable(task.data):
        parts = [(unit._replace(seeds=(seed,)), folder / str(seed)) for seed in unit.seeds]
    curves = []
    for part, path in parts:
        given: dict[str, Any] = {"seeds": part.seeds, "folder": path}
        if task.data is None:
            result = train(agent, task.env, budget=budget.online(task.hindsight), **given)
        else:
            data = task.load(budget.transitions, part.seeds[0])
            result = train_offline(agent, data, task.env, budget=budget.offline(), **given)
        curves += curves_of(figure, part, result)
    return curves


def curves_of(figure: Figure, unit: Unit, result: Result) -> list[Curve]:
    """The rows of a run of one method on one task, as the curves of its panels."""
    if not result.finished:
        raise KeyboardInterrupt
    (task,), (method,), columns = unit.tasks, unit.methods, result.columns
    curves = []
    for panel in figure.panels:
        if panel.task != task or not panel.shows(method):
            continue
        if panel.measure not in columns.names:
            raise InputError(
                f"the panel {panel.name!r} shows {panel.measure!r}, but the columns of {method!r}"
                f" are {', '.join(columns.names)}"
            )
        for seed in unit.seeds:
            own = [row for row in result.rows if row.seed == seed]
            cells = [(row.step, columns.value(row, panel.measure)) for row in own]
            # Some cells are empty, such as a metric's in the warm-up.
            points = [(step, value) for step, value in cells if value is not None]
            steps, values = [step for step, _ in points], [value for _, value in points]
            curves.append(Curve(panel.name, method, seed, steps, values))
    return curves


def budget_lifetimes(figure: Figure, task: str, preset: str) -> float | None:
    """The length of a training in lifetimes of the first method's shift (`rewardshift.lifetime`).

    None if its agent has no target networks, which a lifetime is about.
    """
    what, budget = figure.tasks[task], budget_for(task, figure.presets[preset].budget)
    agent: Any = figure.methods[0].agent
    if isinstance(what, Task):
        agent = agent_for(figure.methods[0], what, budget)
    if not hasattr(agent, "lifetime"):
        return None
    random = 0 if what.data is not None else agent.warm_up
    return float(max(0, budget.steps - random) / agent.lifetime)
