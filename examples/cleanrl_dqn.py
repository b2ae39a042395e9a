"""A DQN in one file, in the manner of CleanRL, and the one line that shifts its rewards.

Everything else is as it would be without a shift: the returns that are printed are counted
inside of it, so they are primal and can be compared between shifts.
"""

import argparse
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from rewardshift import ShiftReward


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="MountainCar-v0")
    parser.add_argument("--shift", type=float, default=-0.5)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--warm-up", type=int, default=1_000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def train(args: argparse.Namespace) -> None:
    torch.set_num_threads(1)  # a network this small is slower on several
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    env: Any = gym.make(args.env)
    env = gym.wrappers.RecordEpisodeStatistics(env)
    env = ShiftReward(env, args.shift)  # the one line, outside of what records returns

    size, actions = env.observation_space.shape[0], int(env.action_space.n)
    network = nn.Sequential(nn.Linear(size, 120), nn.ReLU(), nn.Linear(120, actions))
    target = nn.Sequential(nn.Linear(size, 120), nn.ReLU(), nn.Linear(120, actions))
    target.load_state_dict(network.state_dict())
    optimiser = torch.optim.Adam(network.parameters(), args.learning_rate)

    observations = torch.zeros(args.steps, size)
    followers = torch.zeros(args.steps, size)
    taken = torch.zeros(args.steps, 1, dtype=torch.int64)
    rewards, ended = torch.zeros(args.steps), torch.zeros(args.steps)

    observation, _ = env.reset(seed=args.seed)
    for step in range(args.steps):
        epsilon = max(0.05, 1 - step / (0.5 * args.steps))
        with torch.no_grad():
            greedy = int(network(torch.as_tensor(observation)).argmax())
        action = int(rng.integers(actions)) if rng.random() < epsilon else greedy
        follower, reward, terminated, truncated, info = env.step(action)

        observations[step] = torch.as_tensor(observation)
        followers[step] = torch.as_tensor(follower)
        taken[step], rewards[step], ended[step] = action, float(reward), float(terminated)
        observation = follower
        if terminated or truncated:
            print(f"step {step + 1}: primal return {float(info['episode']['r']):g}")
            observation, _ = env.reset()

        if step < args.warm_up:
            continue
        rows = torch.as_tensor(rng.integers(step + 1, size=args.batch_size))
        with torch.no_grad():
            best = target(followers[rows]).amax(dim=1)
            goal = rewards[rows] + args.gamma * (1 - ended[rows]) * best
        estimate = network(observations[rows]).gather(1, taken[rows])[:, 0]
        loss = nn.functional.mse_loss(estimate, goal)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if step % 500 == 0:
            target.load_state_dict(network.state_dict())


if __name__ == "__main__":
    train(options())
