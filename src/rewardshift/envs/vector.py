"""Environments of one task side by side, one row for each seed."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from rewardshift.envs.tasks import MakeEnv, TaskSpec, env_maker, flatten, probe_spec
from rewardshift.errors import blaming, shown


class Steps(NamedTuple):
    """One step of every row.

    `next_observation` is the result of the action. `observation` is the one to act on next: the
    same, or the first of a new episode if the row has ended. `success` is whether the
    environment reports in its info, as `is_success` or `success`, that its goal is reached; NaN
    if it reports neither.
    """

    next_observation: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    observation: np.ndarray
    success: np.ndarray


class Environments:
    """Environments side by side, with flat observations.

    Every row has its own seed, so it does not depend on the other rows. A row whose episode ends
    is reset within the same step, so every step of every row is a transition.

    Args:
        env: A registered name, or a function that makes the environment.
        rows: The number of environments.
        spec: The task, if it is known already; by default the environment is probed.
    """

    def __init__(self, env: str | MakeEnv, rows: int, spec: TaskSpec | None = None) -> None:
        self.spec = probe_spec(env) if spec is None else spec
        make = env_maker(env)
        self._envs = [make() for _ in range(rows)]

    def restart(self, seeds: Sequence[int]) -> np.ndarray:
        """Starts a new episode in every row, from that row's seed."""
        pairs = zip(self._envs, seeds, strict=True)
        return np.stack([self._first(env, seed) for env, seed in pairs])

    def _first(self, env: gym.Env[Any, Any], seed: int | None = None) -> np.ndarray:
        """The first observation of a new episode."""
        returned = env.reset(seed=seed)
        if not (isinstance(returned, tuple) and len(returned) == 2):
            raise TypeError(f"reset must return an observation and an info, got {shown(returned)}")
        return flatten(returned[0], self.spec)

    def step(self, actions: np.ndarray) -> Steps:
        """Takes one action in every row."""
        rows = len(self._envs)
        following = np.empty((rows, self.spec.features), self.spec.dtype)
        reward = np.empty(rows, np.float32)
        terminated, truncated = np.empty(rows, bool), np.empty(rows, bool)
        success = np.full(rows, np.nan)
        restarted = {}
        chosen = actions if self.spec.action_size else actions.tolist()
        for row, (env, action) in enumerate(zip(self._envs, chosen, strict=True)):
            raw, paid, ended, cut, info = env.step(action)
            _check_types(paid, ended, cut)
            reward[row], terminated[row], truncated[row] = paid, ended, cut
            following[row] = flatten(raw, self.spec)
            success[row] = info.get("is_success", info.get("success", np.nan))
            if terminated[row] or truncated[row]:
                restarted[row] = self._first(env)
        observation = following
        if restarted:
            observation = following.copy()
            observation[list(restarted)] = list(restarted.values())
        return Steps(following, reward, terminated, truncated, observation, success)

    def close(self) -> None:
        """Closes the environments."""
        for env in self._envs:
            with blaming(f"the environment {env}, when closed,"):
                env.close()


def _check_types(reward: Any, *flags: Any) -> None:
    """Raises TypeError for what NumPy would convert to a number or a flag, such as a text."""
    is_number = isinstance(reward, float | int | np.number)
    if not is_number and np.asarray(reward).dtype.kind not in "fiub":
        raise TypeError(f"a reward must be a number, got {shown(reward)}")
    for flag in flags:
        if not (isinstance(flag, bool | np.bool_) or _is_flag(np.asarray(flag))):
            raise TypeError(f"terminated and truncated must be True or False, got {shown(flag)}")


def _is_flag(value: np.ndarray) -> bool:
    """Whether an array is one truth value, or one number that stands for it."""
    return value.size == 1 and value.dtype.kind in "biu" and value.item() in (0, 1)
