"""What a task is for an agent: flat observations, actions in [-1, 1] or numbered."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeGuard

import gymnasium as gym
import numpy as np

from rewardshift.envs import minigrid  # noqa: F401  registers the small FourRooms
from rewardshift.errors import InputError

MakeEnv = Callable[[], gym.Env[Any, Any]]


class TaskSpec(NamedTuple):
    """What an agent has to know of a task.

    `features` and `dtype` are of the flat observations. A task has either `num_actions`
    discrete actions or continuous ones of `action_size` numbers, always in [-1, 1]; the other
    is 0.
    """

    features: int
    dtype: str
    num_actions: int = 0
    action_size: int = 0


class UnitBox(gym.wrappers.RescaleAction[Any, Any, Any]):
    """Our own rescaling of actions to [-1, 1], told from one that an environment brings along."""


def env_maker(env: str | MakeEnv, **options: Any) -> MakeEnv:
    """A function that makes the environment, with continuous actions in [-1, 1].

    Args:
        env: A registered name, or a function that makes the environment.
        options: For `gymnasium.make`, where there is a name.
    """
    if not isinstance(env, str):
        return lambda: _in_unit_box(env())
    try:
        gym.spec(env)
    except (gym.error.Error, ImportError) as error:
        raise InputError(f"no environment {env!r}: {error}") from error
    return lambda: _in_unit_box(gym.make(env, **options))


def to_unit_box(env: str | MakeEnv, actions: np.ndarray) -> np.ndarray:
    """Continuous actions on the environment's own scale, brought to [-1, 1]."""
    probe = env_maker(env)()
    probe.close()
    if not isinstance(probe, UnitBox):
        return actions
    own = probe.env.action_space
    assert isinstance(own, gym.spaces.Box)
    return (2 * (actions - own.low) / (own.high - own.low) - 1).astype(actions.dtype)


def _in_unit_box(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    space = env.action_space
    if not _is_continuous(space):
        return env
    if (space.low == -1).all() and (space.high == 1).all():
        return env
    return UnitBox(env, np.float32(-1), np.float32(1))


def _is_continuous(space: gym.Space[Any]) -> TypeGuard[gym.spaces.Box]:
    """Whether it is a box of floating point numbers with finite bounds."""
    return isinstance(space, gym.spaces.Box) and space.dtype.kind == "f" and space.is_bounded()


def flatten(observation: Any, spec: TaskSpec) -> np.ndarray:
    """One environment's observation as the agents take it."""
    image = observation["image"] if isinstance(observation, dict) else observation
    return np.asarray(image, spec.dtype).reshape(-1)


def probe_spec(env: str | MakeEnv) -> TaskSpec:
    """The spec of a task that is not running yet."""
    make = env_maker(env)
    try:
        probe = make()
    except (gym.error.Error, ImportError) as error:
        raise InputError(f"the environment {env!r} cannot be made: {error}") from error
    spec = task_spec(probe)
    probe.close()
    return spec


def task_spec(env: gym.Env[Any, Any]) -> TaskSpec:
    """The task's spec; refuses what no agent here can take."""
    observations = env.observation_space
    if isinstance(observations, gym.spaces.Dict):  # MiniGrid: the image is what is seen
        observations = observations.spaces.get("image", observations)
    if not isinstance(observations, gym.spaces.Box):
        raise InputError(
            f"observations must be a Box, or a Dict with an image; {env} has {observations}"
        )
    dtype = "uint8" if observations.dtype == np.uint8 else "float32"
    features = int(np.prod(observations.shape))
    match env.action_space:
        case gym.spaces.Discrete(start=0, n=n):
            return TaskSpec(features, dtype, num_actions=int(n))
        case gym.spaces.Box(shape=(size,)) as box if _is_continuous(box):
            return TaskSpec(features, dtype, action_size=size)
    raise InputError(
        "actions must be Discrete from 0 on, or a Box of floating point numbers with finite"
        f" bounds and one axis; {env} has {env.action_space}"
    )
