"""One episode in one environment, step by step."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium as gym

from rewardshift.errors import blaming
from rewardshift.wrappers import METADATA_KEY


class Moment(NamedTuple):
    """One step: an observation, the action, the primal reward, and the next observation.

    Observations and actions are in the form of the agent.
    """

    observation: Any
    action: Any
    reward: float
    following: Any
    terminated: bool
    truncated: bool


def itself(value: Any) -> Any:
    """The value, unchanged."""
    return value


def episode_steps(
    env: gym.Env[Any, Any],
    act: Callable[[Any], Any],
    first: Any,
    see: Callable[[Any], Any] = itself,
    do: Callable[[Any], Any] = itself,
) -> Iterator[Moment]:
    """The steps of an episode, up to its end; a shift around the environment is undone.

    Args:
        env: The environment, just reset.
        act: A function that chooses an action for an observation.
        first: The observation of the reset.
        see: Makes the agent's observation of the environment's.
        do: Makes the environment's action of the agent's.
    """
    shifted = METADATA_KEY in env.metadata
    observation, number, ended = see(first), 0, False
    while not ended:
        action = act(observation)
        number += 1
        with blaming(f"the environment {env}, in step {number},"):
            raw, reward, terminated, truncated, info = env.step(do(action))
            following = see(raw)
        primal = info.get("primal_reward", reward) if shifted else reward
        ended = bool(terminated or truncated)
        yield Moment(
            observation, action, float(primal), following, bool(terminated), bool(truncated)
        )
        observation = following
