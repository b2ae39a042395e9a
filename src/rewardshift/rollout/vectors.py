"""Greedy episodes in a vector environment that the caller has made."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from rewardshift.errors import InputError, blaming
from rewardshift.rollout.evaluation import Evaluation

Mode = gym.vector.AutoresetMode


def vector_episodes(
    envs: gym.vector.VectorEnv[Any, Any, Any],
    act: Callable[[Any], Any],
    episodes: int,
    *,
    gamma: float,
    seed: int,
) -> Evaluation:
    """Episodes of all rows, the same number in each, so that short ones are not preferred.

    Args:
        envs: The vector environment, which is not closed.
        act: The actions for a batch of its observations.
        episodes: The least number of episodes; the rows share them.
        gamma: The discount.
        seed: The seed of the first reset.
    """
    mode = envs.metadata.get("autoreset_mode", Mode.NEXT_STEP)
    if mode is Mode.DISABLED:
        raise InputError(
            f"a vector environment needs autoreset to be evaluated in, {envs} has none"
        )
    rows, share = envs.num_envs, -(-episodes // envs.num_envs)
    observation, _ = envs.reset(seed=seed)
    total, discounted, length = np.zeros(rows), np.zeros(rows), np.zeros(rows, np.int64)
    resetting, finished = np.zeros(rows, bool), np.zeros(rows, np.int64)
    found: list[tuple[Any, ...]] = []
    while (finished < share).any():
        with blaming(f"the vector environment {envs}"):
            observation, reward, terminated, truncated, _ = envs.step(act(observation))
        counted = ~resetting  # a row that is only being reset pays nothing
        total += counted * reward
        discounted += counted * gamma**length * reward
        length += counted
        ended = counted & (terminated | truncated)
        found += [
            (total[row], discounted[row], length[row], terminated[row], np.nan)
            for row in np.flatnonzero(ended & (finished < share))
        ]
        finished += ended
        for numbers in (total, discounted, length):
            numbers[ended] = 0
        resetting = ended if mode is Mode.NEXT_STEP else resetting
    return Evaluation(*(np.array(column) for column in zip(*found, strict=True)))
