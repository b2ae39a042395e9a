"""Shared code of the figures of online training: from a unit of work to its curves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from rewardshift.agents.settings import ShiftLike
from rewardshift.auto import Rule
from rewardshift.errors import InputError
from rewardshift.lab.figure import Curve, Figure, Metric, Panel, Unit
from rewardshift.shift import Terminal
from rewardshift.training.online import OnlineBudget
from rewardshift.training.runs import Result, train

# The metrics that compare curves, and their words.
METRICS: dict[Metric, str] = {"auc": "over the whole training", "final": "at its end"}


@dataclass(frozen=True)
class Task:
    """A task of a figure.

    Args:
        env: The registered environment.
    """

    env: str


class OnlineFigureBudget(Protocol):
    """The budget of a figure of online training."""

    def configure(self, agent: Any, task: Any, terminal: Terminal) -> Any:
        """The method's agent, configured for the task."""
        ...

    def online(self, task: str) -> OnlineBudget:
        """The budget for the training loop."""
        ...


@dataclass(frozen=True)
class SharedBudget:
    """What the budgets of figures have in common whose tasks say their own steps.

    Args:
        share: The share of each task's steps.
        evaluations: Points of a curve.
        evaluation_episodes: Greedy episodes per point.
    """

    share: float = 1.0
    evaluations: int = 25
    evaluation_episodes: int = 5

    def of_steps(self, steps: int) -> OnlineBudget:
        """The budget for the training loop on a task of so many steps."""
        taken = round(self.share * steps)
        return OnlineBudget(
            steps=taken,
            evaluate_every=taken // self.evaluations,
            evaluation_episodes=self.evaluation_episodes,
        )


def with_terminal(agent: Any, terminal: Terminal) -> ShiftLike:
    """The agent's shift with another treatment of terminal states. A rule keeps its own."""
    if isinstance(agent.shift, Rule):
        return agent.shift
    return tuple(replace(member, terminal=terminal) for member in agent.members)


def return_panels(tasks: Sequence[str]) -> tuple[Panel, ...]:
    """A panel of evaluation returns for each task."""
    return tuple(Panel(t, t, "return", task=t, measure="evaluation_return") for t in tasks)


def run_online(figure: Figure, unit: Unit, folder: Path) -> list[Curve]:
    """One method on one task, all seeds of the unit side by side."""
    (name,), (method,) = unit.tasks, unit.methods
    (agent,) = [m.agent for m in figure.methods if m.name == method]
    task = figure.tasks[name]
    budget: OnlineFigureBudget = unit.budget
    result = train(
        budget.configure(agent, task, unit.terminal),
        task.env,
        seeds=unit.seeds,
        budget=budget.online(name),
        folder=folder,
    )
    return curves_of(figure, unit, result)


def online_lifetimes(figure: Figure, task: str, preset: str) -> float:
    """See `Figure`: the steps of a task in lifetimes of the first method's shift."""
    budget: OnlineFigureBudget = figure.presets[preset].budget
    agent = budget.configure(figure.methods[0].agent, figure.tasks[task], "zero")
    online = budget.online(task)
    return (online.steps - agent.warm_up) / agent.lifetime


def curves_of(figure: Figure, unit: Unit, result: Result) -> list[Curve]:
    """The rows of a run of one method on one task, as the curves of its panels."""
    if not result.finished:
        raise KeyboardInterrupt
    (task,), (method,) = unit.tasks, unit.methods
    return [
        _curve(panel, method, seed, result)
        for panel in figure.panels
        if panel.task == task and panel.shows(method)
        for seed in unit.seeds
    ]


def _curve(panel: Panel, method: str, seed: int, result: Result) -> Curve:
    """The curve of a panel's column, without empty cells such as a metric's in the warm-up."""
    columns = result.columns
    if panel.measure not in columns.names:
        raise InputError(
            f"the panel {panel.name!r} shows {panel.measure!r}, but the columns of {method!r} are"
            f" {', '.join(columns.names)}"
        )
    cells = [(r.step, columns.value(r, panel.measure)) for r in result.rows if r.seed == seed]
    points = [(step, value) for step, value in cells if value is not None]
    return Curve(panel.name, method, seed, [p[0] for p in points], [p[1] for p in points])
