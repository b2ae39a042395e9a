"""What a shift costs on MountainCar, beside Gymnasium's own `TransformReward`.

Prints steps per second of processor time and, as the result, the ratio of the two. They take turns,
and turns at being first, so that whatever else the machine does falls on both. Stable-Baselines3
has no wrapper of rewards; there the peer is the shortest that one can write.
"""

import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import TransformReward
from gymnasium.wrappers.vector import TransformReward as VectorTransformReward
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from rewardshift import ShiftReward, VectorShiftReward
from rewardshift.integrations.sb3 import VecShiftReward

ROUNDS, STEPS, ROWS = 20, 10_000, 8


def single(wrap: Callable[[Any], Any]) -> float:
    """Steps per second of one environment."""
    env = wrap(gym.make("MountainCar-v0"))
    env.reset(seed=0)
    started = time.process_time()
    for _ in range(STEPS):
        *_, terminated, truncated, _ = env.step(1)
        if terminated or truncated:
            env.reset()
    return STEPS / (time.process_time() - started)


def vector(wrap: Callable[[Any], Any]) -> float:
    """Steps per second, of all rows together, of a vector of environments."""
    envs = wrap(gym.make_vec("MountainCar-v0", ROWS, vectorization_mode="sync"))
    envs.reset(seed=0)
    actions = np.ones(ROWS, int)
    started = time.process_time()
    for _ in range(STEPS // ROWS):
        envs.step(actions)
    return STEPS / (time.process_time() - started)


class PlainShift(VecEnvWrapper):
    """The shortest wrapper of Stable-Baselines3 that shifts a reward."""

    def reset(self) -> VecEnvObs:
        """Resets all environments."""
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        """Waits for the step and shifts its rewards."""
        observations, rewards, dones, infos = self.venv.step_wait()
        return observations, rewards - 0.5, dones, infos


def sb3(wrap: Callable[[Any], Any]) -> float:
    """Steps per second, of all rows together, of a `VecEnv`."""
    venv = wrap(make_vec_env("MountainCar-v0", ROWS, seed=0))
    venv.reset()
    actions = np.ones(ROWS, int)
    started = time.process_time()
    for _ in range(STEPS // ROWS):
        venv.step(actions)
    return STEPS / (time.process_time() - started)


def compare(name: str, measure: Any, ours: Callable[[Any], Any], peer: Any) -> None:
    """Prints both rates and their ratio, each the median of the rounds."""
    pairs = []
    for turn in range(ROUNDS):
        order = (ours, peer) if turn % 2 else (peer, ours)
        rates = {wrap: measure(wrap) for wrap in order}
        pairs.append((rates[ours], rates[peer]))
    mine, theirs = np.median(pairs, axis=0)
    ratio = np.median([one / other for one, other in pairs])
    print(f"{name:7} rewardshift {mine:9,.0f}/s  its peer {theirs:9,.0f}/s  x{ratio:.3f}")


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
    compare("SB3", sb3, lambda venv: VecShiftReward(venv, -0.5), PlainShift)
