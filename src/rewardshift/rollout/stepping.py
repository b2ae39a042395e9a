"""One episode in one environment, step by step."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from rewardshift.envs.tasks import TaskSpec, flatten
from rewardshift.errors import blaming


class Moment(NamedTuple):
    """One step: a flat observation, the action, the primal reward, and the next observation."""

    observation: np.ndarray
    action: Any
    reward: float
    following: np.ndarray
    terminated: bool
    truncated: bool


def episode_steps(
    env: gym.Env[Any, Any], spec: TaskSpec, act: Callable[[np.ndarray], Any], first: Any
) -> Iterator[Moment]:
    """The steps of an episode, up to its end.

    Args:
        env: The environment, just reset.
        spec: Its task.
        act: A function that chooses an action for a flat observation.
        first: The observation of the reset.
    """
    observation, number, ended = flatten(first, spec), 0, False
    while not ended:
        action = act(observation)
        number += 1
        with blaming(f"the environment {env}, in step {number},"):
            raw, reward, terminated, truncated, _ = env.step(action)
            following = flatten(raw, spec)
        ended = bool(terminated or truncated)
        yield Moment(
            observation, action, float(reward), following, bool(terminated), bool(truncated)
        )
        observation = following
