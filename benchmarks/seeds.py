"""Core-seconds per seed of BCQ in `offline --preset quick`, for 1, 6 and 12 seeds side by side.

`python benchmarks/seeds.py` trains on hopper-imitate with one thread and prints the core-seconds
that one seed's updates and evaluations take, without compilation, and what the whole training of
the figure would take. The figure runs its seeds in the cheaper way. Takes about four minutes.
"""

import time
from collections.abc import Sequence

from rewardshift import OfflineBudget, train_offline
from rewardshift.experiments.offline_rl import QUICK, TASKS, Treatment
from rewardshift.experiments.processes import keep_to_one_thread
from rewardshift.training.offline import OfflineRow

TASK = TASKS["BCQ-hopper-imitate"]
EVERY = 2_000  # updates between two evaluations
SEEDS = 100  # the first one: not those that are reported


def core_seconds(count: int) -> tuple[float, float]:
    """Core-seconds of 1,000 updates and of an evaluation, per seed of so many."""
    marks: list[tuple[int, int, float]] = []

    def mark(step: int, rows: Sequence[OfflineRow]) -> None:
        marks.append((step, len(rows), time.process_time()))

    agent = QUICK.budget.configure(TASK, Treatment(), "zero")
    episodes = QUICK.budget.evaluation_episodes
    budget = OfflineBudget(updates=2 * EVERY, evaluate_every=EVERY, evaluation_episodes=episodes)
    seeds = tuple(range(SEEDS, SEEDS + count))
    train_offline(agent, TASK.data.load(), seeds=seeds, budget=budget, on_progress=mark)
    begun = min(clock for step, rows, clock in marks if step == EVERY and rows)  # all is compiled
    learned = min(clock for step, rows, clock in marks if step == 2 * EVERY)
    done = max(clock for step, rows, clock in marks)
    return (learned - begun) / count * 1000 / EVERY, (done - learned) / count


def main() -> None:
    """Prints the table."""
    keep_to_one_thread()
    budget = QUICK.budget
    for count in (1, 6, 12):
        updating, evaluating = core_seconds(count)
        whole = updating * budget.updates / 1000 + evaluating * budget.evaluations
        print(
            f"{count:2} seeds: {updating:.2f} s for 1,000 updates, {evaluating:.2f} s for an"
            f" evaluation, {whole / 60:.1f} min for a training of {budget.updates:,} updates",
            flush=True,
        )


if __name__ == "__main__":
    main()
