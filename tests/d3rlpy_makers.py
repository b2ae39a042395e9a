"""What the tests with d3rlpy share: a random task, its data sets, and a small agent on them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import d3rlpy
import numpy as np
import pytest
import torch
from d3rlpy.algos import (
    DQNConfig,
)
from d3rlpy.dataset import (
    Episode,
    InfiniteBuffer,
    ReplayBuffer,
)
from d3rlpy.logging import NoopAdapterFactory
from d3rlpy.models import VectorEncoderFactory

from rewardshift import Shift

GAMMA = 0.9
ZERO = Shift(-0.5, 2.0, GAMMA)
EXACT = Shift(-0.5, 2.0, GAMMA, "absorbing")
STATES = np.eye(4, dtype=np.float32)
EVERY = np.repeat(STATES, 2, axis=0), np.tile([0, 1], 4)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """d3rlpy writes logs to where it runs. Its small networks are fastest on one core."""
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def episodes(*, ends: bool = True) -> list[Episode]:
    """Episodes of a random task with four states; two in three terminate, if any does."""
    rng = np.random.default_rng(1)
    return [
        Episode(
            observations=STATES[rng.integers(4, size=length)],
            actions=rng.integers(2, size=(length, 1)),
            rewards=rng.normal(size=(length, 1)).astype(np.float32),
            terminated=ends and length % 3 > 0,
        )
        for length in range(2, 14)
    ]


def replay(picker: Any = None, buffer: Any = None, *, ends: bool = True) -> ReplayBuffer:
    return ReplayBuffer(
        InfiniteBuffer() if buffer is None else buffer,
        transition_picker=picker,
        episodes=episodes(ends=ends),
    )


def transitions(dataset: ReplayBuffer) -> Iterator[Any]:
    for index in range(dataset.transition_count):
        yield dataset.transition_picker(*dataset.buffer[index])


def fit(dataset: ReplayBuffer, scaler: Any = None, lower: float = 0.0, steps: int = 200) -> Any:
    """A small DQN from the same parameters and on the same batches, with outputs lowered by it."""
    d3rlpy.seed(3)
    agent = DQNConfig(
        batch_size=16,
        gamma=GAMMA,
        learning_rate=1e-2,
        target_update_interval=10,
        encoder_factory=VectorEncoderFactory([8]),
        reward_scaler=scaler,
    ).create()
    agent.build_with_dataset(dataset)
    for networks in (agent.impl.modules.q_funcs, agent.impl.modules.targ_q_funcs):
        for network in networks:
            torch.nn.init.constant_(network._fc.bias, -lower)
    d3rlpy.seed(4)
    train(agent, dataset, steps)
    return agent


def train(agent: Any, dataset: ReplayBuffer, steps: int) -> None:
    agent.fit(
        dataset,
        n_steps=steps,
        n_steps_per_epoch=steps,
        show_progress=False,
        logger_adapter=NoopAdapterFactory(),
    )
