"""Goal tasks: the reward for an achieved and a desired goal; bit flipping, the smallest one."""

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from rewardshift.envs.observations import GOAL_KEYS
from rewardshift.envs.tasks import MakeEnv, env_maker, flatten, task_spec
from rewardshift.errors import InputError, one_line
from rewardshift.wrappers import layers

Observation = dict[str, np.ndarray]
# A function from achieved and desired goals, `[transition, number]`, to rewards.
GoalReward = Callable[[np.ndarray, np.ndarray], np.ndarray]

# The number of steps of a task that are compared with its `compute_reward` beforehand.
LOOKED_AT = 50


class GoalTask(NamedTuple):
    """The facts about a goal task that are known before training.

    `rewards` are the distinct rewards, sorted, of random steps and of achieving exactly the desired
    goal. `ends` is whether the latter is terminal, by the task's `compute_terminated`; None if the
    task does not tell.
    """

    rewards: list[float]
    ends: bool | None


def goal_reward(env: str | MakeEnv) -> GoalReward:
    """The `compute_reward` of a goal task, for many transitions at once.

    Args:
        env: A registered name, or a function that makes the environment.
    """
    return _reward_of(env_maker(env)())


def probe_goals(env: str | MakeEnv) -> GoalTask:
    """Examines a goal task.

    It refuses a task without `compute_reward`, or whose `compute_reward` does not take batches or
    disagrees with the rewards of steps.

    Args:
        env: A registered name, or a function that makes the environment.
    """
    task = env_maker(env)()
    try:
        return _look(task, _reward_of(task))
    finally:
        task.close()


def _reward_of(task: gym.Env[Any, Any]) -> GoalReward:
    spec = task_spec(task)
    if not spec.goal_size:
        raise InputError(
            f"hindsight needs observations that are a Dict of {', '.join(GOAL_KEYS)};"
            f" {task} has {task.observation_space}"
        )
    compute = _compute_reward(task)
    spaces: Any = task.observation_space

    def goals(flat: np.ndarray, name: str) -> np.ndarray:
        dtype = spaces[name].dtype
        shaped = flat.reshape(len(flat), *spaces[name].shape)
        return shaped.astype(np.float32 if dtype.kind == "f" else dtype)

    def reward(achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
        pair = goals(achieved, "achieved_goal"), goals(desired, "desired_goal")
        return np.asarray(compute(*pair, {}), np.float32)

    return reward


def _compute_reward(task: gym.Env[Any, Any]) -> Callable[..., Any]:
    """The task's `compute_reward`; refused if a wrapper changes only the rewards of steps."""
    compute = _method(task, "compute_reward")
    if compute is None:
        raise InputError(f"hindsight needs an environment with compute_reward; {task} has none")
    for layer in layers(task):
        if "compute_reward" in dir(type(layer)):
            break
        if isinstance(layer, gym.RewardWrapper):
            raise InputError(
                f"{type(layer).__name__} changes the rewards of steps and not compute_reward:"
                " relabelled transitions would disagree with real ones. To shift, give the agent"
                " a shift"
            )
    return compute


def _method(task: gym.Env[Any, Any], name: str) -> Callable[..., Any] | None:
    """The method of that name of the task or of a wrapped environment; None without one."""
    method = task.get_wrapper_attr(name) if task.has_wrapper_attr(name) else None
    return method if callable(method) else None


def _look(task: gym.Env[Any, Any], reward: GoalReward) -> GoalTask:
    """Compares the rewards of random steps with those of `compute_reward`, as a batch."""
    spec = task_spec(task)
    task.action_space.seed(0)
    task.reset(seed=0)
    steps, paid = [], []
    for _ in range(LOOKED_AT):
        raw, one, terminated, truncated, _ = task.step(task.action_space.sample())
        steps.append(raw)
        paid.append(float(one))
        if terminated or truncated:
            task.reset()
    flat = np.stack([flatten(raw, spec) for raw in steps])
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
            f" {paid[wrong[0]]:g}: relabelled transitions would disagree with real ones. Goals are"
            " rounded to float32 here, so none may lie right on a threshold"
        )
    rewards = np.unique(np.concatenate([computed, perfect]) + 0.0)  # no -0
    ends, goal = _method(task, "compute_terminated"), steps[-1]["desired_goal"]
    return GoalTask(rewards.tolist(), None if ends is None else bool(ends(goal, goal, {})))


class BitFlip(gym.Env[Observation, np.integer]):
    """A row of bits, of which an action flips one; -1 for every step that misses the goal.

    There are 2^n goals, so a random walk of n steps hardly ever finds the desired one. The goal is
    terminal. The registered task truncates an episode after 16 steps.

    Args:
        bits: The number of bits.
    """

    def __init__(self, bits: int = 16) -> None:
        if bits < 1:
            raise InputError(f"bits must be 1 or more, got {bits}")
        self.bits = bits
        space = gym.spaces.MultiBinary(bits)
        self.observation_space = gym.spaces.Dict(dict.fromkeys(GOAL_KEYS, space))  # type: ignore[assignment]
        self.action_space = gym.spaces.Discrete(bits)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Draws random bits and a random goal."""
        super().reset(seed=seed)
        self._state, self._goal = self.np_random.integers(2, size=(2, self.bits), dtype=np.int8)
        return self._observe(), {}

    def step(
        self, action: np.integer | int
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Flips a bit."""
        self._state[action] ^= 1
        reward = float(self.compute_reward(self._state, self._goal, {}))
        reached = reward == 0
        return self._observe(), reward, reached, False, {"is_success": reached}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """0 if all bits are as desired, else -1; for one pair of goals or for many."""
        differ = np.asarray(achieved_goal) != np.asarray(desired_goal)
        return -differ.any(axis=-1).astype(np.float32)

    def compute_terminated(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Whether all bits are as desired; for one pair of goals or for many."""
        return self.compute_reward(achieved_goal, desired_goal, info) == 0

    def _observe(self) -> Observation:
        parts = (self._state, self._state, self._goal)
        return {name: part.copy() for name, part in zip(GOAL_KEYS, parts, strict=True)}
