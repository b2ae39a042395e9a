"""What a shift costs on MountainCar, beside Gymnasium's own `TransformReward`.

Prints steps per second and, as the result, the ratio of the two. The rounds alternate, so
that whatever else the machine does falls on both.
"""

import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import TransformReward
from gymnasium.wrappers.vector import TransformReward as VectorTransformReward

from rewardshift import ShiftReward, VectorShiftReward

ROUNDS, STEPS, ROWS = 15, 20_000, 8


def single(wrap: Callable[[Any], Any]) -> float:
    """Steps per second of one environment."""
    env = wrap(gym.make("MountainCar-v0"))
    env.reset(seed=0)
    started = time.perf_counter()
    for _ in range(STEPS):
        *_, terminated, truncated, _ = env.step(1)
        if terminated or truncated:
            env.reset()
    return STEPS / (time.perf_counter() - started)


def vector(wrap: Callable[[Any], Any]) -> float:
    """Steps per second, of all rows together, of a vector of environments."""
    envs = wrap(gym.make_vec("MountainCar-v0", ROWS, vectorization_mode="sync"))
    envs.reset(seed=0)
    actions = np.ones(ROWS, int)
    started = time.perf_counter()
    for _ in range(STEPS // ROWS):
        envs.step(actions)
    return STEPS / (time.perf_counter() - started)


def compare(name: str, measure: Any, ours: Callable[[Any], Any], peer: Any) -> None:
    """Prints both rates and their ratio, each the median of the rounds."""
    rates = np.array([(measure(ours), measure(peer)) for _ in range(ROUNDS)])
    mine, theirs = np.median(rates, axis=0)
    ratio = np.median(rates[:, 0] / rates[:, 1])
    print(f"{name:7} rewardshift {mine:9,.0f}/s  TransformReward {theirs:9,.0f}/s  x{ratio:.2f}")


if __name__ == "__main__":
    compare(
        "single",
        single,
        lambda env: ShiftReward(env, -0.5),
        lambda env: TransformReward(env, lambda reward: float(reward) - 0.5),
    )
    compare(
        "vector",
        vector,
        lambda envs: VectorShiftReward(envs, -0.5),
        lambda envs: VectorTransformReward(envs, lambda rewards: rewards - 0.5),
    )
