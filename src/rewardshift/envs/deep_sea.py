"""DeepSea, a task that only deep exploration solves (Osband and others, 2020)."""

from typing import Any

import gymnasium as gym
import numpy as np

from rewardshift.errors import InputError

COST = 0.01  # the sum over an episode of steps to the right
PRIZE = 1.0


class DeepSea(gym.Env[np.ndarray, np.int64]):
    """A square of `size` rows, down which a diver sinks by one row a step.

    One action steers to the left, the other to the right; which is which differs from state to
    state. Each step to the right costs `0.01 / size`. Only a dive that goes right at every step
    reaches the treasure, which pays 1; random actions find it once in `2 ** size` episodes. An
    episode always ends after `size` steps. The observation marks the place in the flattened square.

    The rules are those of bsuite's deterministic task of this name.

    Args:
        size: The number of rows and of columns, 2 or more.
        mapping: The seed that chooses which action steers to the right.
        render_mode: Only None: there is nothing to draw.
    """

    def __init__(self, size: int = 10, mapping: int = 0, render_mode: str | None = None) -> None:
        if size < 2:
            raise InputError(f"size must be 2 or more, got {size!r}")
        self.size, self.render_mode = size, render_mode
        self.right = np.random.default_rng(mapping).integers(2, size=(size, size))
        self.observation_space = gym.spaces.Box(0.0, 1.0, (size * size,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.row = self.column = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts a dive in the upper left corner."""
        super().reset(seed=seed)
        self.row = self.column = 0
        return self._observation(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Sinks by a row, to the left or to the right."""
        self.column, reward = self.move(self.row, self.column, int(action))
        self.row += 1
        return self._observation(), reward, self.row == self.size, False, {}

    def move(self, row: int, column: int, action: int) -> tuple[int, float]:
        """The next column and the reward of an action in a place."""
        if action != self.right[row, column]:
            return max(column - 1, 0), 0.0
        reward = PRIZE if column == self.size - 1 else 0.0
        return min(column + 1, self.size - 1), reward - COST / self.size

    def _observation(self) -> np.ndarray:
        """The flattened square with a 1 at the diver, or without after the last row."""
        square = np.zeros((self.size, self.size), np.float32)
        if self.row < self.size:
            square[self.row, self.column] = 1.0
        return square.ravel()
