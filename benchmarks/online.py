"""DQN's environment steps per second beside Stable-Baselines3's and SBX's, one update per step.

`python benchmarks/online.py` builds a virtual environment for each peer, in a folder of its
own, and measures everything in turn, three times over: MountainCar and MiniGrid MultiRoom with
the paper's network (64 units, batch 64), one seed and ten, and RND at its full 512 units. Peers
train one seed; their rate is what one process gives. The result is a table of medians and
`out/bench/online.json`. Takes about ten minutes, most of it installing.
"""

import json
import sys
from functools import partial
from typing import Any

from peers import CLOCK, FOLDER, in_turn, peer_python, rate_of, steps_per_second

from rewardshift import DQN, RND

ROUNDS = 3
WARM_UP = 500
STEPS = {"rewardshift": 6000, "peer": 2500, "rnd": 500}
TASKS = {"MountainCar": "MountainCar-v0", "MultiRoom": "MiniGrid-MultiRoom-N2-S4-v0"}

# What a peer runs, in its own environment.
PEER_SCRIPT = (
    CLOCK
    + """
import gymnasium as gym, minigrid
from minigrid.wrappers import ImgObsWrapper
kind, env_id, warm_up, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
if kind == "sb3":
    from stable_baselines3 import DQN
else:
    from sbx import DQN

def make():
    env = gym.make(env_id)
    if env_id.startswith("MiniGrid"):
        env = gym.wrappers.FlattenObservation(ImgObsWrapper(env))
    return env

model = DQN("MlpPolicy", make(), learning_rate=1e-3, buffer_size=100_000, batch_size=64,
            learning_starts=1, train_freq=1, gradient_steps=1, tau=0.05,
            target_update_interval=1, gamma=0.95, policy_kwargs={"net_arch": [64]}, verbose=0)
measure(model, warm_up, steps)
"""
)

OUR_SCRIPT = """
import sys
sys.path.insert(0, "benchmarks")
import online
env, *numbers = sys.argv[1:]
print("RATE", online.measure(env, *map(int, numbers)))
"""


def measure(env: str, seeds: int, rnd: int, steps: int) -> float:
    """Steps per second of all seeds together, after the warm-up, without evaluations."""
    agent = DQN(shift=-0.5, gamma=0.95, tau=0.05, intrinsic=RND(-1.0, rnd) if rnd else None)
    return steps_per_second(agent, env, seeds, WARM_UP, steps)


def _peer(kind: str, env: str) -> float:
    arguments = [kind, env, str(WARM_UP), str(STEPS["peer"])]
    return rate_of(peer_python(kind), PEER_SCRIPT, arguments)


def _ours(env: str, seeds: int, rnd: int = 0, processes: int = 1) -> float:
    steps = STEPS["rnd" if rnd else "rewardshift"]
    arguments = [env, *map(str, (seeds, rnd, steps))]
    return rate_of(sys.executable, OUR_SCRIPT, arguments, processes)


def main() -> None:
    """Measures all, prints the table, writes the JSON."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for task, env in TASKS.items():
        measurements = {
            "Stable-Baselines3": partial(_peer, "sb3", env),
            "SBX": partial(_peer, "sbx", env),
            "rewardshift, one seed": partial(_ours, env, 1),
            "rewardshift, ten seeds": partial(_ours, env, 10),
        }
        if task == "MountainCar":
            measurements["RND 512, two processes"] = partial(_ours, env, 1, rnd=512, processes=2)
        for what, (rate, ratio) in in_turn(measurements, ROUNDS, "Stable-Baselines3").items():
            rows.append({"task": task, "what": what, "rate": rate, "ratio": ratio})
            beside = "" if "RND" in what else f"  {ratio:5.1f} x SB3"  # which has no RND
            print(f"{task:12} {what:24} {rate:9,.0f} steps/s{beside}", flush=True)
    (FOLDER / "online.json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
