"""Checks of agents' settings, with messages that name the setting and its value."""

from collections.abc import Callable, Sequence
from typing import Any


def check_number(agent: Any, name: str, requirement: str, holds: Callable[[float], bool]) -> None:
    """Refuses a setting that is not as required; NaN never is."""
    value = getattr(agent, name)
    if not holds(value):
        raise ValueError(f"{name} must be {requirement}, got {value}")


def check_widths(hidden: Sequence[int]) -> None:
    """Refuses hidden layers without units."""
    if any(width < 1 for width in hidden):
        raise ValueError(f"hidden must be widths of 1 or more, got {tuple(hidden)}")
