"""Reward shifting, `r' = k r + b`, for value-based agents."""

from rewardshift.shift import (
    Shift,
    equivalent_bias,
    optimistic_value,
    suggest_shift,
)
from rewardshift.wrappers import ShiftReward, VectorShiftReward

__all__ = [
    "Shift",
    "ShiftReward",
    "VectorShiftReward",
    "equivalent_bias",
    "optimistic_value",
    "suggest_shift",
]
