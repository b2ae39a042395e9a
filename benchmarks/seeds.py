"""Core-seconds per seed of two figures, for one and for several seeds side by side.

`python benchmarks/seeds.py` trains BCQ of `offline --preset quick` on hopper-imitate, and DQN with
RND of `curiosity-explained --preset quick` on MultiRoom, with one thread. It prints the
core-seconds that one seed's updates and evaluations take, without compilation, and what the whole
training of the figure would take. Each figure runs its seeds in the cheaper way. Takes about six
minutes; a name, `bcq` or `rnd`, takes a part of them.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift import train, train_offline
from rewardshift.lab import FIGURES, Budget
from rewardshift.lab.processes import keep_to_one_thread
from rewardshift.lab.trainings import agent_for, budget_for

SEEDS = 100  # the first one
Mark = Callable[[int, Sequence[Any]], None]


def bcq(count: int, every: int, mark: Mark) -> None:
    """Trains BCQ for two evaluations, after so many updates each."""
    task, quick, agent = planned("offline", "BCQ-hopper-imitate")
    brief = replace(quick, steps=2 * every, evaluations=2).offline()
    data = task.load(quick.transitions, SEEDS)
    train_offline(agent, data, seeds=seeds(count), budget=brief, on_progress=mark)


def rnd(count: int, every: int, mark: Mark) -> None:
    """Trains DQN with RND for two evaluations, after so many steps each."""
    task, quick, agent = planned("curiosity-explained", "MultiRoom")
    brief = replace(quick, steps=2 * every, evaluations=2).online()
    train(agent, task.env, seeds=seeds(count), budget=brief, on_progress=mark)


def planned(name: str, task: str) -> tuple[Any, Budget, Any]:
    """A task of a figure, its budget in the preset `quick`, and the agent of the first method."""
    figure = FIGURES[name]
    budget = budget_for(task, figure.presets["quick"].budget)
    return figure.tasks[task], budget, agent_for(figure.methods[0], figure.tasks[task], budget)


def seeds(count: int) -> tuple[int, ...]:
    """So many seeds that no figure reports."""
    return tuple(range(SEEDS, SEEDS + count))


def core_seconds(run: Callable[[int, int, Mark], None], count: int, every: int) -> list[float]:
    """Core-seconds of 1,000 updates and of an evaluation, per seed of so many."""
    marks: list[tuple[int, int, float]] = []
    run(count, every, lambda step, rows: marks.append((step, len(rows), time.process_time())))
    begun = min(clock for step, rows, clock in marks if step == every and rows)  # all is compiled
    learned = min(clock for step, rows, clock in marks if step == 2 * every)
    done = max(clock for step, rows, clock in marks)
    return [(learned - begun) / count * 1000 / every, (done - learned) / count]


def main() -> None:
    """Prints the tables."""
    keep_to_one_thread()
    cases = {
        "bcq": (bcq, (1, 6, 12), 2_000, planned("offline", "BCQ-hopper-imitate")[1]),
        "rnd": (rnd, (1, 2, 10), 800, planned("curiosity-explained", "MultiRoom")[1]),
    }
    for name in sys.argv[1:] or cases:
        run, counts, every, whole = cases[name]
        for count in counts:
            updating, evaluating = core_seconds(run, count, every)
            seconds = updating * whole.steps / 1000 + evaluating * whole.evaluations
            print(
                f"{name}, {count:2} seeds: {updating:.2f} s for 1,000 updates, {evaluating:.2f} s"
                f" for an evaluation, {seconds / 60:.1f} min for a training of {whole.steps:,}",
                flush=True,
            )


if __name__ == "__main__":
    main()
