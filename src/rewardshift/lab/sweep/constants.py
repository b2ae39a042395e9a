"""The constants that a sweep compares: numbers, `"auto"` and members."""

from collections.abc import Sequence
from typing import Annotated, Literal

from rewardshift.auto import AUTO
from rewardshift.checks import Finite, Must
from rewardshift.errors import InputError, shown
from rewardshift.lab.figure import Metric

NONE = "none"  # the method without a shift
# The metrics that compare a constant with none, and their words.
METRICS: dict[Metric, str] = {"auc": "over the whole training", "final": "at its end"}

# The constants of the members of one agent.
Members = Annotated[tuple[Finite, ...], Must("two or more numbers", lambda given: len(given) > 1)]
Constant = Finite | Literal["auto"] | Members


def in_order(constants: Sequence[Constant]) -> tuple[Constant, ...]:
    """No shift, then the numbers from the least to the most optimistic, then the others."""
    given = constants if 0.0 in constants else (0.0, *constants)
    numbers = [one for one in given if isinstance(one, float)]
    numbers.sort(key=lambda one: (one != 0, -one))
    ordered = (*numbers, *(one for one in given if not isinstance(one, float)))
    if len({method_name(one) for one in ordered}) < len(ordered):
        raise InputError(f"the constants of a sweep must differ, got {shown(tuple(constants))}")
    if len(ordered) < 2:
        raise InputError("a sweep needs a constant other than 0, which is no shift")
    return ordered


def method_name(constant: Constant) -> str:
    """The name of the method with this constant."""
    if isinstance(constant, tuple):
        return ",".join(f"{bias:.6g}" for bias in constant)
    if constant == AUTO:
        return AUTO
    return NONE if constant == 0 else f"{constant:.6g}"


def in_words(constant: Constant) -> str:
    """A constant in words."""
    if isinstance(constant, tuple):
        return f"members {method_name(constant).replace(',', ', ')}"
    return method_name(constant) if constant in (0, AUTO) else f"b = {constant:.6g}"
