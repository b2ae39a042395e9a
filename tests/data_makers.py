"""Data sets for tests: arbitrary ones and small ones, and files of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import h5py
import numpy as np
from hypothesis import strategies as st

from rewardshift.data import Dataset
from rewardshift.data.dataset import FIELDS
from rewardshift.data.writing import check_env, check_target, write_minari

Arrays = dict[str, np.ndarray]


def same(ours: Dataset, theirs: Dataset) -> None:
    for field in FIELDS:
        a, b = getattr(ours, field), getattr(theirs, field)
        assert (a.dtype, a.shape) == (b.dtype, b.shape), field
        assert a.tobytes() == b.tobytes(), field


def types(dataset: Dataset) -> list[str]:
    return [str(getattr(dataset, field).dtype) for field in list(FIELDS)[:3]]


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    """Several episodes, terminated, truncated or both; the last may be cut by the end."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    ends = draw(st.lists(st.integers(1, 3), min_size=len(lengths), max_size=len(lengths)))
    if draw(st.booleans()):
        ends[-1] = 0
    bytes_seen, discrete = draw(st.booleans()), draw(st.booleans())
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def numbers(*shape: int) -> np.ndarray:
        """Any finite float32 at all: also -0.0, subnormal and huge ones."""
        drawn = generator.integers(0, 2**32, shape, dtype=np.uint32).view(np.float32)
        return np.where(np.isfinite(drawn), drawn, np.float32(-0.0))

    width, count = draw(st.integers(1, 3)), sum(lengths)
    first, following = [], []
    for length in lengths:
        shape = (length + 1, width)
        seen = generator.integers(0, 256, shape, np.uint8) if bytes_seen else numbers(*shape)
        first.append(seen[:-1])
        following.append(seen[1:])
    flags = np.zeros((2, count), bool)
    flags[:, np.cumsum(lengths) - 1] = np.array([[end & 1, end & 2] for end in ends]).T
    return Dataset(
        name="random",
        observation=np.concatenate(first),
        action=generator.integers(0, 5, count, np.int32) if discrete else numbers(count, 2),
        reward=numbers(count),
        next_observation=np.concatenate(following),
        terminated=flags[0],
        truncated=flags[1],
        env="CartPole-v1" if discrete else "Pendulum-v1",
    )


# Two episodes, a terminated and a cut one, and a third that the file cuts.
ROWS: Arrays = {
    "observations": np.arange(7.0)[:, None] * [1.0, 10.0],
    "actions": np.linspace(-1, 1, 7)[:, None],
    "rewards": np.arange(7.0) - 3,
    "terminals": np.array([0, 1, 0, 0, 0, 0, 0], bool),
    "timeouts": np.array([0, 0, 0, 0, 1, 0, 0], bool),
}


def write_hdf5(path: Path, arrays: Arrays) -> Path:
    with h5py.File(path, "w") as file:
        for key, values in arrays.items():
            file[key] = values
    return path


def write_npz(path: Path, arrays: Arrays) -> Path:
    columns: dict[str, Any] = dict(arrays)
    np.savez(path, **columns)
    return path


def write(dataset: Dataset, name: str, folder: Path | None = None) -> Path:
    """A Minari data set, written with the checks of `rewardshift collect`."""
    target, spec = check_target(name, folder), check_env(str(dataset.env))
    about = {"dataset_id": name, "description": "Noise.", "recipe": {"seed": 1}}
    write_minari(dataset, target, spec, {**about, "algorithm_name": "Chance"})
    return target


def small(env: str = "Pendulum-v1", *, ended: bool = True) -> Dataset:
    """Five transitions: a terminated episode of three and a cut one of two."""
    seen = np.arange(7, dtype=np.float32)[:, None] * floats(1, 2, 3)
    return Dataset(
        name="small",
        observation=seen[[0, 1, 2, 4, 5]],
        action=np.array([[-2], [-1], [0], [1], [2]], np.float32),
        reward=floats(1, -2, 3, -4, 5),
        next_observation=seen[[1, 2, 3, 5, 6]],
        terminated=np.array([0, 0, 1, 0, 0], bool),
        truncated=np.array([0, 0, 0, 0, ended], bool),
        env=env,
    )


def random_data(
    make: Callable[[], gym.Env[Any, Any]], transitions: int, seed: int = 0, name: str = "random"
) -> Dataset:
    """What random actions lead to, each on the environment's own scale."""
    env = make()
    env.action_space.seed(seed)
    rows: list[tuple[Any, ...]] = []
    observation, _ = env.reset(seed=seed)
    while len(rows) < transitions:
        action = env.action_space.sample()
        following, reward, terminated, truncated, _ = env.step(action)
        rows.append((observation, action, reward, following, terminated, truncated))
        observation = following
        if terminated or truncated:
            observation, _ = env.reset()
    columns: list[np.ndarray] = [np.array(column) for column in zip(*rows, strict=True)]
    columns[5][-1] |= not columns[4][-1]
    return Dataset(
        name,
        observation=columns[0].astype(np.float32),
        action=columns[1],
        reward=columns[2].astype(np.float32),
        next_observation=columns[3].astype(np.float32),
        terminated=columns[4],
        truncated=columns[5],
    )


def save_npz(path: Path, data: Dataset) -> Path:
    """The data as a file, with the names of D4RL."""
    np.savez(
        path,
        observations=data.observation,
        actions=data.action,
        rewards=data.reward,
        terminals=data.terminated,
        timeouts=data.truncated,
        next_observations=data.next_observation,
    )
    return path
