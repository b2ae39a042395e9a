"""Optimism and lifetime: how high a shift starts, and how long it lasts."""

import math
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from rewardshift import equivalent_bias, lifetime, optimistic_value, suggest_shift


def test_the_optimistic_mix_and_its_bias() -> None:
    assert optimistic_value(1.0, 3.0, 0.25) == 1.5
    assert equivalent_bias(2.0, -2.0, 0.25) == 1.0
    low, high = np.zeros(2), np.ones(2)
    np.testing.assert_array_equal(optimistic_value(low, high, np.array([0.0, 1.0])), [0.0, 1.0])


@given(st.floats(0, 0.999), st.floats(0.01, 100), st.floats(-100, 100), st.floats(0.01, 100))
def test_a_suggested_shift_is_just_optimistic_or_just_cautious(
    gamma: float, k: float, low: float, width: float
) -> None:
    high = low + width
    explore = suggest_shift("explore", low, high, gamma=gamma, scale=k)
    exploit = suggest_shift("exploit", low, high, gamma=gamma, scale=k)
    assert explore.bias <= 0 <= exploit.bias
    assert explore.optimism(low, high) >= 1 - 1e-6
    assert exploit.optimism(low, high) <= 1e-6
    if high > 0:  # otherwise no shift is optimistic enough
        assert explore.optimism(low, high) == pytest.approx(1, abs=1e-6)
    if low < 0:
        assert exploit.optimism(low, high) == pytest.approx(0, abs=1e-6)
    assert explore.scale == exploit.scale == k


@pytest.mark.parametrize(
    ("goal", "low", "high", "match"),
    [
        ("win", 0, 1, "'win'"),
        ("explore", 1, 1, "1 to 1"),
        ("explore", 0, float("inf"), "0 to inf"),
        ("explore", float("nan"), 1, "nan to 1"),
    ],
)
def test_a_suggestion_needs_a_goal_and_a_range(goal: Any, low: Any, high: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        suggest_shift(goal, low, high, gamma=0.9)


@given(gamma=st.floats(0.5, 0.99), tau=st.floats(0.01, 1.0))
def test_an_offset_falls_to_one_over_e_in_a_lifetime(gamma: float, tau: float) -> None:
    """A value that follows its target at once, and a target that follows slowly."""
    offset, moves = 1.0, round(lifetime(gamma, tau))
    for _ in range(moves):
        offset += tau * (gamma * offset - offset)
    assert offset == pytest.approx((1 - tau * (1 - gamma)) ** moves)
    assert offset == pytest.approx(math.exp(-1), rel=0.6 / moves + tau * (1 - gamma))
    assert lifetime(gamma, tau, every=2) == 2 * lifetime(gamma, tau)
