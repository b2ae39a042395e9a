"""Small data sets of known policies: controllers that solve a task, with random actions added."""

from collections.abc import Callable
from dataclasses import dataclass

import gymnasium as gym
import numpy as np

from rewardshift.data.dataset import Dataset

Controller = Callable[[np.ndarray], np.ndarray]


def _balance(observation: np.ndarray) -> np.ndarray:
    """CartPole: moves the cart to the side to which the pole falls."""
    _, speed, angle, turning = observation
    return np.asarray(int(angle + 0.25 * turning + 0.03 * speed > 0))


def _swing(observation: np.ndarray) -> np.ndarray:
    """MountainCar: pushes in the direction of the motion."""
    return np.asarray(2 if observation[1] >= 0 else 0)


def _raise(observation: np.ndarray) -> np.ndarray:
    """Pendulum: gains the energy of the upright position, then holds that position."""
    cosine, sine, turning = observation
    if cosine > 0.9:
        return np.array([-12.0 * sine - 3.0 * turning], np.float32).clip(-2, 2)
    missing = 15.0 * (1 - cosine) - turning**2 / 2
    return np.array([2.0 if missing * turning >= 0 else -2.0], np.float32)


CONTROLLERS: dict[str, Controller] = {
    "CartPole-v1": _balance,
    "MountainCar-v0": _swing,
    "Pendulum-v1": _raise,
}


@dataclass(frozen=True)
class Behaviour:
    """A controller that sometimes takes random actions.

    Args:
        env: The task, a key of `CONTROLLERS`.
        randomness: The share of random actions.
        seed: The seed of the data. None takes that of the training.
    """

    env: str
    randomness: float
    seed: int | None = None

    def __call__(self, transitions: int, seed: int) -> Dataset:
        """A data set of this many transitions."""
        seed = seed if self.seed is None else self.seed
        generator, controller = np.random.default_rng([seed, 17]), CONTROLLERS[self.env]
        env = gym.make(self.env)
        env.action_space.seed(int(generator.integers(2**31)))
        observation, _ = env.reset(seed=int(generator.integers(2**31)))
        steps = []
        for number in range(1, transitions + 1):
            random = generator.random() < self.randomness
            action = env.action_space.sample() if random else controller(observation)
            following, reward, terminated, truncated, _ = env.step(action)
            truncated = truncated or (number == transitions and not terminated)
            steps.append((observation, action, reward, following, terminated, truncated))
            observation = env.reset()[0] if terminated or truncated else following
        env.close()
        observations, actions, rewards, followings, ends, cuts = zip(*steps, strict=True)
        return Dataset(
            name=f"{self.env}-{self.randomness:g}-{seed}",
            observation=np.array(observations, np.float32),
            action=np.array(actions),
            reward=np.array(rewards, np.float32),
            next_observation=np.array(followings, np.float32),
            terminated=np.array(ends, bool),
            truncated=np.array(cuts, bool),
            env=self.env,
        )
