"""The ring of packed records, against plain lists of transitions."""

from functools import partial
from typing import Any, cast

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from hypothesis import given, settings

from rewardshift.agents.base import Batch
from rewardshift.envs.tasks import TaskSpec
from rewardshift.training.replay import Replay, unpack

GAMMA = 0.9


def filled(
    steps: int,
    *,
    rows: int = 2,
    capacity: int = 8,
    dtype: str = "float32",
    n_step: int = 1,
    action_size: int = 0,
) -> tuple[Replay, list[dict[str, np.ndarray]]]:
    """A replay with random transitions, and the transitions."""
    rng = np.random.default_rng(steps)
    spec = TaskSpec(3, cast("Any", dtype), action_size=action_size)
    replay = Replay(rows, capacity, spec, gamma=GAMMA, n_step=n_step)
    history = []
    for _ in range(steps):
        terminated = rng.random(rows) < 0.2
        fields = {
            "observation": (rng.random((rows, 3)) * 200).astype(dtype),
            "next_observation": (rng.random((rows, 3)) * 200).astype(dtype),
            "action": rng.random((rows, action_size)).astype(np.float32)
            if action_size
            else rng.integers(5, size=rows),
            "reward": rng.normal(size=rows).astype(np.float32),
            "terminated": terminated,
            "ended": terminated | (rng.random(rows) < 0.1),
            "intrinsic": rng.random(rows).astype(np.float32),
        }
        replay.add(**fields)
        history.append(fields)
    return replay, history


def sampled(replay: Replay, uniforms: np.ndarray) -> Batch:
    packed = replay.sample(uniforms.astype(np.float32))
    return jax.tree.map(np.asarray, jax.jit(partial(unpack, spec=replay.spec))(packed))


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("action_size", [0, 1, 2])
def test_what_goes_in_comes_out(dtype: str, action_size: int) -> None:
    replay, history = filled(5, dtype=dtype, action_size=action_size)
    every = np.tile((np.arange(5) + 0.5) / 5, (2, 1))
    batch = sampled(replay, every)
    assert batch.observation.dtype == dtype
    assert (batch.steps == 1).all()
    for name in set(history[0]) - {"ended"}:
        expected = np.stack([fields[name] for fields in history], axis=1)
        np.testing.assert_array_equal(getattr(batch, name), expected)


def test_the_oldest_are_overwritten() -> None:
    replay, history = filled(11)
    assert replay.size == 8
    every = np.tile((np.arange(8) + 0.5) / 8, (2, 1))
    expected = np.stack([fields["reward"] for fields in history[3:]], axis=1)
    np.testing.assert_array_equal(sampled(replay, every).reward, expected)


def test_the_first_transition_can_be_sampled_at_once() -> None:
    replay, history = filled(1)
    batch = sampled(replay, np.random.default_rng(0).random((2, 6)))
    assert (batch.reward == history[0]["reward"][:, None]).all()


def plain_return(history: list[dict[str, Any]], start: int, row: int, n: int) -> tuple[Any, ...]:
    total, steps = 0.0, 0
    for fields in history[start : start + n]:
        total += GAMMA**steps * float(fields["reward"][row])
        steps += 1
        if fields["ended"][row]:
            break
    last = history[start + steps - 1]
    return total, steps, last["terminated"][row], last["next_observation"][row]


@settings(max_examples=15)
@given(st.integers(1, 20), st.integers(2, 5), st.integers(0, 1000))
def test_multistep_returns_end_with_their_episodes(steps: int, n: int, seed: int) -> None:
    replay, history = filled(steps, n_step=n)
    starts = max(1, replay.size - n + 1)
    uniforms = np.random.default_rng(seed).random((2, 16)).astype(np.float32)
    packed = replay.sample(uniforms)
    records = packed.view(replay.records.dtype)[..., 0]
    for row in range(2):
        for column in range(16):
            start = steps - replay.size + int(uniforms[row, column] * starts)
            total, count, terminated, following = plain_return(history, start, row, n)
            record = records[row, column]
            assert record["reward"] == pytest.approx(total, rel=1e-5, abs=1e-6)
            assert (record["steps"], record["terminated"]) == (count, terminated)
            np.testing.assert_array_equal(record["next_observation"], following)
    before = replay.records.copy()
    replay.sample(uniforms)
    np.testing.assert_array_equal(replay.records, before)  # what is stored stays raw
