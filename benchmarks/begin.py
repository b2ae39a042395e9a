"""Where untrained networks begin on the tasks of `auto`, whose unit is 1 on all of them.

`python benchmarks/begin.py` trains each task's agent without a shift, ten seeds that no figure
reports, for 2,000 steps, and prints a line of a table: the mean of the untrained networks' values
at the states seen by then, and their spread over seeds, states and actions (`start.json`). An
optimism above the networks' own spread differs from one above zero by that spread. Takes a minute
of one core.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seeds import planned, seeds

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift import OnlineBudget, train
from rewardshift.lab import FIGURES
from rewardshift.lab.processes import keep_to_one_thread

STEPS = 2_000
BUDGET = OnlineBudget(steps=STEPS, evaluate_every=STEPS, evaluation_episodes=1)


def agents() -> Iterator[tuple[str, str, Any]]:
    """The tasks of the figures, with their environments and their agents without a shift."""
    for name in ("auto", "auto-control"):
        for task in FIGURES[name].tasks:
            setting, _, without = planned(name, task)  # the first method has no shift
            yield task, setting.env, without


def begin(env: str, agent: Any) -> tuple[float, float]:
    """The mean and the spread of the untrained networks."""
    with TemporaryDirectory() as folder:
        train(agent, env, seeds=seeds(10), budget=BUDGET, folder=folder)
        start = json.loads((Path(folder) / "start.json").read_text(encoding="utf-8"))
    return start["initial"][0], start["spread"][0]


def main() -> None:
    """Prints the table."""
    keep_to_one_thread()
    print("| task | mean | spread |\n| --- | --- | --- |")
    for task, env, agent in agents():
        mean, spread = begin(env, agent)
        print(f"| {task} | {mean:.2f} | {spread:.2f} |", flush=True)


if __name__ == "__main__":
    main()
