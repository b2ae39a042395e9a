"""Agents made ill on purpose and healthy ones, for `benchmarks/doctor.py`."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import jax.numpy as jnp
import numpy as np

from rewardshift import DQN, MLP, SAC, TD3, Dataset, load_dataset, train, train_offline
from rewardshift.doctor import Diagnosis
from rewardshift.doctor.rules import Illness
from rewardshift.training.budgets import OfflineBudget, OnlineBudget
from rewardshift.training.doctor import doctor

SMALL = MLP((64, 64))
STABLE = DQN(gamma=0.99, network=SMALL, tau=0.005, learning_rate=5e-4, double=True)
# Without three-step returns and bounded targets it overestimated on the seeds from 100 on.
SOLVER = DQN(
    gamma=0.98,
    network=SMALL,
    tau=0.01,
    learning_rate=5e-4,
    batch_size=128,
    double=True,
    n_step=3,
    reward_range=(0.0, 1.0),
)
DESCENT = replace(SOLVER, reward_range=(-1.0, 0.0))
HASTY = DQN(gamma=0.99, network=SMALL, tau=1.0, learning_rate=2e-3)
CONTROL: dict[str, Any] = {"network": SMALL, "learning_rate": 1e-3, "batch_size": 128}
WARM: dict[str, Any] = {**CONTROL, "gamma": 0.98, "warm_up": 1_000}
# Target networks that follow faster, so that a few thousand updates are several lifetimes.
LOOSE = TD3(**CONTROL, tau=0.05)
QUICK = replace(STABLE, tau=0.02)
# As in results/td3-check.
PAPER = TD3(learning_rate=1e-3, batch_size=100, warm_up=5_000)


class Deaf:
    """An agent that ignores terminal states."""

    def update(self, state: Any, batch: Any, key: Any, turn: int) -> Any:
        """See `Agent`."""
        endless = batch._replace(terminated=jnp.zeros_like(batch.terminated))
        return super().update(state, endless, key, turn)  # type: ignore[misc]


@dataclass(frozen=True, kw_only=True)
class DeafDQN(Deaf, DQN):
    """A DQN that bootstraps through the ends of episodes."""


@dataclass(frozen=True, kw_only=True)
class DeafTD3(Deaf, TD3):
    """A TD3 that bootstraps through the ends of episodes."""


# Without bounds its values after an end, which nothing trains, grow beyond every return.
BOUNDED_DEAF = DeafTD3(**WARM, tau=0.05, reward_range=(0.0, 1.0))


class Look(NamedTuple):
    """The diagnosis of an agent, its return if it was evaluated, and the look half-way."""

    found: Diagnosis
    reached: float | None = None
    half: "Look | None" = None


Seeds = tuple[int, ...]
Examine = Callable[[Seeds], Iterator[Look]]


@dataclass(frozen=True)
class Case:
    """Agents to examine.

    Args:
        words: The row of the table.
        illness: What the doctor should name; None if it should be silent.
        examine: Diagnoses for some seeds, on the reported task.
        elsewhere: The same on another task, for the thresholds.
    """

    words: str
    illness: Illness | None
    examine: Examine
    elsewhere: Examine


class Endless(gym.Wrapper[Any, Any, Any, Any]):
    """Tells the agent of every end as if it were a time limit."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """A step without a terminal state."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, False, terminated or truncated, info


class Final(gym.Wrapper[Any, Any, Any, Any]):
    """Tells the agent of every time limit as if it were a terminal state."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """A step without a time limit."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated or truncated, False, info


def endless(name: str) -> gym.Env[Any, Any]:
    """An environment without terminal states."""
    return Endless(gym.make(name))


def cut(name: str) -> gym.Env[Any, Any]:
    """An environment that says after 30 steps that it is over."""
    return Final(gym.make(name, max_episode_steps=30))


def online(agent: Any, env: Any, steps: int, real: str | None = None) -> Examine:
    """A function of seeds that trains them side by side and examines each."""

    def examine(seeds: Seeds) -> Iterator[Look]:
        budget = OnlineBudget(
            steps=steps,
            evaluate_every=steps,
            evaluation_episodes=5,
            checkpoint_every=min(steps // 2, 10_000),  # the doctor looks at two
        )
        with tempfile.TemporaryDirectory() as place:
            run = Path(place) / "run"
            result = train(agent, env, seeds=seeds, budget=budget, folder=run)
            reached = {row.seed: row.evaluation_return for row in result.rows}
            for seed in seeds:
                yield Look(doctor(run, seed, env=real or env, episodes=3), reached[seed])

    return examine


def one_by_one(examine: Examine) -> Examine:
    """The same for one seed after the other: long trainings that were stopped go on there."""

    def each(seeds: Seeds) -> Iterator[Look]:
        for seed in seeds:
            yield from examine((seed,))

    return each


def random_data(path: Path, env: str, transitions: int, seed: int) -> Dataset:
    """Transitions of random actions, in a file."""
    made, rng = gym.make(env), np.random.default_rng(seed)
    space = made.action_space
    assert isinstance(space, gym.spaces.Box)
    observation, _ = made.reset(seed=seed)
    rows = []
    for _ in range(transitions):
        action = rng.uniform(space.low, space.high).astype(np.float32)
        following, reward, terminated, truncated, _ = made.step(action)
        rows.append((observation, action, reward, following, terminated, truncated))
        observation = made.reset()[0] if terminated or truncated else following
    made.close()
    names = ("observations", "actions", "rewards", "next_observations", "terminals", "timeouts")
    columns = map(np.array, zip(*rows, strict=True))
    np.savez(path, allow_pickle=False, **dict(zip(names, columns, strict=True)))
    return load_dataset(str(path))


def offline(env: str, transitions: int, updates: int) -> Examine:
    """A function of seeds that trains TD3 on a little data."""

    def examine(seeds: Seeds) -> Iterator[Look]:
        budget = OfflineBudget(updates=updates, evaluate_every=updates, evaluation_episodes=3)
        for seed in seeds:
            with tempfile.TemporaryDirectory() as place:
                data = random_data(Path(place) / "little.npz", env, transitions, seed)
                run = Path(place) / "run"
                done = train_offline(LOOSE, data, env, seeds=(seed,), budget=budget, folder=run)
                yield Look(doctor(run, seed, episodes=3), done.rows[-1].evaluation_return)

    return examine


def normalised(algorithm: str, env: str, steps: int) -> Examine:
    """A function of seeds that trains a model whose normaliser is outside of the shift."""

    def examine(seeds: Seeds) -> Iterator[Look]:
        import stable_baselines3  # noqa: PLC0415  slow to import
        from stable_baselines3.common.env_util import make_vec_env  # noqa: PLC0415
        from stable_baselines3.common.vec_env import VecNormalize  # noqa: PLC0415

        from rewardshift.integrations import sb3_doctor  # noqa: PLC0415
        from rewardshift.integrations.sb3 import VecShiftReward  # noqa: PLC0415

        for seed in seeds:
            venv = VecNormalize(VecShiftReward(make_vec_env(env, seed=seed), -0.5))
            model = getattr(stable_baselines3, algorithm)("MlpPolicy", venv, seed=seed)
            yield Look(sb3_doctor.doctor(model.learn(steps), env, episodes=3))

    return examine


CASES: dict[str, Case] = {
    "no-target": Case(
        "DQN without a target network, CartPole",
        "overestimation",
        online(HASTY, "CartPole-v1", 4_000),
        online(HASTY, "Acrobot-v1", 4_000),
    ),
    "little-data": Case(
        "TD3 offline on 500 random transitions, Pendulum",
        "overestimation",
        offline("Pendulum-v1", 500, 8_000),
        offline("InvertedPendulum-v5", 500, 8_000),
    ),
    "no-reward": Case(
        "DQN after 1,000 steps, MiniGrid KeyCorridorS6R3",
        "no signal",
        online(STABLE, "MiniGrid-KeyCorridorS6R3-v0", 1_000),
        online(STABLE, "MiniGrid-MultiRoom-N6-v0", 1_000),
    ),
    "wrong-ends": Case(
        "DQN whose terminal flag is never set, CartPole",
        "ends",
        online(STABLE, partial(endless, "CartPole-v1"), 4_000, "CartPole-v1"),
        online(STABLE, partial(endless, "Acrobot-v1"), 10_000, "Acrobot-v1"),
    ),
    "deaf": Case(
        "DQN that ignores terminal flags, with bounded targets, CartPole",
        "ends",
        online(DeafDQN(**vars(SOLVER)), "CartPole-v1", 8_000),
        online(BOUNDED_DEAF, "InvertedPendulum-v5", 8_000),
    ),
    "deaf-long": Case(
        "DQN that ignores terminal flags, after 25,000 steps, CartPole",
        "ends",
        online(DeafDQN(**vars(SOLVER)), "CartPole-v1", 25_000),
        online(DeafDQN(**vars(DESCENT)), "Acrobot-v1", 15_000),
    ),
    "cut": Case(
        "DQN whose time limit of 30 steps is stored as terminal, CartPole",
        "time limits",
        online(QUICK, partial(cut, "CartPole-v1"), 10_000, "CartPole-v1"),
        online(
            TD3(**WARM, tau=0.05), partial(cut, "InvertedPendulum-v5"), 8_000, "InvertedPendulum-v5"
        ),
    ),
    "normaliser": Case(
        "DQN with `VecNormalize` outside of the shift, CartPole",
        "normaliser",
        normalised("DQN", "CartPole-v1", 1_000),
        normalised("TD3", "Pendulum-v1", 300),
    ),
    "early": Case(
        "still learning: DQN after 4,000 steps, CartPole",
        None,
        online(STABLE, "CartPole-v1", 4_000),
        online(STABLE, "Acrobot-v1", 4_000),
    ),
    "cartpole": Case(
        "healthy: DQN, CartPole",
        None,
        online(SOLVER, "CartPole-v1", 25_000),
        online(DESCENT, "Acrobot-v1", 15_000),
    ),
    "pendulum-td3": Case(
        "healthy: TD3, Pendulum",
        None,
        online(TD3(**WARM), "Pendulum-v1", 10_000),
        online(TD3(**WARM), "InvertedPendulum-v5", 10_000),
    ),
    "pendulum-sac": Case(
        "healthy: SAC, Pendulum",
        None,
        online(SAC(**WARM), "Pendulum-v1", 10_000),
        online(SAC(**WARM), "InvertedPendulum-v5", 10_000),
    ),
    "halfcheetah": Case(
        "healthy: TD3 after 100,000 steps, HalfCheetah",
        None,
        one_by_one(online(PAPER, "HalfCheetah-v5", 100_000)),
        one_by_one(online(PAPER, "InvertedDoublePendulum-v5", 15_000)),
    ),
}
