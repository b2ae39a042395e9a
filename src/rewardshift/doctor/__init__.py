"""The doctor: what is wrong with an agent's values, in numbers, a picture and sentences.

It is the only code that measures values: `measure` holds what training loops log, too.
`diagnose` takes any agent with a Q function. `rewardshift.training.doctor` examines our runs,
`rewardshift.integrations.sb3_doctor` models of Stable-Baselines3, and
`rewardshift.integrations.d3rlpy_doctor` algorithms of d3rlpy. The numbers need NumPy and Gymnasium
alone, a picture needs the extra `paper`.
"""

from typing import Any, TypedDict

import gymnasium as gym
import numpy as np

from rewardshift.checks import Count, Natural, checked
from rewardshift.doctor.agent_view import AgentView, Earlier, Target
from rewardshift.doctor.diagnosis import Diagnosis
from rewardshift.doctor.examination import Examination
from rewardshift.doctor.rules import Finding
from rewardshift.doctor.transitions import (
    History,
    Transitions,
    check_env,
    foreign_rewards,
    play_episodes,
)
from rewardshift.errors import InputError

__all__ = [
    "AgentView",
    "Diagnosis",
    "Earlier",
    "Finding",
    "History",
    "Target",
    "Transitions",
    "diagnose",
]


class Options(TypedDict, total=False):
    """Arguments of `diagnose` that the doctor of every library takes, too."""

    episodes: int
    steps: int
    states: int
    seed: int


def diagnose(
    agent: AgentView,
    env: gym.Env[Any, Any] | None = None,
    data: Transitions | None = None,
    *,
    episodes: int = 10,
    steps: int = 10_000,
    states: int = 512,
    seed: int = 0,
) -> Diagnosis:
    """A diagnosis of an agent's values.

    Give an environment, for episodes of the policy, or data, or both. Without an environment,
    estimates are compared with the returns in the data.

    Args:
        agent: The agent: its Q function and policy, and what else is known of it.
        env: An environment that is not used for training; it is reset and not closed.
        data: Transitions of the replay or data set that the agent learned from.
        episodes: The number of episodes in the environment.
        steps: The most steps of all episodes together.
        states: The number of states in a sample of the data.
        seed: The seed of the episodes and of the samples.

    >>> import gymnasium
    >>> env = gymnasium.make("CartPole-v1")
    >>> agent = AgentView(
    ...     value=lambda observations, actions: np.full(len(actions), 50.0),
    ...     act=lambda observations: (observations[:, 2] > 0).astype(int),
    ...     actions=env.action_space,
    ...     gamma=0.99,
    ... )
    >>> found = diagnose(agent, env, episodes=2)
    >>> [finding.name for finding in found.findings]
    ['overestimation']
    """
    for name, value in {"episodes": episodes, "steps": steps, "states": states}.items():
        checked(name, Count, value)
    checked("seed", Natural, seed)
    if env is None and data is None:
        raise InputError("a diagnosis needs an environment, or transitions, or both")
    played = foreign = None
    if env is not None:
        check_env(agent, env, seed)
        played = play_episodes(agent, env, episodes, steps, seed)
        if data is not None:
            foreign = foreign_rewards(agent, env, data, played, seed)
    rng = np.random.default_rng([0xD0C, seed])
    examination = Examination(agent, data, played, states, rng, foreign)
    return Diagnosis(
        gamma=agent.gamma,
        shift=agent.trained,
        normaliser=agent.normaliser,
        signal=examination.signal,
        belief=examination.belief(),
        untried=examination.untried(),
        ends=examination.ends(),
        start=examination.start,
    )
