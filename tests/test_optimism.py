"""Optimism and lifetime: how high a shift starts, and how long it lasts."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from rewardshift import equivalent_bias, lifetime, optimistic_value


def test_the_optimistic_mix_and_its_bias() -> None:
    assert optimistic_value(1.0, 3.0, 0.25) == 1.5
    assert equivalent_bias(2.0, -2.0, 0.25) == 1.0
    low, high = np.zeros(2), np.ones(2)
    np.testing.assert_array_equal(optimistic_value(low, high, np.array([0.0, 1.0])), [0.0, 1.0])


@given(gamma=st.floats(0.5, 0.99), tau=st.floats(0.01, 1.0))
def test_an_offset_falls_to_one_over_e_in_a_lifetime(gamma: float, tau: float) -> None:
    """A value that follows its target at once, and a target that follows slowly."""
    offset, moves = 1.0, round(lifetime(gamma, tau))
    for _ in range(moves):
        offset += tau * (gamma * offset - offset)
    assert offset == pytest.approx((1 - tau * (1 - gamma)) ** moves)
    assert offset == pytest.approx(math.exp(-1), rel=0.6 / moves + tau * (1 - gamma))
    assert lifetime(gamma, tau, every=2) == 2 * lifetime(gamma, tau)
