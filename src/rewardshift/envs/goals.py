"""Goal tasks: what is paid for having achieved one goal where another one was desired."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from rewardshift.envs.tasks import GOAL_KEYS, MakeEnv, env_maker, flatten, task_spec
from rewardshift.errors import InputError

# From goals that were achieved, `[transition, number]`, and those desired, to rewards.
GoalReward = Callable[[np.ndarray, np.ndarray], np.ndarray]


def goal_reward(env: str | MakeEnv) -> GoalReward:
    """The reward function of a goal task: its own `compute_reward`, for many transitions at once.

    Refuses a task that has none, or one that does not take batches or is not what a step pays.

    Args:
        env: A registered name, or a function that makes the environment.
    """
    task = env_maker(env)()
    spec = task_spec(task)
    if not spec.goal_size:
        raise InputError(
            f"hindsight needs observations that are a Dict of {', '.join(GOAL_KEYS)};"
            f" {task} has {task.observation_space}"
        )
    if not task.has_wrapper_attr("compute_reward"):
        raise InputError(f"hindsight needs an environment with compute_reward; {task} has none")
    compute = task.get_wrapper_attr("compute_reward")
    shape = task.observation_space["desired_goal"].shape  # type: ignore[index]

    def reward(achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
        rows = len(achieved)
        goals = (achieved.reshape(rows, *shape), desired.reshape(rows, *shape))
        return np.asarray(compute(*goals, {}), np.float32)

    def of_step(raw: Any) -> np.ndarray:
        twice = np.stack([flatten(raw, spec)] * 2)
        return reward(spec.achieved(twice), spec.desired(twice))

    _check(task, of_step)
    return reward


def _check(task: gym.Env[Any, Any], rewards: Callable[[Any], np.ndarray]) -> None:
    """Takes a step, whose reward must be what `compute_reward` says of it, twice."""
    task.reset(seed=0)
    task.action_space.seed(0)
    raw, paid, *_ = task.step(task.action_space.sample())
    try:
        computed = rewards(raw)
    except Exception as error:
        raise InputError(
            f"compute_reward of {task} must take goals in batches, `[transition, ...]`, and an"
            f" empty info; it raised {type(error).__name__}: {error}"
        ) from error
    if computed.shape != (2,):
        raise InputError(
            f"compute_reward of {task} must give a reward for each of a batch of goals; for two it"
            f" gave the shape {computed.shape}"
        )
    if not np.allclose(computed, float(paid), rtol=1e-4, atol=1e-4):
        raise InputError(
            f"compute_reward of {task} says {computed[0]:g} where a step paid {float(paid):g}:"
            " relabelled transitions would disagree with real ones"
        )
