"""What the tests with Stable-Baselines3 share: two small tasks, and small models for them."""

from typing import Any

import gymnasium as gym
import sbx
from probes import Aim, Probe
from sb3_contrib import QRDQN
from stable_baselines3 import DQN
from stable_baselines3.common.env_util import make_vec_env

SMALL: dict[str, Any] = {
    "learning_starts": 20,
    "batch_size": 8,
    "buffer_size": 500,
    "seed": 0,
    "device": "cpu",
}
DISCRETE = (DQN, QRDQN, sbx.DQN)


def discrete() -> gym.Env[Any, Any]:
    return Probe(4, pays=(1.0, 1.0))


def continuous() -> gym.Env[Any, Any]:
    return Aim(4, goal=0.0)


def task(algorithm: Any) -> gym.Env[Any, Any]:
    return discrete() if algorithm in DISCRETE else continuous()


def made(algorithm: Any, env: Any = None, **more: Any) -> Any:
    given = env or make_vec_env(discrete if algorithm in DISCRETE else continuous)
    return algorithm("MlpPolicy", given, **{**SMALL, "policy_kwargs": {"net_arch": [8]}, **more})
