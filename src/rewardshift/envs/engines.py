"""One vector interface over two engines, with seeds as rows.

Every row is an environment with its own seed, so it does not depend on the other rows. A row
whose episode ends is reset within the same step, so every step of every row is a transition.
"""

import importlib.util
import warnings
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from rewardshift.checks import checked
from rewardshift.envs.tasks import (
    MakeEnv,
    TaskSpec,
    env_maker,
    flatten,
    probe_spec,
)
from rewardshift.errors import InputError
from rewardshift.extras import require

EngineName = Literal["auto", "gymnasium", "envpool"]

# Tasks that EnvPool has too. tests/test_engines.py steps both versions side by side; a task that
# differs must not be listed. In EnvPool 1.2.5 these differ: FourRooms ignores its size (always 19),
# and in MultiRoom some doors open onto a wall, so that nobody can reach the goal. The value says
# whether "auto" chooses EnvPool: waking its thread costs more than stepping one MountainCar, and as
# much as stepping ten.
ENVPOOL_TASKS = {
    "MountainCar-v0": False,
    "MiniGrid-Empty-Random-6x6-v0": True,
}


class Step(NamedTuple):
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


@runtime_checkable
class Engine(Protocol):
    """Environments side by side."""

    spec: TaskSpec

    def restart(self, seeds: Sequence[int]) -> np.ndarray:
        """Starts a new episode in every row, from that row's seed."""
        ...

    def step(self, actions: np.ndarray) -> Step:
        """Takes one action in every row."""
        ...

    def close(self) -> None:
        """Closes the environments."""
        ...


class GymnasiumEngine:
    """Any Gymnasium environment that has a `TaskSpec`.

    Args:
        make: A function that makes one environment.
        rows: The number of environments.
        spec: The task of these environments.
    """

    def __init__(self, make: MakeEnv, rows: int, spec: TaskSpec) -> None:
        self._envs = [make() for _ in range(rows)]
        self.spec = spec

    def restart(self, seeds: Sequence[int]) -> np.ndarray:
        """See `Engine`."""
        pairs = zip(self._envs, seeds, strict=True)
        return np.stack([flatten(env.reset(seed=seed)[0], self.spec) for env, seed in pairs])

    def step(self, actions: np.ndarray) -> Step:
        """See `Engine`."""
        rows = len(self._envs)
        following = np.empty((rows, self.spec.features), self.spec.dtype)
        reward = np.empty(rows, np.float32)
        terminated, truncated = np.empty(rows, bool), np.empty(rows, bool)
        success = np.full(rows, np.nan)
        restarted = {}
        chosen = actions if self.spec.action_size else actions.tolist()
        for row, (env, action) in enumerate(zip(self._envs, chosen, strict=True)):
            raw, reward[row], terminated[row], truncated[row], info = env.step(action)
            following[row] = flatten(raw, self.spec)
            success[row] = info.get("is_success", info.get("success", np.nan))
            if terminated[row] or truncated[row]:
                restarted[row] = flatten(env.reset()[0], self.spec)
        observation = following
        if restarted:
            observation = following.copy()
            observation[list(restarted)] = list(restarted.values())
        return Step(following, reward, terminated, truncated, observation, success)

    def close(self) -> None:
        """See `Engine`."""
        for env in self._envs:
            env.close()


class EnvPoolEngine:
    """The tasks of `ENVPOOL_TASKS`, stepped in C++.

    Args:
        env: The task's Gymnasium name.
        rows: The number of environments.
        spec: The task of Gymnasium's version.
    """

    def __init__(self, env: str, rows: int, spec: TaskSpec) -> None:
        self._env, self._rows, self.spec = env, rows, spec
        self._pool: Any = None  # made when the seeds are known

    def restart(self, seeds: Sequence[int]) -> np.ndarray:
        """See `Engine`. Makes a new pool, because EnvPool seeds only when it is made."""
        import envpool  # noqa: PLC0415  an extra

        with warnings.catch_warnings():  # about a Box with bounds in float64
            warnings.simplefilter("ignore")
            self._pool = envpool.make_gymnasium(
                self._env, num_envs=self._rows, seed=list(seeds), num_threads=1
            )
            return self._flat(self._pool.reset()[0])

    def step(self, actions: np.ndarray) -> Step:
        """See `Engine`."""
        observation, reward, terminated, truncated, _ = self._pool.step(actions.astype(np.int32))
        following = current = self._flat(observation)
        ended = np.flatnonzero(terminated | truncated)
        if ended.size:
            current = following.copy()
            current[ended] = self._flat(self._pool.reset(ended.astype(np.int32))[0])
        told = np.full(self._rows, np.nan)  # none of these tasks reports it
        return Step(following, reward.astype(np.float32), terminated, truncated, current, told)

    def _flat(self, observation: Any) -> np.ndarray:
        image = observation["image"] if isinstance(observation, dict) else observation
        return image.reshape(len(image), -1)

    def close(self) -> None:
        """See `Engine`."""
        if self._pool is not None:
            self._pool.close()


def make_engine(
    env: str | MakeEnv, rows: int, engine: EngineName = "auto", spec: TaskSpec | None = None
) -> Engine:
    """The engine with the environments of all rows.

    Args:
        env: A registered name, or a function that makes the environment.
        rows: The number of environments.
        engine: `"auto"` takes EnvPool if it is installed and has the same task and is faster.
            The choice never depends on the number of rows, because the engines' random streams
            differ.
        spec: The task, if it is known already; by default the environment is probed.
    """
    chosen = resolve_engine(env, engine)
    known = probe_spec(env) if spec is None else spec
    if chosen == "gymnasium":
        return GymnasiumEngine(env_maker(env), rows, known)
    return EnvPoolEngine(str(env), rows, known)


def resolve_engine(env: str | MakeEnv, engine: EngineName) -> Literal["gymnasium", "envpool"]:
    """The engine that `make_engine` uses."""
    checked("engine", EngineName, engine)
    possible = isinstance(env, str) and env in ENVPOOL_TASKS
    installed = importlib.util.find_spec("envpool") is not None
    if engine == "auto":
        return "envpool" if installed and possible and ENVPOOL_TASKS[str(env)] else "gymnasium"
    if engine == "envpool" and not possible:
        raise InputError(
            f"engine 'envpool' runs {', '.join(ENVPOOL_TASKS)}, not {env!r}; use 'gymnasium'"
        )
    if engine == "envpool":
        require("envpool", "envpool")
    return engine
