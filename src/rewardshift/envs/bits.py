"""Bit flipping: the smallest task that needs hindsight."""

from typing import Any

import gymnasium as gym
import numpy as np

from rewardshift.envs.observations import GOAL_KEYS
from rewardshift.errors import InputError

Observation = dict[str, np.ndarray]


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
