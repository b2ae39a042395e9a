"""Robots and Pendulum with a reward for reaching a goal, and for nothing else."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control.pendulum import PendulumEnv
from gymnasium.utils import EzPickle


class SparseRunner(gym.Wrapper[Any, Any, Any, Any]):
    """+1 for every step with a forward speed above `speed`, else 0; a fall ends the episode.

    There is no control cost, and no reward for being upright. Random actions seldom reach the
    speed.

    Args:
        robot: One of Gymnasium's robots that report their speed, such as "Hopper".
        speed: The speed, in m/s, that a step must exceed.
        kwargs: Arguments of the robot.
    """

    def __init__(self, robot: str, speed: float = 1.0, **kwargs: Any) -> None:
        super().__init__(gym.make(f"{robot}-v5", **kwargs).unwrapped)
        self.speed = speed

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """See `gymnasium.Env.step`."""
        observation, _, terminated, truncated, info = super().step(action)
        return observation, float(info["x_velocity"] > self.speed), terminated, truncated, info


class SparsePendulum(PendulumEnv, EzPickle):
    """+1 for every step after which the pole is near upright and slow, else 0.

    There is no control cost, and nothing terminates. The pole starts at any angle, as in
    Gymnasium's Pendulum, and the torque is too weak to lift it in one swing. Random actions are
    seldom paid.

    Args:
        angle: The angle from upright, in radians, that the pole must be below.
        speed: The angular speed, in radians per second, that the pole must be below.
        kwargs: Arguments of Gymnasium's Pendulum.
    """

    def __init__(self, angle: float = 0.3, speed: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        EzPickle.__init__(self, angle, speed, **kwargs)
        self.angle, self.speed = angle, speed

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """See `gymnasium.Env.step`."""
        observation, _, terminated, truncated, info = super().step(action)  # type: ignore[no-untyped-call]
        theta, turning = self.state
        near = np.cos(theta) > np.cos(self.angle) and abs(turning) < self.speed
        return observation, float(near), terminated, truncated, info
