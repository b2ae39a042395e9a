"""What an environment pays under random actions, seen in a copy of it."""

import contextlib
import copy
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from rewardshift.errors import InputError, blaming, one_line

STEPS = 3_000
SECONDS = 60.0
# Wrappers that write files or open windows, by name: Stable-Baselines3 need not be installed.
RECORDERS = ("Monitor", "RecordVideo", "HumanRendering")
ELSEWHERE = (
    "Give the wrapper suggest_shift(make_env, gamma).shift, where make_env is a function that makes"
    " one"
)


class Probe(NamedTuple):
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
    """Plays random actions, and closes the environment; the same seed plays the same.

    Args:
        env: The environment, which must not be shifted.
        steps: The number of steps.
        seed: The seed of the environment and of the actions.
        seconds: The time after which it stops with fewer steps.
        on_step: Called with the number of each step.
    """
    rewards, terminals, ends = np.zeros(steps), np.zeros(steps, bool), np.zeros(steps, bool)
    until, over, taken = time.monotonic() + seconds, True, 0
    actions = copy.deepcopy(env.action_space)  # a class may share its space with all its instances
    actions.seed(seed)
    blamed = blaming(f"the environment {env}, under random actions,")
    with blamed, contextlib.closing(env), same_randomness():
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        while taken < steps and (not taken or time.monotonic() < until):
            if over:
                env.reset(seed=None if taken else seed)
            _, reward, terminated, truncated, _ = env.step(actions.sample())
            over = bool(terminated or truncated)
            rewards[taken], terminals[taken], ends[taken] = reward, bool(terminated), over
            taken += 1
            if on_step is not None:
                on_step(taken)
    wrong = rewards[~np.isfinite(rewards)]
    if wrong.size:
        raise InputError(f"a shift needs finite rewards, the environment {env} paid {wrong[0]}")
    return Probe(rewards[:taken], terminals[:taken], ends[:taken])


@contextlib.contextmanager
def same_randomness() -> Iterator[None]:
    """Restores the global random generators of Python, NumPy and torch, which a task may use."""
    torch = sys.modules.get("torch")  # nothing to restore where it is not loaded
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with contextlib.nullcontext() if torch is None else torch.random.fork_rng():
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def play_copy(env: gym.Env[Any, Any]) -> Probe:
    """Plays random actions in a copy, so that the environment and its random numbers stay."""
    try:
        twin = _copy(env, {})
    except Exception as error:  # what an environment that cannot be copied raises, is up to it
        raise InputError(
            f"'auto' plays random actions in a copy of the environment, and {env} cannot be copied:"
            f" {one_line(error)}. {ELSEWHERE}"
        ) from error
    probe = play(twin)
    if probe.reward.size < STEPS:
        raise InputError(
            f"'auto' plays {STEPS} random steps in a copy of the environment, and {env} took"
            f" {SECONDS:.0f} seconds for {probe.reward.size}. {ELSEWHERE}, with fewer steps or more"
            " seconds"
        )
    return probe


def _copy(env: gym.Env[Any, Any], memo: dict[int, Any]) -> gym.Env[Any, Any]:
    """A copy without the wrappers that record, which draws nothing on the screen.

    `memo` holds the copies of its parts, to which wrappers may refer from outside.
    """
    if not isinstance(env, gym.Wrapper):
        twin = copy.deepcopy(env, memo)
        if twin.render_mode == "human":
            twin.render_mode = None
        return twin
    inner = _copy(env.env, memo)
    if type(env).__name__ in RECORDERS:
        memo[id(env)] = inner
        return inner
    return copy.deepcopy(env, memo)
