"""Episodes of a policy in an environment, and the returns that followed each of their steps."""

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from rewardshift.doctor.view import Transitions, View, stack, take, values_at
from rewardshift.envs.stepping import Moment, episode_steps
from rewardshift.errors import InputError, blaming

# A function of the number of finished episodes.
OnEpisode = Callable[[int], None]


def walk(
    view: View,
    env: gym.Env[Any, Any],
    episodes: int,
    steps: int,
    seed: int,
    on_episode: OnEpisode | None = None,
) -> Transitions:
    """The steps of episodes without exploration, with primal rewards.

    Args:
        view: The agent.
        env: An environment of its own; a shift around it is undone.
        episodes: The number of episodes.
        steps: The most steps of all of them; the last episode is cut there.
        seed: The seed of the first reset.
        on_episode: Called after each episode.
    """
    found: list[Moment] = []
    ends: list[int] = []  # the last step of each episode
    for number in range(episodes):
        if len(found) == steps:
            break
        with blaming(f"the environment {env}, when reset,"):
            first, _ = env.reset(seed=seed if number == 0 else None)
        episode = episode_steps(env, partial(_act, view), first, view.see, view.do)
        found += islice(episode, steps - len(found))
        ends.append(len(found) - 1)
        if on_episode is not None:
            on_episode(number + 1)
    return Transitions(
        observation=stack([step.observation for step in found]),
        action=np.asarray([step.action for step in found]),
        reward=np.array([step.reward for step in found]),
        terminated=np.array([step.terminated for step in found]),
        next_observation=stack([step.following for step in found]),
        ended=np.isin(np.arange(len(found)), ends),
    )


def _act(view: View, observation: Any) -> Any:
    return np.asarray(view.act(stack([observation])))[0]


class Returns(NamedTuple):
    """What followed each step, on the scale that the agent was trained on.

    `share` is the part of a return, from 0 to 1, that is not seen but estimated, because a time
    limit came first.
    """

    followed: np.ndarray
    share: np.ndarray


def returns_of(view: View, data: Transitions) -> Returns:
    """The discounted returns of consecutive transitions, with bootstraps beyond time limits."""
    if data.ended is None:
        raise InputError("returns need to know where episodes end: give Transitions its 'ended'")
    reward = np.asarray(view.trained.reward(np.asarray(data.reward, np.float64), data.terminated))
    ended = np.array(data.ended, bool)
    ended[-1] = True
    beyond = _beyond(view, data, ended)
    followed, share = np.empty(len(data)), np.empty(len(data))
    later, unseen = 0.0, 0.0
    for row in range(len(data) - 1, -1, -1):
        if ended[row]:
            later, unseen = beyond[row], float(not data.terminated[row])
        later = reward[row] + view.gamma * later
        unseen *= view.gamma
        followed[row], share[row] = later, unseen
    return Returns(followed, share)


def _beyond(view: View, data: Transitions, ended: np.ndarray) -> np.ndarray:
    """The value of the state after each row, where an episode was cut; elsewhere 0."""
    beyond = np.zeros(len(data))
    cut = np.flatnonzero(ended & ~np.asarray(data.terminated, bool))
    if not cut.size:
        return beyond
    if data.next_observation is None:
        raise InputError("an episode was cut: returns beyond it need 'next_observation'")
    last = take(data.next_observation, cut)
    beyond[cut] = values_at(view.value, last, np.asarray(view.act(last)), "the agent")
    return beyond
