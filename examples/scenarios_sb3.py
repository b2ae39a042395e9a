"""The paper's three scenarios for Stable-Baselines3's DQN on a MiniGrid.

A single shift of either sign, Random Reward Shift with members of both signs, and a curiosity bonus
as it is and shifted by -1. Every other setting is that of the paper's DQN, for all alike.
"""

import argparse
from statistics import mean, stdev
from typing import Any

import gymnasium as gym
import minigrid  # noqa: F401 - registers its environments
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

from rewardshift import ShiftReward
from rewardshift.integrations.sb3 import RRSDQN, CuriousReplayBuffer

# The shift of the environment, of each member, or of the bonus.
METHODS: dict[str, dict[str, Any]] = {
    "none": {},
    "-0.5": {"shift": -0.5},
    "+0.5": {"shift": 0.5},
    "RRS": {"members": (-0.5, 0.0, 0.5)},
    "RND": {"bonus": 0.0},
    "RND-1": {"bonus": -1.0},
}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="MiniGrid-Empty-Random-6x6-v0")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=128, help="of the networks of RND")
    return parser.parse_args()


def make(env: str) -> gym.Env[Any, Any]:
    """The image of a MiniGrid as 147 plain numbers, as in the paper."""
    image: Any = gym.make(env)
    image = gym.wrappers.FilterObservation(image, ["image"])
    return Monitor(gym.wrappers.DtypeObservation(gym.wrappers.FlattenObservation(image), float))


class Evaluations(BaseCallback):
    """Notes the mean return of five greedy episodes, ten times in a training."""

    def __init__(self, env: gym.Env[Any, Any], every: int) -> None:
        super().__init__()
        self.env, self.every, self.returns = env, every, list[float]()

    def _on_step(self) -> bool:
        if self.num_timesteps % self.every == 0:
            found: Any = evaluate_policy(self.model, self.env, n_eval_episodes=5)[0]
            self.returns.append(found)
        return True


def train(
    args: argparse.Namespace,
    seed: int,
    shift: float | None = None,
    members: tuple[float, ...] = (),
    bonus: float | None = None,
) -> float:
    """The mean greedy return over the evaluations of a training, on the primal scale."""
    env, kind, settings = make(args.env), DQN, dict[str, Any]()
    if shift is not None:
        env = ShiftReward(env, shift, warn=False)
    if members:
        kind, settings = RRSDQN, {"shifts": members}
    if bonus is not None:
        settings["replay_buffer_class"] = CuriousReplayBuffer
        settings["replay_buffer_kwargs"] = {"shift": bonus, "width": args.width}
    model = kind(
        "MlpPolicy",
        env,
        learning_rate=1e-3,
        gamma=0.98,
        batch_size=64,
        learning_starts=64,
        train_freq=1,
        tau=0.05,
        target_update_interval=1,
        exploration_initial_eps=0.9,
        exploration_fraction=0.2,
        policy_kwargs={"net_arch": [64]},
        seed=seed,
        device="cpu",
        **settings,
    )
    test = make(args.env)
    test.reset(seed=1000 + seed)
    evaluations = Evaluations(test, args.steps // 10)
    model.learn(args.steps, callback=evaluations)
    return mean(evaluations.returns)


def main() -> None:
    args = options()
    torch.set_num_threads(1)  # networks this small are slower on several
    returns: dict[str, list[float]] = {name: [] for name in args.methods}
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        for name, found in returns.items():
            found.append(train(args, seed, **METHODS[name]))
            print(f"seed {seed}, {name}: {found[-1]:.3f}", flush=True)
    for name, found in returns.items():
        spread = stdev(found) if len(found) > 1 else 0.0
        print(f"{name}: {mean(found):.3f} +- {spread:.3f}")


if __name__ == "__main__":
    main()
