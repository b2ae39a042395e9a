"""The check that all budgets share."""

from typing import Any

from rewardshift.errors import InputError
from rewardshift.settings import check_types


def check_budget(budget: Any) -> None:
    """Refuses fields of a wrong type, and whole numbers below 1."""
    check_types(budget)
    for name, field in budget.__dataclass_fields__.items():
        value = getattr(budget, name)
        if field.type is int and value < 1:
            raise InputError(f"{name} must be a whole number of 1 or more, got {value!r}")
