"""What an environment pays under random actions, seen in a copy of it."""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from rewardshift.errors import InputError, blaming, one_line

STEPS = 3_000
SECONDS = 60.0
# Wrappers that write files or open windows, by name: Stable-Baselines3 need not be installed.
RECORDERS = ("Monitor", "RecordVideo", "HumanRendering")


@dataclass(frozen=True)
class Probe:
    """The steps of random play, in their order.

    Args:
        reward: The rewards.
        terminated: Whether each step ended in a terminal state.
        ended: Whether each step ended its episode, in a terminal state or at a time limit.
    """

    reward: np.ndarray
    terminated: np.ndarray
    ended: np.ndarray


def play(
    env: gym.Env[Any, Any],
    steps: int = STEPS,
    *,
    seed: int = 0,
    seconds: float = SECONDS,
    on_step: Callable[[int], None] | None = None,
) -> Probe:
    """Plays random actions; the same seed plays the same.

    Args:
        env: The environment, which is reset. It must not be shifted.
        steps: The number of steps.
        seed: The seed of the environment and of the actions.
        seconds: The time after which it stops with fewer steps.
        on_step: Called with the number of each step.
    """
    rewards, terminals, ends = np.zeros(steps), np.zeros(steps, bool), np.zeros(steps, bool)
    until, over, taken = time.monotonic() + seconds, True, 0
    env.action_space.seed(seed)
    with blaming(f"the environment {env}, under random actions,"):
        while taken < steps and time.monotonic() < until:
            if over:
                env.reset(seed=None if taken else seed)
            _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            over = bool(terminated or truncated)
            rewards[taken], terminals[taken], ends[taken] = reward, bool(terminated), over
            taken += 1
            if on_step is not None:
                on_step(taken)
    wrong = rewards[~np.isfinite(rewards)]
    if wrong.size:
        raise InputError(f"a shift needs finite rewards, the environment {env} paid {wrong[0]}")
    return Probe(rewards[:taken], terminals[:taken], ends[:taken])


def play_copy(env: gym.Env[Any, Any]) -> Probe:
    """Plays random actions in a copy, so that the environment and its random numbers stay."""
    try:
        twin = _copy(env)
    except Exception as error:  # what an environment that cannot be copied raises, is up to it
        raise InputError(
            f"'auto' plays random actions in a copy of the environment, and {env} cannot be copied:"
            f" {one_line(error)}. Give a function that makes one to suggest_shift, and the shift"
            " that it returns in place of 'auto'"
        ) from error
    try:
        probe = play(twin)
    finally:
        twin.close()
    if probe.reward.size < STEPS:
        raise InputError(
            f"'auto' plays {STEPS} random steps in a copy of the environment, and {env} took"
            f" {SECONDS:.0f} seconds for {probe.reward.size}: give suggest_shift fewer steps, and"
            " the shift that it returns in place of 'auto'"
        )
    return probe


def _copy(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """A copy without the wrappers that record, which draws nothing on the screen."""
    if not isinstance(env, gym.Wrapper):
        twin = copy.deepcopy(env)
        if twin.render_mode == "human":
            twin.render_mode = None
        return twin
    inner = _copy(env.env)
    if type(env).__name__ in RECORDERS:
        return inner
    return copy.deepcopy(env, {id(env.env): inner})
