"""What the benchmarks share: peers in environments of their own, and measuring in turn."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from rewardshift import Hindsight, OnlineBudget
from rewardshift.training.runs import online_run
from rewardshift.training.trainer import Trainer

FOLDER = Path("out") / "bench"
PEERS = {
    "sb3": [
        *("stable-baselines3>=2.6", "minigrid", "gymnasium[mujoco]", "mujoco<3.12"),
        "gymnasium-robotics>=1.4,<2",
    ],
    "sbx": ["sbx-rl>=0.20", "minigrid", "gymnasium[mujoco]", "mujoco<3.12"],
    "d3rlpy": ["d3rlpy>=2.8"],  # with a Gymnasium of its own
}
ONE_THREAD = {
    "NPROC": "1",  # XLA's
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}

# For scripts that train with Stable-Baselines3 or SBX: says the rate after the first steps.
CLOCK = """
import sys, time
from stable_baselines3.common.callbacks import BaseCallback

class Clock(BaseCallback):
    def __init__(self, first):
        super().__init__()
        self.first = first
    def _on_step(self):
        if self.num_timesteps == self.first:
            self.started = time.perf_counter()
        return True

def measure(model, first, steps):
    clock = Clock(first)
    model.learn(first + steps, callback=clock)
    print("RATE", steps / (time.perf_counter() - clock.started))
"""

MATRIX_SCRIPT = """
import sys
sys.path.insert(0, "benchmarks")
import peers
print("RATE", peers.matrix_rate())
"""


def peer_python(kind: str) -> str:
    """The Python of a peer's virtual environment, which is made where it is missing."""
    folder = FOLDER / f"venv-{kind}"
    python = folder / "bin" / "python"
    if not (folder / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, "torch==2.13.0"], check=True)  # first, and this one
        subprocess.run([*install, *PEERS[kind]], check=True)
        (folder / "done").touch()
    return str(python.absolute())


def rate_of(python: str, code: str, arguments: list[str], processes: int = 1) -> float:
    """What a script says after `RATE`, added up over processes side by side."""
    environment = {**os.environ, **(ONE_THREAD if processes > 1 else {})}
    running = [
        subprocess.Popen(
            [python, "-c", code, *arguments], stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(processes)
    ]
    outputs = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise SystemExit(f"a benchmark of {python} failed: {arguments}")
    return sum(float(output.split("RATE")[1]) for output in outputs)


def steps_per_second(
    agent: Any, env: str, seeds: int, first: int, steps: int, hindsight: Hindsight | None = None
) -> float:
    """Of all seeds together, after the first steps, without evaluations."""
    budget = timed_budget(first, steps, hindsight)
    trainer = online_run(agent, env, seeds, budget).make()
    return seeds * steps / seconds(trainer, first, steps)


def timed_budget(first: int, steps: int, hindsight: Hindsight | None = None) -> OnlineBudget:
    """The budget of a training that `seconds` times.

    It has one step more: a training is evaluated after its last step, and that takes time too.
    """
    total = first + steps + 1
    return OnlineBudget(
        steps=total, evaluate_every=total, checkpoint_every=total, hindsight=hindsight
    )


def seconds(trainer: Trainer, first: int, steps: int) -> float:
    """The seconds that a training takes for steps after the first ones."""
    times: dict[int, float] = {}

    def clock(step: int, _: Any) -> None:
        times.setdefault(step, time.perf_counter())

    trainer.run_to_checkpoint(clock)
    return times[first + steps] - times[first]


def matrix_rate(size: int = 256, repeats: int = 200, goes: int = 10) -> float:
    """NumPy's floating point operations per second, multiplying matrices: the best of some goes."""
    matrix = np.random.default_rng(0).random((size, size), np.float32)
    rates = []
    for _ in range(goes):
        started = time.perf_counter()
        for _ in range(repeats):
            matrix @ matrix
        rates.append(2 * size**3 * repeats / (time.perf_counter() - started))
    return max(rates)


def matrix_rate_per_core() -> float:
    """That rate on one core, while the other is at it too."""
    return rate_of(sys.executable, MATRIX_SCRIPT, [], processes=2) / 2


def in_turn(
    measurements: Mapping[str, Callable[[], float]], rounds: int, base: str
) -> dict[str, tuple[float, float]]:
    """Medians of the rates, and of their ratios to the base's rate of the same round.

    A machine's speed drifts over minutes, so everything is measured once before anything is
    measured again, and ratios are formed within a round.
    """
    rates = [{name: measure() for name, measure in measurements.items()} for _ in range(rounds)]
    return {
        name: (
            median(rate[name] for rate in rates),
            median(rate[name] / rate[base] for rate in rates),
        )
        for name in measurements
    }
