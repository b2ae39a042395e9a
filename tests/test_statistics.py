"""The statistics against known answers, and the verdicts at their edges."""

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis.extra import numpy as hnp

from rewardshift.report.statistics import (
    Comparison,
    _alike,
    _better,
    compare,
    interquartile_mean,
    probability_of_improvement,
)

scores = hnp.arrays(np.float64, st.integers(1, 8), elements=st.sampled_from([0.0, 0.5, 1.0, 2.0]))


def spread(center: float, count: int) -> np.ndarray:
    return center + np.linspace(-1, 1, count)


def test_probability_of_improvement_counts_pairs_and_halves_ties() -> None:
    assert probability_of_improvement(np.array([1.0, 2.0]), np.array([0.0, 2.0])) == 5 / 8


@given(scores, scores)
def test_probability_of_improvement_is_mann_whitneys_u(x: np.ndarray, y: np.ndarray) -> None:
    u = (
        scipy.stats.mannwhitneyu(x, y, method="asymptotic").statistic
        if np.ptp(np.concatenate([x, y]))
        else len(x) * len(y) / 2
    )
    assert probability_of_improvement(x, y) == pytest.approx(u / (len(x) * len(y)))
    assert probability_of_improvement(x, y) + probability_of_improvement(y, x) == pytest.approx(1)


def test_the_interquartile_mean_ignores_the_outer_quarters() -> None:
    assert interquartile_mean(np.array([-1e9, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1e9])) == 3.5


def test_a_clear_order_is_supported_and_its_opposite_is_not() -> None:
    high, low = spread(10, 6), spread(0, 6)
    won = compare(high, low)
    assert (won.verdict, won.probability, won.low, won.high) == ("supported", 1.0, 1.0, 1.0)
    assert won.p_value == pytest.approx(1 / 924)  # one of the ways to choose 6 of 12
    assert won.difference == pytest.approx(10)
    assert compare(low, high).verdict == "not supported"


@pytest.mark.parametrize(
    ("low", "high", "p", "p_opposite", "verdict"),
    [
        (0.51, 0.9, 0.049, 0.9, "supported"),
        (0.51, 0.9, 0.05, 0.9, "inconclusive"),  # the interval alone is not enough
        (0.5, 0.9, 0.01, 0.9, "inconclusive"),  # nor is the test
        (0.1, 0.49, 0.9, 0.2, "not supported"),  # the interval alone speaks for the opposite
        (0.1, 0.5, 0.9, 0.049, "not supported"),  # and so does the test
        (0.1, 0.5, 0.9, 0.05, "inconclusive"),
        (0.3, 0.7, 0.5, 0.5, "inconclusive"),
    ],
)
def test_the_rule_for_better(
    low: float, high: float, p: float, p_opposite: float, verdict: str
) -> None:
    assert _better(low, high, p, p_opposite) == verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-0.09, 0.09, "supported"),
        (-0.1, 0.0, "inconclusive"),
        (0.0, 0.1, "inconclusive"),
        (0.1, 0.3, "not supported"),
        (-0.3, -0.1, "not supported"),
        (-0.3, 0.3, "inconclusive"),
    ],
)
def test_the_rule_for_alike(low: float, high: float, verdict: str) -> None:
    assert _alike(low, high, 0.1) == verdict


def test_equal_methods_are_inconclusive() -> None:
    result = compare(spread(0, 8), spread(0, 8))
    assert result.verdict == "inconclusive"
    assert result.low < 0.5 < result.high


@pytest.mark.parametrize(("count", "verdict"), [(3, "inconclusive"), (4, "supported")])
def test_fewer_than_four_seeds_decide_nothing(count: int, verdict: str) -> None:
    assert compare(spread(10, count), spread(0, count)).verdict == verdict
    assert compare(spread(0, count), spread(0, count), margin=5.0).verdict == verdict
    assert compare(spread(10, 9), spread(0, count)).verdict == verdict


def test_one_seed_is_no_error() -> None:
    result = compare(np.array([1.0]), np.array([0.0]))
    assert (result.verdict, result.low, result.high, result.seeds) == ("inconclusive", 1, 1, 1)


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [(0.0, "supported"), (0.4, "inconclusive"), (3.0, "not supported"), (-3.0, "not supported")],
)
def test_alike_needs_the_whole_interval_within_the_margin(difference: float, verdict: str) -> None:
    result = compare(difference + 0.2 * spread(0, 8), 0.2 * spread(0, 8), margin=0.5)
    assert result.verdict == verdict
    assert result.p_value is None
    assert result.low <= result.difference <= result.high


def test_verdicts_are_reproducible() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=10), rng.normal(0.5, size=10)
    assert compare(x, y) == compare(x, y)
    assert compare(x, y, margin=0.1) == compare(x, y, margin=0.1)


def test_equal_methods_are_seldom_told_apart() -> None:
    """Of 300 pairs of equal methods at most one in twenty or so may be."""
    rng = np.random.default_rng(0)
    wrong = sum(
        compare(rng.normal(size=5), rng.normal(size=5)).verdict == "supported" for _ in range(300)
    )
    assert wrong <= 24  # 15 are expected; more than 24 have a chance below one in a hundred


def test_a_comparison_holds_plain_numbers() -> None:
    result = compare(spread(1, 4), spread(0, 4))
    assert isinstance(result, Comparison)
    assert {type(getattr(result, name)) for name in ("probability", "low", "high")} == {float}
