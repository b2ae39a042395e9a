"""DQN's environment steps per second beside Stable-Baselines3's and SBX's, one update per step.

`python benchmarks/online.py` builds a virtual environment for each peer, in a folder of its
own, and measures everything in turn on the same machine: MountainCar and MiniGrid MultiRoom
with the paper's network (64 units, batch 64), one seed and ten, and RND at its full 512 units.
Peers train one seed; their rate is what one process gives. The result is a table and
`out/bench/online.json`. Takes about ten minutes, most of it installing.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rewardshift import DQN, RND, OnlineBudget
from rewardshift.training.online import Trainer

STEPS = {"rewardshift": 6000, "peer": 2500, "rnd": 500}
WARM_UP = 500
FOLDER = Path("out") / "bench"
PEERS = {
    "sb3": ["stable-baselines3>=2.6"],
    "sbx": ["sbx-rl>=0.20"],
}
TASKS = {"MountainCar": "MountainCar-v0", "MultiRoom": "MiniGrid-MultiRoom-N2-S4-v0"}

# What a peer runs, in its own environment: train, and say the rate after the warm-up.
PEER_SCRIPT = """
import sys, time
import gymnasium as gym, minigrid
from minigrid.wrappers import ImgObsWrapper
kind, env_id, warm_up, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
if kind == "sb3":
    from stable_baselines3 import DQN
else:
    from sbx import DQN
from stable_baselines3.common.callbacks import BaseCallback

def make():
    env = gym.make(env_id)
    if env_id.startswith("MiniGrid"):
        env = gym.wrappers.FlattenObservation(ImgObsWrapper(env))
    return env

class Clock(BaseCallback):
    started = None
    def _on_step(self):
        if self.num_timesteps == warm_up:
            self.started = time.perf_counter()
        return True

clock = Clock()
model = DQN("MlpPolicy", make(), learning_rate=1e-3, buffer_size=100_000, batch_size=64,
            learning_starts=1, train_freq=1, gradient_steps=1, tau=0.05,
            target_update_interval=1, gamma=0.95, policy_kwargs={"net_arch": [64]}, verbose=0)
model.learn(warm_up + steps, callback=clock)
print("RATE", steps / (time.perf_counter() - clock.started))
"""


def measure_ours(env: str, seeds: int, rnd: int, steps: int) -> float:
    """Steps per second of all seeds together, after the warm-up, without evaluations."""
    agent = DQN(shifts=(-0.5,), intrinsic=RND(-1.0, rnd) if rnd else None)
    total = WARM_UP + steps
    budget = OnlineBudget(steps=total, evaluate_every=10 * total, checkpoint_every=10 * total)
    trainer = Trainer(agent, env, tuple(range(seeds)), budget)
    started = 0.0

    def clock(step: int, _: Any) -> None:
        nonlocal started
        if step == WARM_UP:
            started = time.perf_counter()

    trainer.run_to_checkpoint(clock)
    return seeds * steps / (time.perf_counter() - started)


def measure_peer(kind: str, env: str) -> float:
    """Steps per second of a peer in its own environment."""
    python = _environment(kind)
    command = [str(python), "-c", PEER_SCRIPT, kind, env, str(WARM_UP), str(STEPS["peer"])]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(output.split("RATE")[1])


def measure_apart(env: str, seeds: int, rnd: int, steps: int, processes: int = 1) -> float:
    """Ours in processes of their own, added up."""
    code = (
        "import sys; sys.path.insert(0, 'benchmarks'); import online;"
        f" print('RATE', online.measure_ours({env!r}, {seeds}, {rnd}, {steps}))"
    )
    flags = "--xla_cpu_multi_thread_eigen=false" if processes > 1 else ""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "XLA_FLAGS": flags},
        )
        for _ in range(processes)
    ]
    return sum(float(process.communicate()[0].split("RATE")[1]) for process in running)


def _environment(kind: str) -> Path:
    """The peer's virtual environment, made where it is missing."""
    folder = FOLDER / f"venv-{kind}"
    python = folder / "bin" / "python"
    if not (folder / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, "torch==2.13.0"], check=True)  # first, and this one
        subprocess.run([*install, *PEERS[kind], "minigrid"], check=True)
        (folder / "done").touch()
    return python.absolute()


def main() -> None:
    """Measures all, prints the table, writes the JSON."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for kind in PEERS:
        _environment(kind)
    rows: list[dict[str, Any]] = []
    for task, env in TASKS.items():
        peers = {kind: measure_peer(kind, env) for kind in PEERS}
        rates = {
            **peers,
            "rewardshift, one seed": measure_apart(env, 1, 0, STEPS["rewardshift"]),
            "rewardshift, ten seeds": measure_apart(env, 10, 0, STEPS["rewardshift"]),
        }
        for name, rate in rates.items():
            rows.append({"task": task, "what": name, "rate": rate, "ratio": rate / peers["sb3"]})
    rnd = measure_apart(TASKS["MountainCar"], 1, 512, STEPS["rnd"], processes=2)
    rows.append({"task": "MountainCar", "what": "RND 512, two processes", "rate": rnd})
    for row in rows:
        ratio = f"  {row['ratio']:5.1f} x SB3" if "ratio" in row else ""
        print(f"{row['task']:12} {row['what']:24} {row['rate']:9,.0f} steps/s{ratio}")
    (FOLDER / "online.json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
