"""Checks of agents' settings, with messages that name the setting and its value."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from rewardshift.shift import Shift


def check_number(agent: Any, name: str, requirement: str, holds: Callable[[float], bool]) -> None:
    """Refuses a number that is not as required; what is not finite never is."""
    value = getattr(agent, name)
    if not (math.isfinite(value) and holds(value)):
        raise ValueError(f"{name} must be {requirement}, got {value}")


def check_shifts(agent: Any) -> None:
    """Refuses members without a bias, or with one that is no shift."""
    if not agent.shifts:
        raise ValueError("shifts needs at least one bias, got ()")
    for bias in agent.shifts:
        Shift(bias, gamma=agent.gamma, terminal=agent.terminal)


def check_widths(hidden: Sequence[int]) -> None:
    """Refuses hidden layers without units."""
    if any(width < 1 for width in hidden):
        raise ValueError(f"hidden must be widths of 1 or more, got {tuple(hidden)}")


def check_hindsight(agent: Any) -> None:
    """Refuses hindsight together with what it does not go with."""
    if agent.hindsight is None:
        return
    if agent.n_step != 1:
        raise ValueError(f"hindsight needs n_step=1, got {agent.n_step}")
    if getattr(agent, "intrinsic", None) is not None:
        raise ValueError(
            "hindsight does not go with an intrinsic reward, which would be another goal's, got"
            f" {agent.intrinsic}"
        )
