"""A DQN in one file, in the manner of CleanRL, as a trial of a sweep and as a script.

`rewardshift sweep examples/cleanrl_dqn.py:trial --env CartPole-v1 --shift -1 -0.5 auto` trains
it with each shift and with none. The environment that `trial` gets is shifted already; everything
else is as it would be without a shift.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import minigrid  # noqa: F401 - registers its environments
import numpy as np
import torch
from gymnasium.wrappers import DtypeObservation, FilterObservation, FlattenObservation
from torch import nn

from rewardshift import ShiftReward


def trial(
    env: gym.Env[Any, Any],
    seed: int,
    *,
    steps: int = 50_000,
    warm_up: int = 1_000,
    batch_size: int = 128,
    gamma: float = 0.99,
    learning_rate: float = 1e-3,
    evaluations: int = 25,
) -> Iterator[tuple[int, Callable[[Any], int]]]:
    """Trains, and yields the step and the greedy policy at each evaluation."""
    torch.set_num_threads(1)  # a network this small is slower on several
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)

    assert isinstance(env.action_space, gym.spaces.Discrete)
    size, actions = env.observation_space.shape[0], int(env.action_space.n)  # type: ignore[index]
    network = nn.Sequential(nn.Linear(size, 120), nn.ReLU(), nn.Linear(120, actions))
    target = nn.Sequential(nn.Linear(size, 120), nn.ReLU(), nn.Linear(120, actions))
    target.load_state_dict(network.state_dict())
    optimiser = torch.optim.Adam(network.parameters(), learning_rate)

    observations = torch.zeros(steps, size)
    followers = torch.zeros(steps, size)
    taken = torch.zeros(steps, 1, dtype=torch.int64)
    rewards, ended = torch.zeros(steps), torch.zeros(steps)

    def greedy(observation: Any) -> int:
        with torch.no_grad():
            return int(network(torch.as_tensor(observation)).argmax())

    observation, _ = env.reset(seed=seed)
    for step in range(steps):
        epsilon = max(0.05, 1 - step / (0.5 * steps))
        action = int(rng.integers(actions)) if rng.random() < epsilon else greedy(observation)
        follower, reward, terminated, truncated, _ = env.step(action)

        observations[step] = torch.as_tensor(observation)
        followers[step] = torch.as_tensor(follower)
        taken[step], rewards[step], ended[step] = action, float(reward), float(terminated)
        observation = follower
        if terminated or truncated:
            observation, _ = env.reset()

        if step >= warm_up:
            rows = torch.as_tensor(rng.integers(step + 1, size=batch_size))
            with torch.no_grad():
                best = target(followers[rows]).amax(dim=1)
                goal = rewards[rows] + gamma * (1 - ended[rows]) * best
            estimate = network(observations[rows]).gather(1, taken[rows])[:, 0]
            loss = nn.functional.mse_loss(estimate, goal)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            if step % 500 == 0:
                target.load_state_dict(network.state_dict())
        if (step + 1) % max(1, steps // evaluations) == 0:
            yield step + 1, greedy


def make(name: str) -> gym.Env[Any, Any]:
    """A task whose observations are plain numbers: of a MiniGrid, those of its image."""
    env: Any = gym.make(name)
    if isinstance(env.observation_space, gym.spaces.Dict):
        env = FlattenObservation(FilterObservation(env, ["image"]))
    return DtypeObservation(env, np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="MiniGrid-Empty-Random-6x6-v0")
    parser.add_argument("--shift", type=float, default=-0.5)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--warm-up", type=int, default=1_000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--evaluations", type=int, default=25)
    given = vars(parser.parse_args())
    recorder: Any = gym.wrappers.RecordEpisodeStatistics(make(given.pop("env")))
    env: Any = ShiftReward(recorder, given.pop("shift"))  # outside of what records returns
    for step, _ in trial(env, **given):
        returns = [float(one) for one in recorder.return_queue]
        print(f"step {step}: mean primal return {np.mean(returns) if returns else float('nan'):g}")


if __name__ == "__main__":
    main()
