"""Digests of short trainings of every agent, to compare two commits.

Run it with the source of one commit and then of the other, on one machine:

    NPROC=1 PYTHONPATH=OTHER_CHECKOUT/src python benchmarks/same_numbers.py

The same lines mean the same losses and the same networks, bit for bit.
"""

import hashlib
from typing import Any

import jax
import numpy as np

import rewardshift
from rewardshift import (
    BCQ,
    CQL,
    DQN,
    SAC,
    TD3,
    OfflineBudget,
    OnlineBudget,
    ddpg,
    train,
    train_offline,
)
from rewardshift.agents.intrinsic import RND

ONLINE = OnlineBudget(steps=300, evaluate_every=100, evaluation_episodes=1, checkpoint_every=150)
OFFLINE = OfflineBudget(updates=100, evaluate_every=50, evaluation_episodes=1, checkpoint_every=50)


def small(kind: Any) -> dict[str, Any]:
    """Settings for a small agent, as the checked-out source spells them."""
    if "hidden" in kind.__dataclass_fields__:
        proposer = {"proposer_hidden": (16, 16)} if kind is BCQ else {}
        return {"hidden": (16, 16), "batch_size": 16, **proposer}
    network = rewardshift.MLP((16, 16))
    return {"network": network, "batch_size": 16, **({"proposer": network} if kind is BCQ else {})}


def shifted(kind: Any, *biases: float) -> dict[str, Any]:
    """The setting that shifts rewards, as the checked-out source spells it."""
    known = kind.__dataclass_fields__
    if "shifts" in known:
        return {"shifts": biases}
    if "bias" in known:
        return {"bias": biases[0]}
    return {"shift": biases if len(biases) > 1 else biases[0]}


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
    online: dict[str, tuple[Any, str]] = {
        "dqn": (DQN(gamma=0.95, tau=0.05, **shifted(DQN, -0.5, 0.5)), "MountainCar-v0"),
        "dqn rnd": (
            DQN(gamma=0.95, tau=0.05, **shifted(DQN, -0.5), intrinsic=RND(-1.0, width=8)),
            "MiniGrid-Empty-Random-6x6-v0",
        ),
        "dqn 3-step": (DQN(gamma=0.95, tau=0.05, **shifted(DQN, -0.5), n_step=3), "CartPole-v1"),
        "td3": (TD3(**shifted(TD3, -0.5, 0.0, 0.5), warm_up=50, **small(TD3)), "Pendulum-v1"),
        "ddpg": (
            ddpg(**shifted(TD3, -0.5), warm_up=50, normalise=True, **small(TD3)),
            "Pendulum-v1",
        ),
        "sac": (SAC(**shifted(SAC, -0.5, 0.5), warm_up=50, **small(SAC)), "Pendulum-v1"),
    }
    for name, (agent, env) in online.items():
        show(name, train(agent, env, seeds=2, budget=ONLINE))
    offline: dict[str, Any] = {
        "bcq": BCQ(**shifted(BCQ, 8.0), **small(BCQ)),
        "cql": CQL(**shifted(CQL, 8.0), cloning_updates=20, threshold=5.0, **small(CQL)),
    }
    for name, agent in offline.items():
        show(name, train_offline(agent, "embedded/hopper-medium", seeds=2, budget=OFFLINE))


if __name__ == "__main__":
    main()
