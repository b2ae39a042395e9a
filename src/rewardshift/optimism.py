"""Optimism and lifetime: two estimates mixed, how long a shift lasts, possible values."""

from typing import Any, NamedTuple

import numpy as np

from rewardshift.arrays import as_numbers
from rewardshift.checks import Count, Discount, Rate, checked


def optimistic_value(lower: Any, upper: Any, beta: Any) -> Any:
    """Optimism in the face of uncertainty: `(1 - beta) Q_LB + beta Q_UB`.

    Args:
        lower, upper: A cautious and an optimistic estimate, both on the primal scale.
        beta: The weight of the optimistic estimate, from 0 to 1.
    """
    lower, upper = as_numbers("lower", lower), as_numbers("upper", upper)
    beta = as_numbers("beta", beta)
    return (1 - beta) * lower + beta * upper


def equivalent_bias(b_plus: Any, b_minus: Any, beta: Any) -> Any:
    """Proposition 1: the single bias that equals the optimistic mix of two biases.

    Exact for tabular and linear estimators trained on fixed targets with plain
    gradient descent from equal initial values; an approximation elsewhere.

    Args:
        b_plus, b_minus: The bias of the cautious and of the optimistic estimate.
        beta: As in `optimistic_value`.
    """
    return optimistic_value(
        as_numbers("b_plus", b_plus), as_numbers("b_minus", b_minus), as_numbers("beta", beta)
    )


def lifetime(gamma: float, tau: float, every: int = 1, n_step: int = 1) -> float:
    """The lifetime of a shift: the updates after which 1/e of its offset is left where data is.

    The targets hold `gamma^n` times the offset of the target network, which moves towards them at
    the rate `tau`. So every move multiplies the offset by `1 - tau (1 - gamma^n)`. This is exact
    for a table or a linear estimator that follows its targets at once; a network's optimiser may
    be slower.

    Args:
        gamma: The discount.
        tau: The share by which the target network moves to the online one.
        every: Updates between two such moves.
        n_step: The steps of a multi-step return.

    >>> round(lifetime(gamma=0.99, tau=0.005, every=2))  # TD3, in the settings of its authors
    40000
    """
    discount, share = checked("gamma", Discount, gamma), checked("tau", Rate, tau)
    passed_on = discount ** checked("n_step", Count, n_step)
    return checked("every", Count, every) / (share * (1 - passed_on))


class Bounds(NamedTuple):
    """The lowest and the highest value that rewards like these can add up to."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """The distance between the two."""
        return self.high - self.low

    def optimism(self, value: float) -> float | None:
        """The place of a value, 0 at the lowest and 1 at the highest; None if these are equal."""
        return (value - self.low) / self.width if self.width > 0 else None


def value_bounds(reward: np.ndarray, terminated: np.ndarray, gamma: float) -> Bounds:
    """The bounds of the discounted sums of such rewards.

    An episode collects rewards of ordinary steps, forever or until a terminal step. Its return is
    a mix of what the best ordinary step pays forever and of what the best terminal step pays once.

    >>> value_bounds(np.array([0.0, 0.0, 1.0]), np.array([False, False, True]), 0.99)
    Bounds(low=0.0, high=1.0)
    """
    ended = np.asarray(terminated, bool)
    forever, once = reward[~ended] / (1 - gamma), reward[ended]
    parts = [part for part in (forever, once) if part.size]
    low, high = min(part.min() for part in parts), max(part.max() for part in parts)
    return Bounds(float(low), float(high))
