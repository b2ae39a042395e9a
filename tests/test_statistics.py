"""The statistics against known answers and simulations, and the verdicts at their edges."""

from dataclasses import replace
from typing import get_args

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis.extra import numpy as hnp

from rewardshift.report.statistics import (
    MIN_SEEDS,
    Kind,
    compare,
    compare_with_bound,
    decide,
    detectable,
    holm,
    interquartile_mean,
    probability_interval,
    probability_of_improvement,
)

scores = hnp.arrays(np.float64, st.integers(1, 8), elements=st.sampled_from([0.0, 0.5, 1.0, 2.0]))
p_values = st.lists(st.floats(0, 1), max_size=8)


def spread(center: float, count: int) -> np.ndarray:
    return center + np.linspace(-1, 1, count)


def verdict(x: np.ndarray, y: np.ndarray, margin: float | None = None) -> str:
    """The verdict on a claim that is alone in its family."""
    (decision,) = decide([compare(x, y, margin)])
    return decision.verdict


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
    high, low = spread(10, 8), spread(0, 8)
    won = compare(high, low)
    assert (won.probability, won.high) == (1.0, 1.0)
    assert won.p_value < 0.001
    assert won.p_opposite == 1.0
    assert won.difference == pytest.approx(10)
    assert verdict(high, low) == "supported"
    assert verdict(low, high) == "contradicted"
    assert verdict(low, low) == "inconclusive"


@pytest.mark.parametrize(
    ("low", "high", "p", "p_opposite", "verdict"),
    [
        (0.51, 0.9, 0.0249, 0.9, "supported"),
        (0.51, 0.9, 0.025, 0.9, "inconclusive"),  # the interval alone is not enough
        (0.5, 0.9, 0.01, 0.9, "inconclusive"),  # nor is the test
        (0.1, 0.49, 0.9, 0.0249, "contradicted"),
        (0.1, 0.49, 0.9, 0.025, "inconclusive"),
        (0.1, 0.5, 0.9, 0.01, "inconclusive"),
        (0.3, 0.7, 0.5, 0.5, "inconclusive"),
    ],
)
def test_the_rule_for_better(
    low: float, high: float, p: float, p_opposite: float, verdict: str
) -> None:
    shape = compare(spread(0, 8), spread(0, 8))
    changed = replace(shape, low=low, high=high, p_value=p, p_opposite=p_opposite)
    assert decide([changed])[0].verdict == verdict


@pytest.mark.parametrize(("count", "expected"), [(7, "inconclusive"), (8, "supported")])
def test_fewer_than_eight_seeds_decide_nothing(count: int, expected: str) -> None:
    assert MIN_SEEDS == 8
    assert verdict(spread(10, count), spread(0, count)) == expected
    assert verdict(spread(0, count), spread(0, count), margin=5.0) == expected
    assert verdict(spread(10, 9), spread(0, count)) == expected
    opposite = "contradicted" if count == 8 else "inconclusive"
    assert verdict(spread(0, count), spread(10, count)) == opposite
    assert verdict(spread(10, count), spread(0, count), margin=5.0) == opposite


@pytest.mark.parametrize("margin", [None, 0.1])
def test_one_seed_is_no_error(margin: float | None) -> None:
    result = compare(np.array([1.0]), np.array([0.0]), margin)
    (decision,) = decide([result])
    assert (decision.verdict, decision.detectable, result.seeds) == ("inconclusive", None, 1)
    assert (result.p_value, result.p_opposite) == (1.0, 1.0)
    if margin is None:
        assert result.low is not None
        assert result.low < 0.5
    else:
        assert (result.low, result.high) == (None, None)


def test_the_interval_of_certainty_is_open() -> None:
    for seeds in (8, 12, 100):
        low, high = probability_interval(1.0, seeds, seeds)
        assert 0.5 < low < 1
        assert high == 1
        assert probability_interval(0.0, seeds, seeds) == pytest.approx((0, 1 - low))


@given(st.integers(0, 200), st.integers(1, 20), st.integers(1, 20))
def test_the_interval_solves_newcombes_equation(count: int, x: int, y: int) -> None:
    theta = count / 200
    spare = (x + y) / 2 - 1
    low, high = probability_interval(theta, x, y)
    assert 0 <= low <= theta <= high <= 1
    for bound in (low, high):
        variance = bound * (1 - bound) / (x * y)
        variance *= 1 + spare * ((1 - bound) / (2 - bound) + bound / (1 + bound))
        assert (theta - bound) ** 2 == pytest.approx(1.959964**2 * variance, abs=1e-8)


@pytest.mark.parametrize(
    ("difference", "expected"),
    [(0.0, "supported"), (0.45, "inconclusive"), (3.0, "contradicted"), (-3.0, "contradicted")],
)
def test_alike_is_two_one_sided_welch_tests(difference: float, expected: str) -> None:
    x, y, margin = difference + 0.2 * spread(0, 8), 0.1 * spread(0, 10), 0.5
    result = compare(x, y, margin)
    above = scipy.stats.ttest_ind(x + margin, y, equal_var=False, alternative="greater")
    below = scipy.stats.ttest_ind(x - margin, y, equal_var=False, alternative="less")
    assert result.p_value == pytest.approx(max(above.pvalue, below.pvalue))
    assert result.p_opposite == pytest.approx(min(1 - above.pvalue, 1 - below.pvalue), abs=1e-12)
    interval = scipy.stats.ttest_ind(x, y, equal_var=False).confidence_interval(0.9)
    assert (result.low, result.high) == pytest.approx((interval.low, interval.high))
    assert result.low is not None
    assert result.high is not None
    within = -margin < result.low and result.high < margin
    assert within == (result.p_value < 0.05)
    assert verdict(x, y, margin) == expected


@pytest.mark.parametrize(
    ("difference", "expected"),
    [(0.25, "supported"), (0.5, "inconclusive"), (0.75, "contradicted"), (-1.0, "contradicted")],
)
def test_without_spread_the_difference_decides(difference: float, expected: str) -> None:
    x, y = np.full(8, difference), np.zeros(8)
    result = compare(x, y, 0.5)
    assert np.isfinite([result.p_value, result.p_opposite]).all()
    assert result.low == result.high == difference
    assert verdict(x, y, 0.5) == expected


@given(p_values)
def test_holm_raises_p_values_and_keeps_their_order(p: list[float]) -> None:
    corrected = holm(p)
    assert all(raw <= higher <= 1 for raw, higher in zip(p, corrected, strict=True))
    pairs = sorted(zip(p, corrected, strict=True))
    assert [higher for _, higher in pairs] == sorted(corrected)


def test_holm_by_hand() -> None:
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])


def test_a_family_is_corrected_over_both_directions_together() -> None:
    clear, opposite = compare(spread(10, 8), spread(0, 8)), compare(spread(0, 8), spread(10, 8))
    weak = replace(clear, p_value=0.02)
    (alone,) = decide([weak])
    assert alone.verdict == "supported"
    assert alone.p_corrected == pytest.approx(0.04)
    first, second, third = decide([weak, weak, opposite])
    assert (first.verdict, third.verdict) == ("inconclusive", "contradicted")
    assert first.p_corrected == second.p_corrected == pytest.approx(5 * 0.02)
    assert third.p_opposite_corrected == pytest.approx(6 * opposite.p_opposite)
    assert decide([]) == []


@pytest.mark.parametrize("kind", get_args(Kind))
def test_more_seeds_detect_less_and_more_claims_more(kind: Kind) -> None:
    effects = [detectable(seeds, 4, kind) for seeds in (8, 10, 20, 1000)]
    assert effects == sorted(effects, key=lambda e: -(e or 0))
    many = [detectable(8, claims, kind) for claims in (1, 4, 40)]
    assert many == sorted(many, key=lambda e: e or 0)
    assert detectable(7, 1, kind) is None


def test_a_bound_is_a_t_test_of_the_mean() -> None:
    x = 0.3 + 0.1 * spread(0, 8)
    for bound, expected in ((0.5, "supported"), (0.31, "inconclusive"), (0.1, "contradicted")):
        result = compare_with_bound(x, bound)
        test = scipy.stats.ttest_1samp(x, bound, alternative="less")
        assert result.p_value == pytest.approx(test.pvalue)
        assert result.p_opposite == pytest.approx(1 - test.pvalue)
        assert (result.low, result.high) == pytest.approx(
            tuple(scipy.stats.ttest_1samp(x, 0).confidence_interval(0.9))
        )
        assert decide([result])[0].verdict == expected
        assert compare_with_bound(-x, bound).p_value == pytest.approx(result.p_value)
