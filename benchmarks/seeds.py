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
from typing import Any

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift import OfflineBudget, OnlineBudget, train, train_offline
from rewardshift.lab import FIGURES
from rewardshift.lab.processes import keep_to_one_thread
from rewardshift.paper.offline import QUICK, TASKS, Treatment

SEEDS = 100  # the first one
Mark = Callable[[int, Sequence[Any]], None]


def bcq(count: int, every: int, mark: Mark) -> None:
    """Trains BCQ for two evaluations, after so many updates each."""
    task = TASKS["BCQ-hopper-imitate"]
    agent = QUICK.budget.configure(task, Treatment(), "zero")
    episodes = QUICK.budget.evaluation_episodes
    budget = OfflineBudget(updates=2 * every, evaluate_every=every, evaluation_episodes=episodes)
    train_offline(agent, task.data.load(), seeds=seeds(count), budget=budget, on_progress=mark)


def rnd(count: int, every: int, mark: Mark) -> None:
    """Trains DQN with RND for two evaluations, after so many steps each."""
    figure = FIGURES["curiosity-explained"]
    quick, task = figure.presets["quick"].budget, figure.tasks["MultiRoom"]
    agent = quick.configure(figure.methods[0].agent, task, "zero")
    episodes = quick.evaluation_episodes
    budget = OnlineBudget(steps=2 * every, evaluate_every=every, evaluation_episodes=episodes)
    train(agent, task.env, seeds=seeds(count), budget=budget, on_progress=mark)


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
    curiosity = FIGURES["curiosity-explained"].presets["quick"].budget
    cases = {
        "bcq": (bcq, (1, 6, 12), 2_000, QUICK.budget.updates, QUICK.budget.evaluations),
        "rnd": (rnd, (1, 2, 10), 800, curiosity.steps, curiosity.evaluations),
    }
    for name in sys.argv[1:] or cases:
        run, counts, every, length, evaluations = cases[name]
        for count in counts:
            updating, evaluating = core_seconds(run, count, every)
            whole = updating * length / 1000 + evaluating * evaluations
            print(
                f"{name}, {count:2} seeds: {updating:.2f} s for 1,000 updates, {evaluating:.2f} s"
                f" for an evaluation, {whole / 60:.1f} min for a training of {length:,}",
                flush=True,
            )


if __name__ == "__main__":
    main()
