"""Agents of Stable-Baselines3 and sb3-contrib, healthy and ill, for `benchmarks/doctor.py`.

The healthy ones have the settings that RL Baselines3 Zoo published (commit 22e3ff2). Each agent is
kept half-way and at the end, in `out/bench/models`, so that a diagnosis can be made again.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import sb3_contrib
import stable_baselines3
import torch
from patients import CASES as OWN
from patients import Case, Examine, Look, Seeds, cut, endless
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import VecNormalize

from rewardshift import Shift
from rewardshift.doctor import Earlier
from rewardshift.doctor.rules import Illness
from rewardshift.integrations.sb3 import VecShiftReward
from rewardshift.integrations.sb3_doctor import agent_view, doctor

MODELS = Path(__file__).parents[1] / "out" / "bench" / "models"

MakeEnv = Callable[[], gym.Env[Any, Any]]


class DeafDQN(stable_baselines3.DQN):
    """A DQN that bootstraps through the ends of episodes."""

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Updates with a replay in which nothing is terminal."""
        replay: Any = self.replay_buffer
        dones, replay.dones = replay.dones, 0 * replay.dones
        super().train(gradient_steps, batch_size)
        replay.dones = dones


class Fixed(stable_baselines3.TD3):
    """A TD3 that learns from its first transitions alone, as from a data set."""

    def _store_transition(self, replay_buffer: Any, *args: Any, **kwargs: Any) -> None:
        if replay_buffer.size() < self.learning_starts:
            super()._store_transition(replay_buffer, *args, **kwargs)


class Bonus(gym.Wrapper[Any, Any, Any, Any]):
    """Pays for observations that a small network has not learned to predict yet: curiosity."""

    def __init__(self, env: gym.Env[Any, Any], size: float = 1.0) -> None:
        super().__init__(env)
        rng = np.random.default_rng(0)
        shape = (int(np.prod(env.observation_space.shape)), 16)  # type: ignore[arg-type]
        self._goal, self._known = rng.normal(size=shape), np.zeros(shape)
        self._size = size

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """A step with a bonus for what is new."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        seen = np.reshape(observation, -1)
        miss = np.tanh(seen @ self._goal) - seen @ self._known
        self._known += 0.01 * np.outer(seen, miss) / (1 + seen @ seen)
        bonus = self._size * float(np.square(miss).mean())
        return observation, float(reward) + bonus, terminated, truncated, info


class Corridor(gym.Env[np.ndarray, Any]):
    """A corridor whose far end pays 1, with a step to the left or to the right."""

    def __init__(self, length: int = 50) -> None:
        self.length = length
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (length,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, Any]:
        """Back to the near end."""
        super().reset(seed=seed)
        self.at = 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """A step."""
        self.at = max(0, self.at + (1 if action == 1 else -1))
        done = self.at == self.length
        return self._seen(), float(done), done, False, {}

    def _seen(self) -> np.ndarray:
        return np.eye(self.length, dtype=np.float32)[min(self.at, self.length - 1)]


def far(length: int = 50) -> gym.Env[Any, Any]:
    """A corridor with a limit of 1,000 steps."""
    return gym.wrappers.TimeLimit(Corridor(length), 1_000)


def plain(name: str) -> gym.Env[Any, Any]:
    """An environment by its name; a MiniGrid as one flat array."""
    if not name.startswith("MiniGrid"):
        return gym.make(name)
    import minigrid  # noqa: F401, PLC0415  registers its environments

    inside = gym.wrappers.FilterObservation(gym.make(name), ["image"])
    return gym.wrappers.FlattenObservation(inside)


def curious(name: str, size: float = 1.0) -> gym.Env[Any, Any]:
    """An environment with a bonus for what is new."""
    return Bonus(gym.make(name), size)


def large(name: str) -> gym.Env[Any, Any]:
    """An environment whose rewards are a thousand times as large."""
    return gym.wrappers.TransformReward(gym.make(name), lambda reward: 1_000.0 * float(reward))


@dataclass(frozen=True)
class Training:
    """A training of a model.

    Args:
        algorithm: The class of the model.
        env: A function that makes the environment that it learns in.
        steps: Environment steps.
        settings: Other arguments of the model.
        real: A function that makes the doctor's environment, if it is another one.
        shift: A shift around the environments.
        normalised: Whether a `VecNormalize` is outside of it.
        noise: The standard deviation of the exploration noise.
    """

    algorithm: Any
    env: MakeEnv
    steps: int
    settings: dict[str, Any] = field(default_factory=dict)
    real: MakeEnv | None = None
    shift: Shift | None = None
    normalised: bool = False
    noise: float = 0.0

    def venv(self, seed: int) -> Any:
        """The environments that it learns in."""
        venv: Any = make_vec_env(self.env, seed=seed)
        if self.shift is not None:
            venv = VecShiftReward(venv, self.shift)
        return VecNormalize(venv) if self.normalised else venv

    def model(self, seed: int) -> Any:
        """The model before its training."""
        more = copy.deepcopy(self.settings)  # a model adds to its policy_kwargs
        if self.noise:
            more["action_noise"] = NormalActionNoise(np.zeros(1), self.noise * np.ones(1))
        return self.algorithm("MlpPolicy", self.venv(seed), seed=seed, device="cpu", **more)


class Snapshots(BaseCallback):
    """Keeps the model and its replay half-way and at the end."""

    def __init__(self, steps: int, place: Path) -> None:
        super().__init__()
        self._steps, self._place = steps, place

    def _on_step(self) -> bool:
        if self.num_timesteps == self._steps // 2:
            save(self.model, self._place, "half")
        return True


def save(model: Any, place: Path, moment: str) -> None:
    """Keeps a model and its replay, and the normaliser of its rewards."""
    place.mkdir(parents=True, exist_ok=True)
    if model.get_vec_normalize_env() is not None:
        model.get_vec_normalize_env().save(place / f"{moment}.normaliser")
    model.save_replay_buffer(place / f"{moment}.replay")
    model.save(place / f"{moment}.zip")  # last: a model is whole if it is there


def load(training: Training, seed: int, place: Path, moment: str) -> Any:
    """A model that was kept."""
    venv = training.venv(seed)
    if training.normalised:
        venv = VecNormalize.load(str(place / f"{moment}.normaliser"), venv.venv)
    model = training.algorithm.load(place / f"{moment}.zip", venv, device="cpu")
    model.load_replay_buffer(place / f"{moment}.replay")
    return model


def trained(name: str, training: Training) -> Examine:
    """A function of seeds that trains a model for each and examines it twice."""

    def examine(seeds: Seeds) -> Iterator[Look]:
        torch.set_num_threads(1)
        for seed in seeds:
            place = MODELS / f"{name}-{seed}"
            if not (place / "end.zip").exists():
                model = training.model(seed)
                model.learn(training.steps, callback=Snapshots(training.steps, place))
                save(model, place, "end")
            half, end = (load(training, seed, place, moment) for moment in ("half", "end"))
            since = end._n_updates - half._n_updates
            earlier = Earlier(agent_view(half).value, since) if since else None
            before = look(training, half, None)
            yield look(training, end, earlier)._replace(half=before)

    return examine


def look(training: Training, model: Any, earlier: Earlier | None) -> Look:
    """A diagnosis, and the return of five episodes."""
    env = (training.real or training.env)()
    found = doctor(model, env, earlier=earlier, episodes=3)
    reached, _ = evaluate_policy(model, make_vec_env(training.real or training.env), 5)
    return Look(found, float(np.mean(reached)))


# The settings of RL Baselines3 Zoo; replays are only as large as a training fills them.
SHARED: dict[str, dict[str, Any]] = {
    "CartPole-v1": {
        "learning_rate": 2.3e-3,
        "batch_size": 64,
        "buffer_size": 50_000,
        "learning_starts": 1_000,
        "gamma": 0.99,
        "target_update_interval": 10,
        "train_freq": 256,
        "gradient_steps": 128,
        "exploration_fraction": 0.16,
        "exploration_final_eps": 0.04,
    },
    "MountainCar-v0": {
        "learning_rate": 4e-3,
        "batch_size": 128,
        "buffer_size": 10_000,
        "learning_starts": 1_000,
        "gamma": 0.98,
        "target_update_interval": 600,
        "train_freq": 16,
        "gradient_steps": 8,
        "exploration_fraction": 0.2,
        "exploration_final_eps": 0.07,
    },
    "Acrobot-v1": {
        "learning_rate": 6.3e-4,
        "batch_size": 128,
        "buffer_size": 50_000,
        "learning_starts": 0,
        "gamma": 0.99,
        "target_update_interval": 250,
        "train_freq": 4,
        "gradient_steps": -1,
        "exploration_fraction": 0.12,
        "exploration_final_eps": 0.1,
    },
}
STEPS = {"CartPole-v1": 50_000, "MountainCar-v0": 120_000, "Acrobot-v1": 100_000}
QUANTILES = {"CartPole-v1": 10, "MountainCar-v0": 25, "Acrobot-v1": 25}
FILLED: dict[str, Any] = {"buffer_size": 20_000}
PENDULUM_TD3: dict[str, Any] = {
    "gamma": 0.98,
    "learning_starts": 10_000,
    "learning_rate": 1e-3,
    "policy_kwargs": {"net_arch": [400, 300]},
    **FILLED,
}
PENDULUM_SAC: dict[str, Any] = {"learning_rate": 1e-3, **FILLED}


def zoo(algorithm: Any, env: str) -> Training:
    """A training of DQN or QR-DQN with the settings of the Zoo."""
    layers: dict[str, Any] = {"net_arch": [256, 256]}
    if algorithm is sb3_contrib.QRDQN:
        layers["n_quantiles"] = QUANTILES[env]
    settings = {**SHARED[env], "policy_kwargs": layers}
    return Training(algorithm, partial(plain, env), STEPS[env], settings)


# Ill agents, as small and as short as they can be.
SMALL: dict[str, Any] = {"buffer_size": 20_000, "policy_kwargs": {"net_arch": [64, 64]}}
QUICK: dict[str, Any] = {
    **SMALL,
    "learning_rate": 1e-3,
    "learning_starts": 500,
    "train_freq": 1,
    "target_update_interval": 100,
    "exploration_fraction": 0.3,
}
CONTROL: dict[str, Any] = {**SMALL, "learning_rate": 1e-3, "learning_starts": 500, "gamma": 0.98}
NO_TARGET: dict[str, Any] = {**QUICK, "learning_rate": 2e-3, "target_update_interval": 1}
ENDLESS: dict[str, Any] = {"replay_buffer_kwargs": {"handle_timeout_termination": False}}
# Without a success in the data, there is no horizon to judge.
RANDOM: dict[str, Any] = {"exploration_final_eps": 1.0}
DEAF: dict[str, Any] = {**QUICK, "gamma": 0.9, "tau": 1.0}
LITTLE: dict[str, Any] = {**CONTROL, "tau": 0.05}

DQN, TD3, SAC = stable_baselines3.DQN, stable_baselines3.TD3, stable_baselines3.SAC
QRDQN, TQC = sb3_contrib.QRDQN, sb3_contrib.TQC


def task(name: str) -> MakeEnv:
    """A function that makes an environment."""
    return partial(plain, name)


class Patients(NamedTuple):
    """A row of the table: words, what should be named, and trainings here and elsewhere."""

    words: str
    illness: Illness | None
    here: Training
    elsewhere: Training


CART, ACROBOT, POLE = task("CartPole-v1"), task("Acrobot-v1"), task("InvertedPendulum-v5")
PENDULUM, MOUNTAIN = task("Pendulum-v1"), task("MountainCar-v0")
SAME = Shift(-0.5, gamma=0.99, terminal="absorbing")
SHIFTED = Shift(-0.5)
ZOO = {
    "zoo-dqn-cartpole": ("DQN, CartPole", zoo(DQN, "CartPole-v1")),
    "zoo-qrdqn-cartpole": ("QR-DQN, CartPole", zoo(QRDQN, "CartPole-v1")),
    "zoo-dqn-mountaincar": ("DQN, MountainCar", zoo(DQN, "MountainCar-v0")),
    "zoo-qrdqn-mountaincar": ("QR-DQN, MountainCar", zoo(QRDQN, "MountainCar-v0")),
    "zoo-dqn-acrobot": ("DQN, Acrobot", zoo(DQN, "Acrobot-v1")),
    "zoo-qrdqn-acrobot": ("QR-DQN, Acrobot", zoo(QRDQN, "Acrobot-v1")),
    "zoo-td3-pendulum": ("TD3, Pendulum", Training(TD3, PENDULUM, 20_000, PENDULUM_TD3, noise=0.1)),
    "zoo-sac-pendulum": ("SAC, Pendulum", Training(SAC, PENDULUM, 20_000, PENDULUM_SAC)),
    "zoo-tqc-pendulum": ("TQC, Pendulum", Training(TQC, PENDULUM, 20_000, PENDULUM_SAC)),
}
PATIENTS = {
    name: Patients(f"healthy, settings of the Zoo: {words}", None, training, training)
    for name, (words, training) in ZOO.items()
} | {
    "sb3-optimistic": Patients(
        "not ill, without success yet: DQN of Stable-Baselines3 at -0.5, FrozenLake",
        None,
        Training(DQN, task("FrozenLake-v1"), 6_000, QUICK, shift=SAME),
        Training(DQN, ACROBOT, 10_000, QUICK, shift=SAME),
    ),
    "sb3-no-target": Patients(
        "DQN of Stable-Baselines3 without a target network, CartPole",
        "overestimation",
        Training(DQN, CART, 4_000, NO_TARGET),
        Training(DQN, ACROBOT, 4_000, NO_TARGET),
    ),
    "sb3-little-data": Patients(
        "TD3 of Stable-Baselines3 on 500 random transitions, Pendulum",
        "overestimation",
        Training(Fixed, PENDULUM, 8_000, LITTLE),
        Training(Fixed, POLE, 8_000, LITTLE),
    ),
    "sb3-no-signal": Patients(
        "DQN of Stable-Baselines3 after 1,000 steps, MiniGrid KeyCorridorS6R3",
        "no signal",
        Training(DQN, task("MiniGrid-KeyCorridorS6R3-v0"), 1_000, QUICK),
        Training(DQN, task("FrozenLake8x8-v1"), 1_000, QUICK),
    ),
    "sb3-wrong-ends": Patients(
        "DQN of Stable-Baselines3 whose terminal flag is never set, CartPole",
        "ends",
        Training(DQN, partial(endless, "CartPole-v1"), 4_000, QUICK, real=CART),
        Training(DQN, partial(endless, "Acrobot-v1"), 10_000, QUICK, real=ACROBOT),
    ),
    "sb3-deaf": Patients(
        "DQN of Stable-Baselines3 that ignores terminal flags, CartPole",
        "ends",
        Training(DeafDQN, CART, 5_000, DEAF),
        Training(DeafDQN, ACROBOT, 8_000, DEAF),
    ),
    "sb3-limit": Patients(
        "TD3 of Stable-Baselines3 whose time limits are stored as terminal, Pendulum",
        "time limits",
        Training(TD3, PENDULUM, 3_000, {**CONTROL, **ENDLESS}),
        Training(DQN, MOUNTAIN, 4_000, {**QUICK, **ENDLESS}),
    ),
    "sb3-cut": Patients(
        "DQN of Stable-Baselines3 whose limit of 30 steps is stored as terminal, CartPole",
        "time limits",
        Training(DQN, partial(cut, "CartPole-v1"), 4_000, QUICK, real=CART),
        Training(TD3, partial(cut, "InvertedPendulum-v5"), 4_000, CONTROL, real=POLE),
    ),
    "sb3-normaliser": Patients(
        "DQN of Stable-Baselines3 with `VecNormalize` outside of the shift, CartPole",
        "normaliser",
        Training(DQN, CART, 1_000, QUICK, shift=SHIFTED, normalised=True),
        Training(TD3, PENDULUM, 1_000, CONTROL, shift=SHIFTED, normalised=True),
    ),
    "sb3-horizon": Patients(
        "DQN of Stable-Baselines3 with a discount of 0.5 and a goal 50 steps away",
        "horizon",
        Training(DQN, far, 20_000, {**QUICK, **RANDOM, "gamma": 0.5}),
        Training(DQN, ACROBOT, 8_000, {**QUICK, "gamma": 0.7}),
    ),
    "sb3-large": Patients(
        "SAC of Stable-Baselines3 with a thousand times the rewards, Pendulum",
        "large rewards",
        Training(SAC, partial(large, "Pendulum-v1"), 2_000, CONTROL),
        Training(SAC, partial(large, "InvertedPendulum-v5"), 2_000, CONTROL),
    ),
    "sb3-untrained": Patients(
        "TD3 of Stable-Baselines3 before its first update, Pendulum",
        "no update",
        Training(TD3, PENDULUM, 2_000, PENDULUM_TD3),
        Training(DQN, CART, 500, zoo(DQN, "CartPole-v1").settings),
    ),
    "sb3-bonus": Patients(
        "DQN of Stable-Baselines3 with a curiosity bonus in its rewards, CartPole",
        "other rewards",
        Training(DQN, partial(curious, "CartPole-v1"), 4_000, QUICK, real=CART),
        Training(DQN, partial(curious, "MountainCar-v0", 0.1), 4_000, QUICK, real=MOUNTAIN),
    ),
}
TRAININGS = {name: one.here for name, one in PATIENTS.items()}
TRAININGS |= {f"{name}-elsewhere": one.elsewhere for name, one in PATIENTS.items()}


def case(name: str, one: Patients) -> Case:
    """The case of a row."""
    here, other = (trained(key, TRAININGS[key]) for key in (name, f"{name}-elsewhere"))
    return Case(one.words, one.illness, here, other)


CASES = OWN | {name: case(name, one) for name, one in PATIENTS.items()}
