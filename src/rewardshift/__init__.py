"""Reward shifting, `r' = k r + b`, for value-based agents."""

from rewardshift.agents.dqn import DQN
from rewardshift.agents.intrinsic import RND, CountBonus
from rewardshift.agents.td3 import TD3, ddpg
from rewardshift.shift import (
    Shift,
    equivalent_bias,
    optimistic_value,
    suggest_shift,
)
from rewardshift.training.online import OnlineBudget
from rewardshift.training.runs import resume, train
from rewardshift.wrappers import ShiftReward, VectorShiftReward

__all__ = [
    "DQN",
    "RND",
    "TD3",
    "CountBonus",
    "OnlineBudget",
    "Shift",
    "ShiftReward",
    "VectorShiftReward",
    "ddpg",
    "equivalent_bias",
    "optimistic_value",
    "resume",
    "suggest_shift",
    "train",
]
