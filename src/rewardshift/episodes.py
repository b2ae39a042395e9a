"""One episode in one environment, step by step."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium as gym

from rewardshift.errors import blaming
from rewardshift.wrappers import METADATA_KEY


class Step(NamedTuple):
    """One step: an observation, the action, the primal reward, and the next observation.

    Observations and actions are in the form of the agent.
    """

    observation: Any
    action: Any
    reward: float
    next_observation: Any
    terminated: bool
    truncated: bool


def unchanged(value: Any) -> Any:
    """The value itself: for an agent that takes what the environment gives."""
    return value


def episode_steps(
    env: gym.Env[Any, Any],
    act: Callable[[Any], Any],
    first: Any,
    agent_observation: Callable[[Any], Any] = unchanged,
    env_action: Callable[[Any], Any] = unchanged,
) -> Iterator[Step]:
    """The steps of an episode, up to its end; a shift around the environment is undone.

    Args:
        env: The environment, just reset.
        act: A function that chooses an action for an observation.
        first: The observation of the reset.
        agent_observation: Converts the environment's observation to the agent's.
        env_action: Converts the agent's action to the environment's.
    """
    shifted = METADATA_KEY in env.metadata
    observation, number, ended = agent_observation(first), 0, False
    while not ended:
        action = act(observation)
        number += 1
        with blaming(f"the environment {env}, in step {number},"):
            raw, reward, terminated, truncated, info = env.step(env_action(action))
            following = agent_observation(raw)
        primal = info.get("primal_reward", reward) if shifted else reward
        ended = bool(terminated or truncated)
        yield Step(observation, action, float(primal), following, bool(terminated), bool(truncated))
        observation = following
