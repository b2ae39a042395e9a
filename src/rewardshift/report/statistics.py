"""Statistics for few seeds: what can be said of two methods, and how surely.

Every random draw is seeded, so the same results always give the same verdicts.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.stats
from jaxtyping import Float

Verdict = Literal["supported", "not supported", "inconclusive"]

# Three seeds separate two methods completely by chance one time in twenty.
MIN_SEEDS = 4
RESAMPLES = 9999
ALPHA = 0.05


@dataclass(frozen=True)
class Comparison:
    """Two methods compared by one score per seed, higher being better.

    Args:
        verdict: What the claim "x is better than y", or "x and y are alike", comes to.
        probability: That a seed of x beats a seed of y; ties count half.
        low, high: A 95% interval: of that probability, or for "alike" of the difference
            of the means.
        p_value: Of a one-sided permutation test for "better"; None for "alike".
        difference: Of the means.
        x_iqm, y_iqm: The interquartile means of the scores.
        seeds: Of the method that has fewer.
    """

    verdict: Verdict
    probability: float
    low: float
    high: float
    p_value: float | None
    difference: float
    x_iqm: float
    y_iqm: float
    seeds: int


def probability_of_improvement(
    x: Float[np.ndarray, "*batch x"],
    y: Float[np.ndarray, "*batch y"],
    axis: int = -1,  # noqa: ARG001  SciPy names the axis of the seeds; it is always the last
) -> Any:
    """How likely a random seed of x is to beat a random seed of y; ties count half."""
    wins = x[..., :, None] > y[..., None, :]
    ties = x[..., :, None] == y[..., None, :]
    return (wins + 0.5 * ties).mean(axis=(-2, -1))


def interquartile_mean(scores: Float[np.ndarray, " seed"]) -> float:
    """The mean of the middle half: steadier than the mean, better informed than the median."""
    return float(scipy.stats.trim_mean(scores, 0.25))


def compare(
    x: Float[np.ndarray, " x"], y: Float[np.ndarray, " y"], margin: float | None = None
) -> Comparison:
    """Judges "x is better than y", or with a margin "x and y are alike".

    Better: supported if the interval of the probability of improvement lies above 0.5
    and a permutation test gives p < 0.05; not supported if the interval lies below 0.5
    or the test speaks for the opposite. Alike: supported if the interval of the
    difference lies within the margin, not supported if it lies outside. Everything else,
    and everything from fewer than four seeds, is inconclusive.
    """
    seeds = min(len(x), len(y))
    if margin is None:
        low, high = _interval(probability_of_improvement, x, y)
        p_value = _permutation_p(x, y)
        verdict = _better(low, high, p_value, _permutation_p(y, x))
    else:
        low, high = _interval(_mean_difference, x, y)
        p_value = None
        verdict = _alike(low, high, margin)
    return Comparison(
        verdict=verdict if seeds >= MIN_SEEDS else "inconclusive",
        probability=float(probability_of_improvement(x, y)),
        low=low,
        high=high,
        p_value=p_value,
        difference=float(_mean_difference(x, y)),
        x_iqm=interquartile_mean(x),
        y_iqm=interquartile_mean(y),
        seeds=seeds,
    )


def _better(low: float, high: float, p_value: float, p_opposite: float) -> Verdict:
    if low > 0.5 and p_value < ALPHA:
        return "supported"
    if high < 0.5 or p_opposite < ALPHA:
        return "not supported"
    return "inconclusive"


def _alike(low: float, high: float, margin: float) -> Verdict:
    if -margin < low and high < margin:
        return "supported"
    if low >= margin or high <= -margin:
        return "not supported"
    return "inconclusive"


def _mean_difference(x: Any, y: Any, axis: int = -1) -> Any:
    return x.mean(axis=axis) - y.mean(axis=axis)


def _interval(statistic: Any, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Percentiles of a bootstrap that draws the seeds of each method apart (stratified)."""
    if min(len(x), len(y)) < 2:  # one seed says nothing of its spread
        point = float(statistic(x, y))
        return point, point
    interval = scipy.stats.bootstrap(
        (x, y),
        statistic,
        n_resamples=RESAMPLES,
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return float(interval.low), float(interval.high)


def _permutation_p(x: np.ndarray, y: np.ndarray) -> float:
    """How often shuffled labels do at least as well as x does against y."""
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
