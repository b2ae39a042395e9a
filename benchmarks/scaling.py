"""Seconds for a fixed set of units of work at one and at two workers, here and on a local Ray.

`python benchmarks/scaling.py` runs the same four units, TD3 of the paper's size on Hopper, each
time in a new process, three times over and in turn: with workers that keep XLA to one thread, as
those of `rewardshift reproduce` do, and with workers that let it take two. Start-up and
compilation are counted in, as they are for a user. The result is a table of medians and
`out/bench/scaling.json`. Takes about eleven minutes.
"""

import json
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from peers import FOLDER, in_turn, rate_of

from rewardshift.lab import Budget, Unit
from rewardshift.lab.cluster import RayCluster
from rewardshift.lab.processes import Processes
from rewardshift.lab.runner import Place, Plan, run_units

ROUNDS = 3
BUDGET = Budget(1500, evaluations=1, evaluation_episodes=1, settings={"warm_up": 500})
UNITS = [Unit(("Hopper",), ("td3",), (seed,), BUDGET, "zero") for seed in range(4)]
PLACES: dict[str, tuple[Place, int]] = {  # and how many threads XLA takes in each worker
    "1 worker, one thread": (Processes(1), 1),
    "1 worker, two threads": (Processes(1), 2),
    "2 workers, one thread each": (Processes(2), 1),
    "2 workers, two threads each": (Processes(2), 2),
    "Ray with 2 cores, one thread each": (RayCluster(), 1),
}
BASE = "1 worker, one thread"

SCRIPT = """
import sys
sys.path.insert(0, "benchmarks")
import scaling
print("RATE", scaling.measure(sys.argv[1]))
"""


def measure(name: str) -> float:
    """Units a second at a place, in a process that has not done anything else."""
    place, threads = PLACES[name]
    os.environ["NPROC"] = str(threads)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as out:
        plan = Plan("control", "smoke", len(UNITS), "zero", Path(out))
        plan.folder.mkdir()
        outcomes = list(run_units(plan, UNITS, place))
    if any(outcome.error for outcome in outcomes):
        raise SystemExit(str(outcomes))
    return len(UNITS) / (time.perf_counter() - started)


def main() -> None:
    """Measures all, prints the table, writes the JSON."""
    FOLDER.mkdir(parents=True, exist_ok=True)

    measurements = {name: partial(rate_of, sys.executable, SCRIPT, [name]) for name in PLACES}
    rates = in_turn(measurements, ROUNDS, BASE)
    rows = [
        {"place": name, "seconds": len(UNITS) / rate, "ratio": ratio}
        for name, (rate, ratio) in rates.items()
    ]
    for row in rows:
        print(f"{row['place']:36} {row['seconds']:7.1f} s {row['ratio']:6.2f}x")
    (FOLDER / "scaling.json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
