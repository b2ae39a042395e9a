"""The core-hours of a figure's preset, from a few hundred steps of each of its methods.

`python benchmarks/hours.py control humanoid` trains every method of these figures on every task of
the preset `quick` for a moment, one seed, with one thread, and prints what all seeds of the whole
training would take. An evaluation is timed with a policy that has learned little; where that falls
early and a good one does not, evaluations will take longer. The hours in the declarations of the
figures follow it. Only figures of online training; about half a minute for a method on a task.
"""

import sys
from dataclasses import replace
from typing import Any

from seeds import Mark, core_seconds, seeds

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift import train
from rewardshift.lab import FIGURES, Budget, Method
from rewardshift.lab.processes import keep_to_one_thread
from rewardshift.lab.trainings import agent_for, budget_for

EVERY, WARM_UP = 600, 100  # steps


def seed_hours(method: Method, task: Any, budget: Budget) -> tuple[float, float]:
    """Core-hours of one seed of a method on a task: its updates, its evaluations."""
    whole = budget.online(task.hindsight)
    agent: Any = agent_for(method, task, budget)
    first = replace(agent, warm_up=min(agent.warm_up, WARM_UP)) if agent.warm_up else agent

    def run(count: int, every: int, mark: Mark) -> None:
        brief = replace(whole, steps=2 * every, evaluate_every=every)
        train(first, task.env, seeds=seeds(count), budget=brief, on_progress=mark)

    updating, evaluating = core_seconds(run, 1, EVERY)
    updates, evaluations = whole.steps - agent.warm_up, whole.steps // whole.evaluate_every
    return updating * updates / 1000 / 3600, evaluating * evaluations / 3600


def main() -> None:
    """Prints a line for each method on each task, and the sum of a figure."""
    keep_to_one_thread()
    for name in sys.argv[1:] or ("control", "humanoid"):
        preset, total = FIGURES[name].presets["quick"], 0.0
        figure = FIGURES[name].at("quick")
        methods = {method.name: method for method in figure.methods}
        for (task,), (method,) in figure.groups:
            hours = seed_hours(methods[method], figure.tasks[task], budget_for(task, preset.budget))
            total += preset.seeds * sum(hours)
            updates, evaluations = (60 * part for part in hours)
            print(
                f"{name}, {task}, {method}: a seed takes {updates:.1f} min, and {evaluations:.1f}"
                " min for its evaluations",
                flush=True,
            )
        print(f"{name}: {total:.1f} core-hours for {preset.seeds} seeds", flush=True)


if __name__ == "__main__":
    main()
