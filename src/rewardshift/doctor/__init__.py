"""The doctor: what is wrong with an agent's values, in numbers, a picture and sentences.

`diagnose` takes any agent with a Q function. `rewardshift.doctor.runs` looks at our runs,
`rewardshift.doctor.sb3` at models of Stable-Baselines3, `rewardshift.doctor.d3rlpy` at algorithms
of d3rlpy. The numbers need NumPy and Gymnasium alone, a picture needs the extra `paper`.
"""

from typing import Any

import gymnasium as gym
import numpy as np

from rewardshift.checks import Count, Natural, checked
from rewardshift.doctor.diagnosis import Diagnosis
from rewardshift.doctor.numbers import (
    belief_of,
    ends_of,
    members_of,
    motion_of,
    signal_of,
    start_of,
    trained_bounds,
    untried_of,
)
from rewardshift.doctor.rules import Finding
from rewardshift.doctor.view import Earlier, Target, Transitions, View, stack, take
from rewardshift.doctor.walk import OnEpisode, walk
from rewardshift.errors import InputError, blaming, shown
from rewardshift.optimism import Bounds

__all__ = ["Diagnosis", "Earlier", "Finding", "Target", "Transitions", "View", "diagnose"]


def diagnose(
    view: View,
    env: gym.Env[Any, Any] | None = None,
    data: Transitions | None = None,
    *,
    episodes: int = 10,
    steps: int = 10_000,
    states: int = 512,
    seed: int = 0,
    on_episode: OnEpisode | None = None,
) -> Diagnosis:
    """A diagnosis of an agent's values.

    Give an environment, for episodes of the policy, or data, or both. Without an environment,
    estimates are compared with the returns in the data.

    Args:
        view: The agent: its Q function and policy, and what else is known of it.
        env: An environment that is not used for training; it is reset and not closed.
        data: Transitions of the replay or data set that the agent learned from.
        episodes: The number of episodes in the environment.
        steps: The most steps of all episodes together.
        states: The number of states in a sample of the data.
        seed: The seed of the episodes and of the samples.
        on_episode: A function to call with the number of episodes done.

    >>> import gymnasium
    >>> env = gymnasium.make("CartPole-v1")
    >>> view = View(
    ...     value=lambda observations, actions: np.full(len(actions), 50.0),
    ...     act=lambda observations: (observations[:, 2] > 0).astype(int),
    ...     actions=env.action_space,
    ...     gamma=0.99,
    ... )
    >>> found = diagnose(view, env, episodes=2)
    >>> [finding.name for finding in found.findings]
    ['overestimation']
    """
    named = {"episodes": episodes, "steps": steps, "states": states}
    for name, value in named.items():
        checked(name, Count, value)
    checked("seed", Natural, seed)
    if env is None and data is None:
        raise InputError("a diagnosis needs an environment, or transitions, or both")
    if env is not None:
        check_env(view, env, seed)
    rng = np.random.default_rng([0xD0C, seed])
    walked = None if env is None else walk(view, env, episodes, steps, seed, on_episode)
    parts = [part for part in (data, walked) if part is not None]
    signal, bounds = signal_of(view, parts), trained_bounds(view, parts)
    belief = None
    if walked is not None:
        belief = belief_of(view, walked, "episodes", signal, bounds)
    elif data is not None and data.ended is not None:
        belief = belief_of(view, data, "data", signal, bounds)
    pairs = parts[0]
    return Diagnosis(
        gamma=view.gamma,
        shift=view.trained,
        normaliser=view.normaliser,
        signal=signal,
        belief=belief,
        untried=None if data is None else untried_of(view, data, states, bounds, signal, rng),
        ends=ends_of(view, data, walked, states, signal, rng),
        start=start_of(view, _firsts(parts[-1]), Bounds(signal.low, signal.high), rng),
        members=members_of(view, pairs, states, signal, rng),
        motion=motion_of(view, pairs, states, rng),
    )


def check_env(view: View, env: gym.Env[Any, Any], seed: int) -> None:
    """Raises if the agent cannot act in an environment."""
    if not isinstance(env, gym.Env):
        raise InputError(f"env must be one Gymnasium environment, got {shown(env)}")
    one = view.do(view.uniform(1, np.random.default_rng(0))[0])
    fits = np.shape(one) == env.action_space.shape and one in env.action_space
    if isinstance(view.actions, gym.spaces.Discrete):
        fits = view.actions == env.action_space
    if not fits:
        raise InputError(
            f"the agent acts in {view.actions}, which does not fit the environment {env} with"
            f" {env.action_space}"
        )
    with blaming(f"the environment {env}, when reset,"):
        raw, _ = env.reset(seed=seed)
    try:
        acted = np.shape(view.act(stack([view.see(raw)])))
    except Exception as error:
        raise InputError(
            f"the agent cannot act on observations of {env}, {env.observation_space}:"
            f" {type(error).__name__}"
        ) from error
    if acted[:1] != (1,):
        raise InputError(f"the policy must return a batch of actions, got the shape {acted} for 1")


def _firsts(data: Transitions) -> Any:
    """The first observations of episodes; without their ends, the first row."""
    rows = np.array([0])
    if data.ended is not None:
        rows = np.append(0, np.flatnonzero(data.ended)[:-1] + 1)
    return take(data.observation, rows[rows < len(data)])
