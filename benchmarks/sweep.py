"""A sweep's environment steps per second beside one run of Stable-Baselines3.

`python benchmarks/sweep.py` trains eight seeds of DQN on MountainCar, with one constant and then
with five, which are forty rows of one program; in one process and in as many as there are cores;
with the paper's network, with larger ones, and TD3 on Pendulum. Beside them stands one run of
Stable-Baselines3. All is measured in turn, three times over. The result is a table of medians and
`out/bench/sweep.json`. `--small` measures the paper's network alone, `--short` a few steps of it
without Stable-Baselines3, as a test.
"""

import json
import os
import sys
from collections.abc import Callable
from functools import partial

from online import PEER_SCRIPT
from peers import FOLDER, in_turn, peer_python, rate_of, seconds, timed_budget

from rewardshift import DQN, MLP, TD3
from rewardshift.training.runs import online_run

ROUNDS = 3
WARM_UP = 500
STEPS = 4000
PEER_STEPS = 2500
CONSTANTS, SEEDS = 5, 8
NETWORKS: dict[str, tuple[int, ...]] = {"64": (64,), "256": (256,), "256, 256": (256, 256)}
TASKS = {"dqn": "MountainCar-v0", "td3": "Pendulum-v1"}

OUR_SCRIPT = """
import sys
sys.path.insert(0, "benchmarks")
import sweep
kind, hidden, *numbers = sys.argv[1:]
print("RATE", sweep.measure(kind, hidden, *map(int, numbers)))
"""


def measure(kind: str, hidden: str, constants: int, steps: int) -> float:
    """Steps per second of all rows together, after the warm-up, without evaluations."""
    network = MLP(NETWORKS[hidden])
    agent = DQN(network=network) if kind == "dqn" else TD3(network=network, warm_up=100)
    biases = tuple(-0.1 * number for number in range(constants))
    budget = timed_budget(WARM_UP, steps)
    trainer = online_run(agent, TASKS[kind], SEEDS, budget, biases=biases).make()
    return constants * SEEDS * steps / seconds(trainer, WARM_UP, steps)


def _ours(kind: str, hidden: str, constants: int, processes: int, steps: int) -> float:
    arguments = [kind, hidden, str(constants), str(steps)]
    return rate_of(sys.executable, OUR_SCRIPT, arguments, processes)


def _peer() -> float:
    arguments = ["sb3", TASKS["dqn"], str(WARM_UP), str(PEER_STEPS)]
    return rate_of(peer_python("sb3"), PEER_SCRIPT, arguments)


def main() -> None:
    """Measures all, prints the table, writes the JSON."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    short = "--short" in sys.argv
    rounds, steps = (1, 50) if short else (ROUNDS, STEPS)
    cores = os.cpu_count() or 1
    measurements: dict[str, Callable[[], float]] = {}
    if not short:
        measurements["Stable-Baselines3, one run"] = _peer
    small = short or "--small" in sys.argv
    cases = [("dqn", "64")] if small else [*(("dqn", one) for one in NETWORKS), ("td3", "256, 256")]
    for kind, hidden in cases:
        length = steps if (kind, hidden) == ("dqn", "64") else steps // 10
        for constants in (1, CONSTANTS):
            for processes in {1, cores}:
                name = f"{kind} ({hidden}), {constants * SEEDS} rows, processes: {processes}"
                measurements[name] = partial(_ours, kind, hidden, constants, processes, length)
    base = next(iter(measurements))
    rows = []
    for what, (rate, ratio) in in_turn(measurements, rounds, base).items():
        rows.append({"what": what, "rate": rate, "ratio": ratio})
        print(f"{what:44} {rate:9,.0f} steps/s  {ratio:5.1f} x {base}", flush=True)
    (FOLDER / "sweep.json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
