"""Trials of somebody's own, for sweeps."""

import os
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import TimeLimit
from stable_baselines3 import DQN

from rewardshift import ShiftReward
from rewardshift.envs.goals import BitFlip
from rewardshift.integrations.sb3 import Trial

model = Trial(
    DQN, "MlpPolicy", steps=120, evaluations=2, learning_starts=20,
    buffer_size=200, policy_kwargs={"net_arch": [8]},
)  # fmt: skip


def right(observation: Any) -> int:
    return 1


def steady(env: gym.Env[Any, Any], seed: int) -> Iterator[tuple[int, Any]]:
    """Yields a policy, and then the reward that it saw."""
    assert isinstance(env, ShiftReward)
    env.reset(seed=seed)
    _, reward, *_ = env.step(1)
    yield 10, right
    yield 20, float(reward)


def by_hand(env: gym.Env[Any, Any], seed: int) -> Iterator[tuple[int, Any]]:
    """Stable-Baselines3 without `Trial`; it puts the environment into a vector."""
    made = DQN("MlpPolicy", env, seed=seed, buffer_size=200, policy_kwargs={"net_arch": [8]})
    for _ in range(2):
        made.learn(20, reset_num_timesteps=False)
        yield made.num_timesteps, made


def in_a_vector(env: gym.Env[Any, Any], seed: int) -> Iterator[tuple[int, Any]]:
    """As `steady`, in a vector of one environment, as scripts in the manner of CleanRL have it."""
    envs = gym.vector.SyncVectorEnv([lambda: env])
    envs.reset(seed=seed)
    _, rewards, *_ = envs.step(np.array([1]))
    yield 10, right
    yield 20, float(rewards[0])


def members(env: gym.Env[Any, Any], seed: int, shifts: Any = ()) -> Iterator[tuple[int, Any]]:
    """Yields the sum of the reward and of its own shifts."""
    env.reset(seed=seed)
    _, reward, *_ = env.step(1)
    yield 10, float(reward) + sum(shift.bias for shift in shifts)


def unlucky(env: Any, seed: int) -> Iterator[tuple[int, Any]]:
    """Fails with one constant and seed, and kills its process with another."""
    if seed == 1 and env.shift.bias == -1:
        raise ZeroDivisionError("of my own")
    if seed == 1 and env.shift.bias == 0:
        os._exit(3)
    yield from steady(env, seed)


def uneven(env: Any, seed: int) -> Iterator[tuple[int, Any]]:
    yield 10 + seed, 1.0


def backwards(env: Any, seed: int) -> Iterator[tuple[int, Any]]:
    yield 10, 1.0
    yield 5, 1.0


def empty(env: Any, seed: int) -> Iterator[tuple[int, Any]]:
    yield from ()


def wordy(env: Any, seed: int) -> Iterator[tuple[int, Any]]:
    yield 10, "a policy"


def undefined(env: Any, seed: int) -> Iterator[tuple[int, Any]]:
    yield 10, float("nan")


def without_seed(env: Any) -> None:
    """Takes no seed."""


def cart_pole() -> gym.Env[Any, Any]:
    return gym.make("CartPole-v1")


def bit_flip() -> gym.Env[Any, Any]:
    return TimeLimit(BitFlip(bits=3), 3)


def shifted() -> gym.Env[Any, Any]:
    return ShiftReward(gym.make("CartPole-v1"), -1.0)
