"""TD3's environment steps per second beside Stable-Baselines3's and SBX's, one update per step.

`python benchmarks/control.py` builds a virtual environment for each peer, in a folder of its own,
and measures everything in turn, three times over, on HalfCheetah with networks of 256x256 and
batches of 256: one process, and two side by side, added up; three and seven members; three members
with actors of their own. It also says what share of NumPy's own rate of multiplying matrices of
256x256 an update reaches, both on one core. The result is a table of medians and
`out/bench/control.json`. Takes about a quarter of an hour.
"""

import json
import sys
from functools import partial
from typing import Any

from peers import (
    CLOCK,
    FOLDER,
    in_turn,
    matrix_rate_per_core,
    peer_python,
    rate_of,
    steps_per_second,
)

from rewardshift import TD3

ROUNDS = 3
WARM_UP, SETTLE, STEPS = 300, 60, 500
ENV = "HalfCheetah-v5"

# What a peer runs, in its own environment.
PEER_SCRIPT = (
    CLOCK
    + """
import gymnasium as gym
kind, env_id, warm_up, settle, steps = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
if kind == "sb3":
    from stable_baselines3 import TD3
else:
    from sbx import TD3
model = TD3("MlpPolicy", gym.make(env_id), learning_rate=3e-4, buffer_size=100_000,
            batch_size=256, learning_starts=warm_up, train_freq=1, gradient_steps=1,
            policy_kwargs={"net_arch": [256, 256]}, verbose=0)
measure(model, warm_up + settle, steps)
"""
)

OUR_SCRIPT = """
import sys
sys.path.insert(0, "benchmarks")
import control
print("RATE", control.measure(int(sys.argv[1]), sys.argv[2] == "own"))
"""


def measure(members: int, own_actors: bool) -> float:
    """Steps per second after the first updates."""
    agent = TD3(shift=0.0 * members, own_actors=own_actors, warm_up=WARM_UP)
    return steps_per_second(agent, ENV, 1, WARM_UP + SETTLE, STEPS)


def update_flops(features: int = 17, actions: int = 6, width: int = 256, batch: int = 256) -> float:
    """Floating point operations of TD3's average update, those of matrix products alone."""
    critic = 2 * batch * ((features + actions) * width + width**2 + width)
    actor = 2 * batch * (features * width + width**2 + width * actions)
    targets = actor + 2 * critic
    critics = 2 * (3 * critic - 2 * batch * (features + actions) * width)  # no gradient of inputs
    policy = 3 * actor + 2 * critic
    return targets + critics + policy / 2


def _ours(members: int, own: bool = False, processes: int = 1) -> float:
    arguments = [str(members), "own" if own else "shared"]
    return rate_of(sys.executable, OUR_SCRIPT, arguments, processes)


def _peer(kind: str, processes: int = 1) -> float:
    arguments = [kind, ENV, *map(str, (WARM_UP, SETTLE, STEPS))]
    return rate_of(peer_python(kind), PEER_SCRIPT, arguments, processes)


def main() -> None:
    """Measures all, prints the table, writes the JSON."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    alone = {
        "SBX": partial(_peer, "sbx"),
        "Stable-Baselines3": partial(_peer, "sb3"),
        "rewardshift": partial(_ours, 1),
        "rewardshift, 3 members": partial(_ours, 3),
        "rewardshift, 7 members": partial(_ours, 7),
        "rewardshift, 3 members, own actors": partial(_ours, 3, own=True),
    }
    together = {
        "SBX, two processes": partial(_peer, "sbx", 2),
        "Stable-Baselines3, two processes": partial(_peer, "sb3", 2),
        "rewardshift, two processes": partial(_ours, 1, processes=2),
    }
    rows: list[dict[str, Any]] = []
    for measurements in (alone, together):
        base = next(iter(measurements))
        for what, (rate, ratio) in in_turn(measurements, ROUNDS, base).items():
            rows.append({"what": what, "rate": rate, "ratio": ratio})
            print(f"{what:36} {rate:7.1f} steps/s  {ratio:5.2f} x {base}", flush=True)
    both = next(row["rate"] for row in rows if row["what"] == "rewardshift, two processes")
    share = both / 2 * update_flops() / matrix_rate_per_core()
    rows.append({"what": "share of NumPy's rate per core, steps included", "rate": share})
    print(f"an update is {update_flops() / 1e9:.2f} GFLOP; two processes reach {share:.0%} of")
    print("NumPy's rate of multiplying 256x256 matrices, per core, environment steps included")
    (FOLDER / "control.json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
