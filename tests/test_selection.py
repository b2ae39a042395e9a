"""Selections: who leads, and for how long."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardshift import DQN, Shift, equivalent_bias, optimistic_value
from rewardshift.agents.base import Biases
from rewardshift.agents.selection import (
    Optimistic,
    ProgressArgmax,
    ProgressSoftmax,
    Uniform,
)
from rewardshift.envs.tasks import TaskSpec

TASK = TaskSpec(2, "float32", num_actions=2)
DRAWING = [Uniform(), ProgressSoftmax(), ProgressArgmax()]
draws = st.floats(0, 1, exclude_max=True, width=32)
progresses = st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=7)


def drawn(selection: Any, progress: Sequence[float], draw: float) -> int:
    return int(selection.draw(jnp.asarray(progress, jnp.float32), jnp.asarray(draw, jnp.float32)))


@pytest.mark.parametrize("selection", DRAWING, ids=lambda s: type(s).__name__)
@given(progress=progresses, draw=draws)
@settings(max_examples=40, deadline=None)
def test_the_leader_is_a_member(selection: Any, progress: list[float], draw: float) -> None:
    assert 0 <= drawn(selection, progress, draw) < len(progress)


def shares(selection: Any, progress: Sequence[float], count: int = 200) -> np.ndarray:
    leaders = [drawn(selection, progress, (i + 0.5) / count) for i in range(count)]
    return np.bincount(leaders, minlength=len(progress)) / count


def test_uniform_does_not_look_at_progress() -> None:
    np.testing.assert_allclose(shares(Uniform(), [0.0, 1e4, -1e4, 3.0]), 0.25, atol=0.01)


def test_softmax_follows_progress_whatever_its_units() -> None:
    for scale in (1e-2, 1.0, 1e4):
        progress = [-scale, 0.0, scale]
        expected = np.exp(np.array(progress) / np.std(progress))
        np.testing.assert_allclose(
            shares(ProgressSoftmax(), progress), expected / expected.sum(), atol=0.01
        )
    np.testing.assert_allclose(shares(ProgressSoftmax(), [0.0, 0.0]), 0.5, atol=0.01)


def test_argmax_takes_the_best_and_sometimes_any() -> None:
    found = shares(ProgressArgmax(0.3), [0.0, 5.0, 1.0])
    np.testing.assert_allclose(found, [0.1, 0.8, 0.1], atol=0.01)
    np.testing.assert_allclose(shares(ProgressArgmax(0.0), [0.0, 5.0, 1.0]), [0, 1, 0])


@given(beta=st.floats(0, 1), seed=st.integers(0, 99))
def test_the_optimistic_mix_is_that_of_the_shift(beta: float, seed: int) -> None:
    """The weighted sum of values differs from `optimistic_value` by a constant alone."""
    shifts, gamma = (0.5, -0.5, 0.0), 0.9
    values = np.random.default_rng(seed).normal(size=(3, 4))
    mixed = Optimistic(beta).weights(jnp.asarray(shifts)) @ values
    lower, upper = values[0] - 0.5 / (1 - gamma), values[1] + 0.5 / (1 - gamma)
    constant = equivalent_bias(0.5, -0.5, beta) / (1 - gamma)
    expected = optimistic_value(lower, upper, beta) + constant
    np.testing.assert_allclose(mixed, expected, atol=1e-5)


@given(
    shifts=st.lists(st.tuples(st.floats(-1, 1), st.floats(0.01, 100)), min_size=2, max_size=4),
    seed=st.integers(0, 99),
)
def test_a_mix_of_scales_is_a_mix_of_primal_values(
    shifts: list[tuple[float, float]], seed: int
) -> None:
    """The mix of values is that of primal values, times the mean scale, plus a constant."""
    members = tuple(Shift(bias, scale, gamma=0.9) for bias, scale in shifts)
    primal = np.random.default_rng(seed).normal(size=(len(members), 4))
    values = [member.from_primal(row) for member, row in zip(members, primal, strict=True)]
    selection = Optimistic(0.25)
    agent = DQN(shift=members, gamma=0.9, selection=selection)
    state = SimpleNamespace(biases=Biases.of(members))
    mixed = np.asarray(agent.followed(state, jnp.asarray(values), lambda values: values))
    scale = np.mean([member.scale for member in members])
    weights = selection.weights(jnp.asarray([m.bias / m.scale for m in members]))
    expected = scale * np.asarray(weights, np.float64) @ primal
    terms = [np.abs(v).max() / m.scale for v, m in zip(values, members, strict=True)]
    tolerance = 1e-6 * scale * max(terms)  # that of the largest term, in float32
    np.testing.assert_allclose(mixed - mixed[0], expected - expected[0], atol=tolerance)


def changes(least: tuple[int, int], lengths: Sequence[int]) -> list[int]:
    """The steps after which a leader is drawn, over episodes of these lengths."""
    agent = DQN(shift=(0.0, 0.0, 0.0), lead_episodes=least[0], lead_steps=least[1])
    state = agent.init(jax.random.key(0), TASK)
    ends = [position == length - 1 for length in lengths for position in range(length)]
    found = []
    for step, ended in enumerate(ends, start=1):
        state = agent.lead(state, jnp.asarray(0.5), jnp.asarray(ended), 1.0)
        if int(state.lead.steps) == 0:
            found.append(step)
    return found


def test_a_leader_stays_for_an_episode_and_for_its_steps() -> None:
    assert changes((1, 0), [4, 3, 5]) == [4, 7, 12]
    assert changes((1, 5), [4, 3, 5, 2, 6]) == [7, 12, 20]
    assert changes((2, 0), [4, 3, 5, 2]) == [7, 14]
    assert changes((0, 0), [2, 2]) == [1, 2, 3, 4]
    assert changes((0, 3), [4, 4]) == [3, 6]


def test_progress_is_that_of_the_leader_between_its_episodes() -> None:
    agent = DQN(shift=(0.0, 0.0), selection=ProgressArgmax(0.0), lead_steps=9)
    state = agent.init(jax.random.key(0), TASK)
    leader = int(state.lead.leader)
    # One episode is no progress yet.
    for total, progress in ((10.0, 0.0), (25.0, 15.0), (20.0, -5.0)):
        state = agent.lead(state, jnp.asarray(0.5), jnp.asarray(True), total)
        assert int(state.lead.leader) == leader
        expected = np.where(np.arange(2) == leader, progress, 0.0)
        np.testing.assert_allclose(state.lead.progress, expected)
