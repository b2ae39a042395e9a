"""Greedy episodes in a vector environment that the caller has made."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from rewardshift.errors import InputError, blaming
from rewardshift.training.evaluation import LONGEST_EPISODE, Evaluation, endless
from rewardshift.wrappers import DISABLED, NEXT_STEP, SAME_STEP, autoreset_mode


class Row(gym.Env[Any, Any]):
    """The spaces of one row of a vector environment, which say what its task is."""

    def __init__(self, envs: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        self.observation_space = envs.single_observation_space
        self.action_space = envs.single_action_space


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
    mode = autoreset_mode(envs)
    if mode == DISABLED:
        raise InputError(
            f"a vector environment needs autoreset to be evaluated in, {envs} has none"
        )
    rows, share = envs.num_envs, -(-episodes // envs.num_envs)
    with blaming(f"the vector environment {envs}, when reset,"):
        observation, _ = envs.reset(seed=seed)
    total, discounted, length = np.zeros(rows), np.zeros(rows), np.zeros(rows, np.int64)
    resetting, finished = np.zeros(rows, bool), np.zeros(rows, np.int64)
    found: list[tuple[Any, ...]] = []
    while (finished < share).any():
        if length.max() >= LONGEST_EPISODE:
            raise endless(f"an episode of {envs}")
        actions = act(observation)
        with blaming(f"the vector environment {envs}"):
            observation, reward, terminated, truncated, infos = envs.step(actions)
        counted = ~resetting  # a row that is only being reset pays nothing
        total += counted * reward
        discounted += counted * gamma**length * reward
        length += counted
        ended = counted & (terminated | truncated)
        last = infos.get("final_info", {}) if mode == SAME_STEP else infos
        found += [
            (total[row], discounted[row], length[row], terminated[row], _success(last, row))
            for row in np.flatnonzero(ended & (finished < share))
        ]
        finished += ended
        for numbers in (total, discounted, length):
            numbers[ended] = 0
        resetting = ended if mode == NEXT_STEP else resetting
    return Evaluation(*(np.array(column) for column in zip(*found, strict=True)))


def _success(infos: dict[str, Any], row: Any) -> float:
    """Whether a row's info says that its goal is reached, as in `Step`; NaN if it does not."""
    for name in ("is_success", "success"):
        if name in infos and infos.get(f"_{name}", np.ones(row + 1))[row]:
            return float(infos[name][row])
    return np.nan
