"""Digests of short trainings of every agent, to compare two commits.

Run it with the source of one commit and then of the other, on one machine:

    NPROC=1 PYTHONPATH=OTHER_CHECKOUT/src python benchmarks/same_numbers.py

The same lines mean the same losses and the same networks, bit for bit.
"""

import hashlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from rewardshift import (
    BCQ,
    CQL,
    DQN,
    MLP,
    SAC,
    TD3,
    Hindsight,
    OfflineBudget,
    OnlineBudget,
    Shift,
    ddpg,
    sweep,
    train,
    train_offline,
)
from rewardshift.agents.intrinsic import RND
from rewardshift.agents.selection import Optimistic

ONLINE = OnlineBudget(steps=300, evaluate_every=100, evaluation_episodes=1, checkpoint_every=150)
OFFLINE = OfflineBudget(updates=100, evaluate_every=50, evaluation_episodes=1, checkpoint_every=50)
FLIPS = "rewardshift/BitFlip-v0"
NETWORK = MLP((16, 16))
SMALL: dict[str, Any] = {"network": NETWORK, "batch_size": 16}


def show(name: str, result: Any) -> None:
    """Prints a training's last losses and a digest of its value networks."""
    state, digest = result.state, hashlib.sha256()
    learner = getattr(state, "online", None) or state.critics
    for leaf in jax.tree.leaves(getattr(learner, "parameters", learner)):
        digest.update(np.asarray(leaf).tobytes())
    losses = [row.metrics["loss"] if hasattr(row, "metrics") else row.loss for row in result.rows]
    print(f"{name:10} {digest.hexdigest()[:16]} {losses[-2:]}", flush=True)


def main() -> None:
    """Trains each agent for a moment."""
    slow: dict[str, Any] = {"gamma": 0.95, "tau": 0.05}
    control: dict[str, Any] = {"warm_up": 50, **SMALL}
    online: dict[str, tuple[Any, str]] = {
        "dqn": (DQN(shift=(-0.5, 0.5), **slow), "MountainCar-v0"),
        "dqn rnd": (
            DQN(shift=-0.5, intrinsic=RND(-1.0, width=8), **slow),
            "MiniGrid-Empty-Random-6x6-v0",
        ),
        "dqn 3-step": (DQN(shift=-0.5, n_step=3, **slow), "CartPole-v1"),
        "dqn double": (DQN(shift=-0.5, double=True, normalise=True, **slow), "CartPole-v1"),
        "dqn auto": (DQN(shift="auto", **slow), "CartPole-v1"),
        "dqn bounds": (DQN(shift=-0.5, reward_range=(0.0, 1.0), **slow), "CartPole-v1"),
        "dqn mix": (DQN(shift=(-0.5, 0.5), selection=Optimistic(0.3), **slow), "CartPole-v1"),
        "td3": (TD3(shift=(-0.5, 0.0, 0.5), lead_steps=100, **control), "Pendulum-v1"),
        "td3 actors": (TD3(shift=(0.0, 0.0), own_actors=True, **control), "Pendulum-v1"),
        "td3 auto": (TD3(shift="auto", **control), "Pendulum-v1"),
        "td3 goal": (TD3(shift=Shift(-0.5, terminal="goal"), **control), "Hopper-v5"),
        "ddpg": (ddpg(shift=-0.5, normalise=True, **control), "Pendulum-v1"),
        "sac": (SAC(shift=(-0.5, 0.5), **control), "Pendulum-v1"),
    }
    for name, (agent, env) in online.items():
        show(name, train(agent, env, seeds=2, budget=ONLINE))
    hindsight = replace(ONLINE, hindsight=Hindsight(success_ends=True))
    show("dqn goals", train(DQN(shift=-0.5, **slow), FLIPS, seeds=2, budget=hindsight))
    offline: dict[str, Any] = {
        "bcq": BCQ(shift=8.0, proposer=NETWORK, **SMALL),
        "cql": CQL(shift=8.0, cloning_updates=20, threshold=5.0, **SMALL),
        "bcq auto": BCQ(shift="auto", proposer=NETWORK, **SMALL),
        "td3 data": TD3(shift=Shift(8.0, terminal="absorbing"), **SMALL),
    }
    for name, agent in offline.items():
        show(name, train_offline(agent, "embedded/hopper-medium", seeds=2, budget=OFFLINE))
    agent = DQN(network=MLP((16,)), **slow)
    with tempfile.TemporaryDirectory() as folder:
        sweep(agent, "CartPole-v1", (-0.5, 0.5, "auto"), seeds=2, budget=ONLINE, folder=folder)
        results = (Path(folder) / "sweep" / "results.csv").read_bytes()
    print(f"{'sweep':10} {hashlib.sha256(results).hexdigest()[:16]}", flush=True)


if __name__ == "__main__":
    main()
