"""What a shift does to Stable-Baselines3's DQN where a fall ends an episode without a reward.

In MiniGrid's LavaGap the goal pays, and lava ends the episode with 0. A negative shift makes an
agent explore. But if the shift stops where the episode ends, lava is the shortest way out of its
cost. With `terminal="goal"` only the goal ends the cost. `"auto"` does so too and chooses the
constant. Each line is the mean of the greedy returns over a whole training. `--env` takes another
MiniGrid, or a task with plain numbers such as CartPole-v1.
"""

import argparse
import csv
from pathlib import Path
from typing import Any

import gymnasium as gym
import minigrid  # noqa: F401  registers the tasks
import numpy as np
import torch
from minigrid.wrappers import ImgObsWrapper
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from rewardshift import Auto, Shift
from rewardshift.integrations.sb3 import VecShiftReward

GAMMA = 0.98
SHIFTS: dict[str, Shift | Auto] = {
    "none": Shift(0.0),
    "-0.5 zero": Shift(-0.5),
    "-0.5 goal": Shift(-0.5, gamma=GAMMA, terminal="goal"),
    "auto": Auto(),
}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="MiniGrid-LavaGapS5-v0")
    parser.add_argument("--shifts", nargs="+", choices=SHIFTS, default=list(SHIFTS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--tau", type=float, default=0.05, help="of the target network")
    parser.add_argument("--evaluations", type=int, default=20)
    parser.add_argument("--out", type=Path, help="a csv to which every evaluation is added")
    return parser.parse_args()


def make(env: str) -> gym.Env[Any, Any]:
    """A MiniGrid as 147 numbers from 0 to 1, the objects, colours and states of 7 x 7 fields."""
    if not env.startswith("MiniGrid"):
        return gym.make(env)
    flat = gym.wrappers.FlattenObservation(ImgObsWrapper(gym.make(env)))
    space = gym.spaces.Box(0.0, 1.0, flat.observation_space.shape, np.float32)
    return gym.wrappers.TransformObservation(flat, lambda o: np.float32(o) / 10, space)


class Evaluations(BaseCallback):
    """The mean primal return of ten greedy episodes, every so many steps."""

    def __init__(self, env: str, every: int, seed: int) -> None:
        super().__init__()
        self.every = every
        self.primal = make_vec_env(lambda: make(env), n_envs=10, seed=seed)
        self.curve: list[tuple[int, float]] = []

    def _on_step(self) -> bool:
        if self.num_timesteps % self.every == 0:
            mean, _ = evaluate_policy(self.model, self.primal, n_eval_episodes=10)
            self.curve.append((self.num_timesteps, float(mean)))  # type: ignore[arg-type]
        return True


def learning_curve(args: argparse.Namespace, name: str, seed: int) -> list[tuple[int, float]]:
    """The evaluations of a training with the paper's settings of DQN."""
    torch.set_num_threads(1)  # a network this small is slower on several
    shift = SHIFTS[name]
    gamma = GAMMA if isinstance(shift, Auto) else None
    venv = VecShiftReward(make_vec_env(lambda: make(args.env), seed=seed), shift, gamma)
    model = DQN(
        "MlpPolicy",
        venv,
        gamma=GAMMA,
        learning_rate=1e-3,
        batch_size=64,
        buffer_size=args.steps,
        learning_starts=64,
        train_freq=1,
        tau=args.tau,
        target_update_interval=1,
        exploration_initial_eps=0.9,
        exploration_final_eps=0.05,
        exploration_fraction=0.2,
        policy_kwargs={"net_arch": [64]},
        seed=seed,
        device="cpu",
    )
    evaluations = Evaluations(args.env, args.steps // args.evaluations, seed=10_000 + seed)
    model.learn(args.steps, callback=evaluations)
    return evaluations.curve


def main() -> None:
    args = options()
    for seed in args.seeds:
        for name in args.shifts:
            curve = learning_curve(args, name, seed)
            mean = np.mean([result for _, result in curve])
            print(f"seed {seed}  {name:9}  {mean:.2f}", flush=True)
            if args.out is not None:
                with args.out.open("a", newline="") as file:
                    rows = csv.writer(file, lineterminator="\n")
                    if file.tell() == 0:
                        rows.writerow(("shift", "seed", "step", "return"))
                    rows.writerows((name, seed, step, f"{result:.4f}") for step, result in curve)


if __name__ == "__main__":
    main()
