"""Goal tasks: what is paid for having achieved one goal where another one was desired."""

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from rewardshift.envs.tasks import GOAL_KEYS, MakeEnv, TaskSpec, env_maker, flatten, task_spec
from rewardshift.errors import InputError, one_line

# From goals that were achieved, `[transition, number]`, and those desired, to rewards.
GoalReward = Callable[[np.ndarray, np.ndarray], np.ndarray]

# How many steps of a task are compared with its `compute_reward` beforehand.
LOOKED_AT = 50


class GoalTask(NamedTuple):
    """What relabelling needs of a task.

    `seen` are the lowest and the highest reward among some of random steps and those of achieving
    exactly the desired goal. `longest` is how many steps an episode may have, None if nobody says.
    """

    reward: GoalReward
    seen: tuple[float, float]
    longest: int | None


def goal_task(env: str | MakeEnv) -> GoalTask:
    """A goal task, whose rewards are its own `compute_reward`, for many transitions at once.

    Refuses a task that has none, or one that does not take batches or is not what steps pay.

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
    compute = _compute_reward(task)
    space = task.observation_space["desired_goal"]  # type: ignore[index]
    dtype = np.float32 if space.dtype.kind == "f" else space.dtype

    def reward(achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
        shape = (len(achieved), *space.shape)
        goals = (part.reshape(shape).astype(dtype) for part in (achieved, desired))
        return np.asarray(compute(*goals, {}), np.float32)

    seen = _check(task, spec, reward)
    return GoalTask(reward, (float(seen.min()), float(seen.max())), _longest(task))


def _compute_reward(task: gym.Env[Any, Any]) -> Callable[..., Any]:
    """The task's `compute_reward`; refused where a wrapper changes what steps pay, and not it."""
    if not task.has_wrapper_attr("compute_reward"):
        raise InputError(f"hindsight needs an environment with compute_reward; {task} has none")
    layer = task
    while isinstance(layer, gym.Wrapper) and "compute_reward" not in dir(type(layer)):
        if isinstance(layer, gym.RewardWrapper):
            raise InputError(
                f"{type(layer).__name__} changes the rewards of steps and not compute_reward:"
                " relabelled transitions would disagree with real ones. To shift, use ShiftReward"
            )
        layer = layer.env
    return layer.get_wrapper_attr("compute_reward")


def _longest(task: gym.Env[Any, Any]) -> int | None:
    limits = [task.spec.max_episode_steps] if task.spec is not None else []
    layer = task
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, gym.wrappers.TimeLimit):
            limits.append(layer._max_episode_steps)
        layer = layer.env
    return min((limit for limit in limits if limit is not None), default=None)


def _check(task: gym.Env[Any, Any], spec: TaskSpec, reward: GoalReward) -> np.ndarray:
    """Compares random steps with what `compute_reward` says of them, all at once.

    Returns:
        Their rewards, and those of achieving what was desired.
    """
    task.action_space.seed(0)
    task.reset(seed=0)
    steps, paid = [], []
    for _ in range(LOOKED_AT):
        raw, one, terminated, truncated, _ = task.step(task.action_space.sample())
        steps.append(flatten(raw, spec))
        paid.append(float(one))
        if terminated or truncated:
            task.reset()
    flat = np.stack(steps)
    desired = spec.desired(flat)
    try:
        computed, perfect = reward(spec.achieved(flat), desired), reward(desired, desired)
    except Exception as error:
        raise InputError(
            f"compute_reward of {task} must take goals in batches, `[transition, ...]`, and an"
            f" empty info; it raised {type(error).__name__}: {one_line(error)}"
        ) from error
    if computed.shape != (LOOKED_AT,):
        raise InputError(
            f"compute_reward of {task} must give a reward for each of a batch of goals; for"
            f" {LOOKED_AT} it gave the shape {computed.shape}"
        )
    wrong = np.flatnonzero(~np.isclose(computed, paid, rtol=1e-4, atol=1e-4))
    if wrong.size:
        raise InputError(
            f"compute_reward of {task} says {computed[wrong[0]]:g} where a step paid"
            f" {paid[wrong[0]]:g}: relabelled transitions would disagree with real ones"
        )
    return np.concatenate([computed, perfect]) + 0.0  # no -0
