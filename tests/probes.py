"""Environments so small that their values are known."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium as gym
import jax.numpy as jnp
import numpy as np

from rewardshift import Shift
from rewardshift.agents.base import Batch


def stop_at(step: int) -> Callable[[int, Any], None]:
    """An `on_progress` that stops the training at a step, as Ctrl-C would."""

    def stop(now: int, _: Any) -> None:
        if now == step:
            raise KeyboardInterrupt

    return stop


class Probe(gym.Env[np.ndarray, Any]):
    """A corridor of `length` states; the last step pays 1 and ends the episode.

    Args:
        length: How many steps an episode has.
        terminates: Whether the end is a termination or a truncation.
        pays: By action: what the last step pays.
    """

    def __init__(
        self, length: int = 1, *, terminates: bool = True, pays: tuple[float, ...] = (1.0,)
    ) -> None:
        self.observation_space = gym.spaces.Box(0, 1, (length,), np.float32)
        self.action_space = gym.spaces.Discrete(len(pays))
        self.length, self.terminates, self.pays = length, terminates, pays

    def _observation(self) -> np.ndarray:
        return np.eye(self.length, dtype=np.float32)[self.position]

    def reset(self, **kwargs: Any) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(**kwargs)
        self.position = 0
        return self._observation(), {}

    def _pay(self, action: Any) -> float:
        return self.pays[action]

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        last = self.position == self.length - 1
        reward = self._pay(action) if last else 0.0
        if not last:
            self.position += 1
        ended = last and self.terminates
        return self._observation(), reward, ended, last and not self.terminates, {}


class Aim(Probe):
    """The corridor with continuous actions: the last step pays `1 - (action - goal)^2`.

    Args:
        goal: The best action, or None: then the last step pays 1 whatever is done.
        low, high: Bounds of the action.
        others: Of `Probe`.
    """

    def __init__(
        self, *others: Any, goal: float | None = None, low: float = -1, high: float = 3, **more: Any
    ) -> None:
        super().__init__(*others, **more)
        self.action_space = gym.spaces.Box(low, high, (1,), np.float32)
        self.goal = goal

    def _pay(self, action: Any) -> float:
        return 1.0 if self.goal is None else 1.0 - float(action[0] - self.goal) ** 2


def delayed_value(shift: Shift, steps: int, entropy_bonus: float = 0.0) -> float:
    """The value, on the shifted scale, so many steps before the last one of a `Probe`.

    Args:
        shift: The scale, with the discount.
        steps: Steps before the last one.
        entropy_bonus: What a soft agent adds for the entropy of its action in every state.
    """
    value = shift.reward(1.0, True)
    for _ in range(steps):
        value = shift.reward(0.0) + shift.gamma * (value + entropy_bonus)
    return float(value)


def short_cartpole() -> gym.Env[Any, Any]:
    """Episodes that sometimes terminate and sometimes run into a time limit."""
    return gym.wrappers.TimeLimit(gym.make("CartPole-v1").unwrapped, 12)


def ending(agent: Any, terminal: Any) -> Any:
    """The agent with another treatment of terminal states."""
    members = tuple(replace(member, terminal=terminal) for member in agent.members)
    return replace(agent, shift=members)


class Rooms(gym.Env[Any, Any]):
    """Any observation of a space."""

    def __init__(self, space: gym.Space[Any]) -> None:
        self.observation_space = space
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        return self.observation_space.sample(), 1.0, False, True, {}


def random_batch(seed: int, size: int = 6, features: int = 3, actions: int = 0) -> Batch:
    """Random transitions, with actions of so many numbers, or else one of two discrete ones."""
    rng = np.random.default_rng(seed)
    return Batch(
        observation=jnp.asarray(rng.normal(size=(size, features)), jnp.float32),
        action=jnp.asarray(rng.uniform(-1, 1, size=(size, actions)), jnp.float32)
        if actions
        else jnp.asarray(rng.integers(2, size=size), jnp.int32),
        reward=jnp.asarray(rng.normal(size=size), jnp.float32),
        next_observation=jnp.asarray(rng.normal(size=(size, features)), jnp.float32),
        terminated=jnp.asarray(rng.random(size) < 0.5),
        steps=jnp.asarray(rng.integers(1, 4, size=size), jnp.int32),
        intrinsic=jnp.asarray(rng.random(size), jnp.float32),
    )
