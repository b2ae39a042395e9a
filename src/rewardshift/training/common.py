"""What the loops, online and offline, share."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rewardshift.checks import check
from rewardshift.errors import InputError

# Called with the step and the rows of `metrics.csv` so far.
OnProgress = Callable[[int, list[Any]], None]


MOST_SEEDS = 2**16  # of one run, or of one figure


class TrainingError(RuntimeError):
    """Training went wrong in a way that going on would not mend."""


def check_budget(budget: Any) -> None:
    """Refuses what is not of its type, and whole numbers below 1."""
    check(budget)
    for name, field in budget.__dataclass_fields__.items():
        value = getattr(budget, name)
        if field.type is int and value < 1:
            raise InputError(f"{name} must be a whole number of 1 or more, got {value!r}")


def finite_metrics(
    metrics: dict[str, Any], step: int, seeds: tuple[int, ...]
) -> dict[str, list[float]]:
    """The metrics of every seed; refuses to go on where one is not finite."""
    seen = {name: np.asarray(metrics[name]).tolist() for name in metrics}
    for name, values in seen.items():
        if not np.isfinite(values).all():
            seed = seeds[int(np.flatnonzero(~np.isfinite(values))[0])]
            raise TrainingError(f"{name} is not finite at step {step} of seed {seed}")
    return seen
