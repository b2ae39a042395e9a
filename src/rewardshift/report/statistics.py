"""Statistics for few seeds: comparisons of two methods, with their uncertainty.

Every random draw is seeded, so the same results always give the same verdicts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from rewardshift.errors import needs

with needs("paper"):
    import scipy.stats
    from scipy.optimize import brentq

Verdict = Literal["supported", "contradicted", "inconclusive"]
Kind = Literal["better", "alike", "bound"]

MIN_SEEDS = 8
ALPHA = 0.05
POWER = 0.8
RESAMPLES = 9999


@dataclass(frozen=True)
class Comparison:
    """Two methods compared by one score per seed, higher being better; or one with a bound.

    Args:
        kind: `"better"`: x is better than y. `"alike"`: the means of x and y differ by less than
            the margin. `"bound"`: the mean of x differs from 0 by less than the margin.
        margin: The margin; None for "better".
        probability: The probability that a seed of x beats a seed of y; ties count half. None for
            "bound".
        low, high: For "better" a 95% interval of that probability, otherwise a 90% interval of
            the difference, or None if a method has a single seed.
        p_value: The evidence for the claim: the probability of such results if the claim is false.
        p_opposite: The evidence for the opposite: that y is better, or that the difference is
            larger than the margin.
        difference: The mean of x minus the mean of y, or minus 0 for "bound".
        x_iqm, y_iqm: The interquartile means of the scores.
        seeds: The smaller of the two methods' numbers of seeds.
    """

    kind: Kind
    margin: float | None
    probability: float | None
    low: float | None
    high: float | None
    p_value: float
    p_opposite: float
    difference: float
    x_iqm: float
    y_iqm: float | None
    seeds: int


@dataclass(frozen=True)
class Decision:
    """The verdict on a comparison within its family of claims.

    Args:
        verdict: The verdict on the claim.
        p_corrected, p_opposite_corrected: The p-values after Holm's correction, which is over the
            claims and their opposites together.
        detectable: See `detectable`.
    """

    verdict: Verdict
    p_corrected: float
    p_opposite_corrected: float
    detectable: float | None


def probability_of_improvement(
    x: Float[np.ndarray, "*batch x"],
    y: Float[np.ndarray, "*batch y"],
    axis: int = -1,  # noqa: ARG001  SciPy names the axis of the seeds; it is always the last
) -> Any:
    """The probability that a random seed of x beats a random seed of y; ties count half."""
    wins = x[..., :, None] > y[..., None, :]
    ties = x[..., :, None] == y[..., None, :]
    return (wins + 0.5 * ties).mean(axis=(-2, -1))


def interquartile_mean(scores: Float[np.ndarray, " seed"]) -> float:
    """The mean of the middle half: more robust than the mean, more efficient than the median."""
    return float(scipy.stats.trim_mean(scores, 0.25))


class Interval(NamedTuple):
    """A mean with its 95% interval, or without one if there is a single score."""

    mean: float
    low: float | None
    high: float | None


def mean_interval(scores: Float[np.ndarray, " seed"]) -> Interval:
    """The mean of the scores with Student's 95% interval."""
    mean, count = float(scores.mean()), len(scores)
    if count < 2:
        return Interval(mean, None, None)
    error = float(scores.std(ddof=1)) / math.sqrt(count)
    reach = float(scipy.stats.t.isf(ALPHA / 2, count - 1)) * error
    return Interval(mean, mean - reach, mean + reach)


def compare(
    x: Float[np.ndarray, " x"], y: Float[np.ndarray, " y"], margin: float | None = None
) -> Comparison:
    """Tests "x is better than y", or with a margin "x and y are alike"."""
    probability = float(probability_of_improvement(x, y))
    low: float | None
    high: float | None
    if margin is None:
        low, high = probability_interval(probability, len(x), len(y))
        p_value, p_opposite = _permutation_p(x, y), _permutation_p(y, x)
    else:
        low, high, p_value, p_opposite = _welch(x, y, margin)
    return Comparison(
        kind="better" if margin is None else "alike",
        margin=margin,
        probability=probability,
        low=low,
        high=high,
        p_value=p_value,
        p_opposite=p_opposite,
        difference=float(x.mean() - y.mean()),
        x_iqm=interquartile_mean(x),
        y_iqm=interquartile_mean(y),
        seeds=min(len(x), len(y)),
    )


def compare_with_bound(x: Float[np.ndarray, " x"], bound: float) -> Comparison:
    """Tests "the mean of x is nearer to 0 than the bound"."""
    result = compare(x, np.zeros_like(x), bound)
    return replace(result, kind="bound", probability=None, y_iqm=None)


def decide(family: Sequence[Comparison]) -> list[Decision]:
    """The verdicts on a family of claims, with p-values corrected for their number.

    A claim is supported if its corrected p-value is below 0.05, and contradicted if that of its
    opposite is. For "better" the interval must also lie on the same side of 0.5. Everything
    else, and everything with fewer than eight seeds, is inconclusive. The correction is over the
    claims and their opposites together: the chance of any false verdict, in whichever direction,
    is at most 0.05 in the whole family.
    """
    size = len(family)
    corrected = holm([one.p_value for one in family] + [one.p_opposite for one in family])
    claims, opposites = corrected[:size], corrected[size:]
    return [
        Decision(
            _verdict(comparison, p, p_opposite),
            p,
            p_opposite,
            detectable(comparison.seeds, size, comparison.kind),
        )
        for comparison, p, p_opposite in zip(family, claims, opposites, strict=True)
    ]


def _verdict(comparison: Comparison, p: float, p_opposite: float) -> Verdict:
    if comparison.seeds < MIN_SEEDS:
        return "inconclusive"
    low, high, better = comparison.low, comparison.high, comparison.kind == "better"
    if p < ALPHA and (not better or (low is not None and low > 0.5)):
        return "supported"
    if p_opposite < ALPHA and (not better or (high is not None and high < 0.5)):
        return "contradicted"
    return "inconclusive"


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: it bounds the chance of any false positive among these p-values."""
    p = np.asarray(p_values, float)
    order = np.argsort(p)
    steps = p[order] * np.arange(len(p), 0, -1)
    p[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return p.tolist()


def detectable(seeds: int, claims: int, kind: Kind) -> float | None:
    """The smallest effect, in standard deviations, that the tests find four times in five.

    It assumes normal scores with equal deviations, at the level of Holm's first step for this
    number of claims and as many opposites.

    Args:
        seeds: The number of seeds of each method.
        claims: The number of claims in the family.
        kind: `"better"` asks for the smallest difference of the means at which it is supported,
            `"alike"` for the smallest margin within which two equal methods are found alike,
            `"bound"` for the smallest distance of the mean from the bound.

    Returns:
        The effect, or None with too few seeds for a verdict.
    """
    if seeds < MIN_SEEDS:
        return None
    # A rank test of n normal scores is as efficient as a t-test of n 3 / pi.
    size = seeds * 3 / math.pi if kind == "better" else float(seeds)
    samples = 1 if kind == "bound" else 2
    freedom = samples * (size - 1)
    critical = float(scipy.stats.t.isf(ALPHA / (2 * claims), freedom))

    def power(effect: float) -> float:
        """The power for an effect in standard errors; for one side that of a t-test."""
        if kind == "alike":
            return _power_of_alike(effect, critical, freedom)
        return float(scipy.stats.nct.sf(critical, freedom, effect))

    errors = brentq(lambda effect: power(effect) - POWER, 0, 50)
    return float(errors * math.sqrt(samples / size))


def _power_of_alike(effect: float, critical: float, freedom: float) -> float:
    """The power of two one-sided t-tests for equal means, with the margin in standard errors."""
    quantiles = (np.arange(1000) + 0.5) / 1000
    deviations = np.sqrt(scipy.stats.chi2.ppf(quantiles, freedom) / freedom)
    within = 2 * scipy.stats.norm.cdf(effect - critical * deviations) - 1
    return float(np.maximum(within, 0).mean())


def probability_interval(probability: float, x: int, y: int) -> tuple[float, float]:
    """The 95% score interval of a Mann-Whitney probability: Newcombe (2006), method 5.

    A complete separation of x and y seeds does not prove that the methods are separated: the
    interval of a probability of 1 begins below 1.
    """
    return _lower_bound(probability, x, y), 1 - _lower_bound(1 - probability, x, y)


def _lower_bound(probability: float, x: int, y: int) -> float:
    if probability == 0:
        return 0.0
    z = float(scipy.stats.norm.isf(ALPHA / 2))
    spare = (x + y) / 2 - 1

    def excess(theta: float) -> float:
        growth = 1 + spare * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        return (probability - theta) ** 2 - z**2 * theta * (1 - theta) * growth / (x * y)

    # With a probability of 1, theta = 1 is a root too, but not the wanted one.
    return float(brentq(excess, 0, min(probability, 1 - 1e-9)))


def _welch(
    x: np.ndarray, y: np.ndarray, margin: float
) -> tuple[float | None, float | None, float, float]:
    """Two one-sided Welch tests of a difference within a margin.

    Returns:
        The 90% interval of the difference, the p-value for a difference within the margin, and
        the p-value for one beyond it. Both use the nearer of the two bounds.
    """
    if min(len(x), len(y)) < 2:  # one seed has no spread
        return None, None, 1.0, 1.0
    difference = float(x.mean() - y.mean())
    x_part, y_part = float(x.var(ddof=1)) / len(x), float(y.var(ddof=1)) / len(y)
    error = math.sqrt(x_part + y_part)
    gap = margin - abs(difference)
    if error == 0:  # no spread: the difference itself decides
        p_value = 0.5 - 0.5 * float(np.sign(gap))
        return difference, difference, p_value, 1 - p_value
    share = x_part / (x_part + y_part)
    freedom = 1 / (share**2 / (len(x) - 1) + (1 - share) ** 2 / (len(y) - 1))
    student = scipy.stats.t(freedom)
    reach = float(student.isf(ALPHA)) * error
    p_value, p_opposite = float(student.sf(gap / error)), float(student.cdf(gap / error))
    return difference - reach, difference + reach, p_value, p_opposite


def _permutation_p(x: np.ndarray, y: np.ndarray) -> float:
    """The share of label permutations at least as good for x as the real labels."""
    if min(len(x), len(y)) < 2:  # nothing to shuffle
        return 1.0
    test = scipy.stats.permutation_test(
        (x, y),
        probability_of_improvement,
        permutation_type="independent",
        alternative="greater",
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(0),
    )
    return float(test.pvalue)
