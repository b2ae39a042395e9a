"""Steps per second of TD3 and SAC beside Stable-Baselines3's and SBX's, one update per step.

`python benchmarks/control.py` builds a virtual environment for each peer, in a folder of its own,
and measures everything in turn, three times over, on HalfCheetah with networks of 256x256 and
batches of 256: one process, and two side by side, added up; TD3 with three and seven members, and
with three that have actors of their own; SAC with three members. It also says what share of NumPy's
own rate of multiplying matrices of 256x256 an update of TD3 reaches, both on one core. The result
is a table of medians and `out/bench/control.json`. Takes about twenty-five minutes;
`python benchmarks/control.py sac` measures SAC alone, into `out/bench/control-sac.json`.
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

from rewardshift import SAC, TD3

ROUNDS = 3
WARM_UP, SETTLE, STEPS = 300, 60, 500
ENV = "HalfCheetah-v5"

# What a peer runs, in its own environment.
PEER_SCRIPT = (
    CLOCK
    + """
import gymnasium as gym
kind, agent, env_id, *numbers = sys.argv[1:]
warm_up, settle, steps = map(int, numbers)
if kind == "sb3":
    import stable_baselines3 as library
else:
    import sbx as library
make = getattr(library, agent)
model = make("MlpPolicy", gym.make(env_id), learning_rate=3e-4, buffer_size=100_000,
             batch_size=256, learning_starts=warm_up, train_freq=1, gradient_steps=1,
             policy_kwargs={"net_arch": [256, 256]}, verbose=0)
measure(model, warm_up + settle, steps)
"""
)

OUR_SCRIPT = """
import sys
sys.path.insert(0, "benchmarks")
import control
print("RATE", control.measure(*sys.argv[1:]))
"""


def measure(kind: str, members: str) -> float:
    """Steps per second after the first updates.

    Args:
        kind: "TD3", "own" for TD3 with an actor for each member, or "SAC".
        members: How many, each with a shift of 0.
    """
    shift = (0.0,) * int(members)
    agent = (
        SAC(shift=shift, warm_up=WARM_UP)
        if kind == "SAC"
        else TD3(shift=shift, own_actors=kind == "own", warm_up=WARM_UP)
    )
    return steps_per_second(agent, ENV, 1, WARM_UP + SETTLE, STEPS)


def update_flops(features: int = 17, actions: int = 6, width: int = 256, batch: int = 256) -> float:
    """Floating point operations of TD3's average update, those of matrix products alone."""
    critic = 2 * batch * ((features + actions) * width + width**2 + width)
    actor = 2 * batch * (features * width + width**2 + width * actions)
    targets = actor + 2 * critic
    critics = 2 * (3 * critic - 2 * batch * (features + actions) * width)  # no gradient of inputs
    policy = 3 * actor + 2 * critic
    return targets + critics + policy / 2


def _ours(kind: str, members: int, processes: int = 1) -> float:
    return rate_of(sys.executable, OUR_SCRIPT, [kind, str(members)], processes)


def _peer(library: str, agent: str, processes: int = 1) -> float:
    arguments = [library, agent, ENV, *map(str, (WARM_UP, SETTLE, STEPS))]
    return rate_of(peer_python(library), PEER_SCRIPT, arguments, processes)


def beside_peers(agent: str, more: dict[str, tuple[str, int]]) -> list[dict[str, Any]]:
    """One process and two, each beside the peers' agent of that name.

    Args:
        agent: "TD3" or "SAC".
        more: What else of ours to measure in one process, as arguments of `measure`.
    """
    peers = {f"SBX, {agent}": "sbx", f"Stable-Baselines3, {agent}": "sb3"}
    ours = {f"rewardshift, {agent}": (agent, 1)}
    rows: list[dict[str, Any]] = []
    for processes, suffix in ((1, ""), (2, ", two processes")):
        mine = {**ours, **more} if processes == 1 else ours
        measurements = {
            **{f"{k}{suffix}": partial(_peer, v, agent, processes) for k, v in peers.items()},
            **{f"{k}{suffix}": partial(_ours, *v, processes) for k, v in mine.items()},
        }
        base = next(iter(measurements))
        for what, (rate, ratio) in in_turn(measurements, ROUNDS, base).items():
            rows.append({"what": what, "rate": rate, "ratio": ratio})
            print(f"{what:40} {rate:7.1f} steps/s  {ratio:5.2f} x {base}", flush=True)
    return rows


def share_of_numpy(rate: float) -> dict[str, Any]:
    """What share of NumPy's rate two processes of TD3 reach with so many steps per second."""
    share = rate / 2 * update_flops() / matrix_rate_per_core()
    print(f"an update is {update_flops() / 1e9:.2f} GFLOP; two processes reach {share:.0%} of")
    print("NumPy's rate of multiplying 256x256 matrices, per core, environment steps included")
    return {"what": "share of NumPy's rate per core, steps included", "rate": share}


def main() -> None:
    """Measures all, or the agents that are named, prints the table, writes the JSON."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    chosen = sys.argv[1:] or ["td3", "sac"]
    rows: list[dict[str, Any]] = []
    if "td3" in chosen:
        members = {f"rewardshift, TD3, {n} members": ("TD3", n) for n in (3, 7)}
        own = {"rewardshift, TD3, 3 members, own actors": ("own", 3)}
        rows += beside_peers("TD3", {**members, **own})
        rows.append(share_of_numpy(rows[-1]["rate"]))
    if "sac" in chosen:
        rows += beside_peers("SAC", {"rewardshift, SAC, 3 members": ("SAC", 3)})
    name = "-".join(["control", *sys.argv[1:]])
    (FOLDER / f"{name}.json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
