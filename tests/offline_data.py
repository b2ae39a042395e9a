"""Data sets of the probes, in which everything possible happens."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from rewardshift.data.dataset import Dataset


def random_data(
    make: Callable[[], gym.Env[Any, Any]], transitions: int, seed: int = 0, name: str = "random"
) -> Dataset:
    """What random actions lead to, each on the environment's own scale."""
    env = make()
    env.action_space.seed(seed)
    rows: list[tuple[Any, ...]] = []
    observation, _ = env.reset(seed=seed)
    while len(rows) < transitions:
        action = env.action_space.sample()
        following, reward, terminated, truncated, _ = env.step(action)
        rows.append((observation, action, reward, following, terminated, truncated))
        observation = following
        if terminated or truncated:
            observation, _ = env.reset()
    columns: list[np.ndarray] = [np.array(column) for column in zip(*rows, strict=True)]
    columns[5][-1] |= not columns[4][-1]
    return Dataset(
        name,
        observation=columns[0].astype(np.float32),
        action=columns[1],
        reward=columns[2].astype(np.float32),
        next_observation=columns[3].astype(np.float32),
        terminated=columns[4],
        truncated=columns[5],
    )
