"""Steps per second with hindsight replay beside Stable-Baselines3's, one update per step.

`python benchmarks/fetch.py` builds a virtual environment for the peer, in a folder of its own, and
measures everything in turn, three times over: TD3 and DDPG on FetchReach with three layers, batches
of 256 and four relabelled transitions for each real one. Layers of 256, as in the paper, in one
process and in two side by side, added up; and layers of 64, as in the figure's `quick` preset. The
result is a table of medians and `out/bench/fetch.json`. Takes about ten minutes.
"""

import itertools
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from peers import CLOCK, FOLDER, in_turn, peer_python, rate_of, steps_per_second

from rewardshift import TD3, Hindsight, ddpg
from rewardshift.agents.networks import MLP

ROUNDS = 3
WARM_UP, SETTLE, STEPS = 300, 60, 500
ENV = "FetchReach-v4"
KINDS: dict[str, Callable[..., TD3]] = {"TD3": TD3, "DDPG": ddpg}
CASES = ((256, 1), (256, 2), (64, 1))  # units of a layer, and processes

# What the peer runs, in its own environment.
PEER_SCRIPT = (
    CLOCK
    + """
import gymnasium as gym, gymnasium_robotics
import stable_baselines3
kind, env_id, width, warm_up, settle, steps = *sys.argv[1:3], *map(int, sys.argv[3:])
gym.register_envs(gymnasium_robotics)
model = getattr(stable_baselines3, kind)(
    "MultiInputPolicy", gym.make(env_id), learning_rate=1e-3, buffer_size=100_000, batch_size=256,
    gamma=0.98, learning_starts=warm_up, train_freq=1, gradient_steps=1,
    replay_buffer_class=stable_baselines3.HerReplayBuffer,
    replay_buffer_kwargs={"n_sampled_goal": 4, "goal_selection_strategy": "future"},
    policy_kwargs={"net_arch": [width] * 3}, verbose=0)
measure(model, warm_up + settle, steps)
"""
)

OUR_SCRIPT = """
import sys
sys.path.insert(0, "benchmarks")
import fetch
print("RATE", fetch.measure(sys.argv[1], int(sys.argv[2])))
"""


def measure(kind: str, width: int) -> float:
    """Steps per second after the first updates."""
    agent = KINDS[kind](
        gamma=0.98,
        network=MLP((width,) * 3),
        learning_rate=1e-3,
        random_actions=0.3,
        normalise=True,
        warm_up=WARM_UP,
        reward_range=(-1.0, 0.0),
    )
    return steps_per_second(agent, ENV, 1, WARM_UP + SETTLE, STEPS, Hindsight())


def _ours(kind: str, width: int, processes: int) -> float:
    return rate_of(sys.executable, OUR_SCRIPT, [kind, str(width)], processes)


def _peer(kind: str, width: int, processes: int) -> float:
    arguments = [kind, ENV, *map(str, (width, WARM_UP, SETTLE, STEPS))]
    return rate_of(peer_python("sb3"), PEER_SCRIPT, arguments, processes)


def main() -> None:
    """Measures all, prints the table, writes the JSON."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for kind, (width, processes) in itertools.product(KINDS, CASES):
        measurements = {
            "Stable-Baselines3": partial(_peer, kind, width, processes),
            "rewardshift": partial(_ours, kind, width, processes),
        }
        for who, (rate, ratio) in in_turn(measurements, ROUNDS, "Stable-Baselines3").items():
            what = f"{who}, {kind}, 3x{width}, {processes} process{'es' * (processes - 1)}"
            rows.append({"what": what, "rate": rate, "ratio": ratio})
            print(f"{what:48} {rate:7.1f} steps/s  {ratio:5.2f} x", flush=True)
    (FOLDER / "fetch.json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
