"""Reward shifting, `r' = k r + b`, for value-based agents."""

from rewardshift.agents.bcq import BCQ
from rewardshift.agents.cql import CQL
from rewardshift.agents.dqn import DQN
from rewardshift.agents.intrinsic import RND, CountBonus
from rewardshift.agents.sac import SAC
from rewardshift.agents.td3 import TD3, ddpg
from rewardshift.data import Dataset, Subset, load_dataset
from rewardshift.errors import InputError
from rewardshift.hindsight import Hindsight
from rewardshift.networks import MLP, Convolution
from rewardshift.shift import (
    Shift,
    equivalent_bias,
    lifetime,
    optimistic_value,
    suggest_shift,
)
from rewardshift.training.offline import OfflineBudget
from rewardshift.training.online import OnlineBudget
from rewardshift.training.runs import resume, train, train_offline
from rewardshift.wrappers import ShiftReward, VectorShiftReward

__all__ = [
    "BCQ",
    "CQL",
    "DQN",
    "MLP",
    "RND",
    "SAC",
    "TD3",
    "Convolution",
    "CountBonus",
    "Dataset",
    "Hindsight",
    "InputError",
    "OfflineBudget",
    "OnlineBudget",
    "Shift",
    "ShiftReward",
    "Subset",
    "VectorShiftReward",
    "ddpg",
    "equivalent_bias",
    "lifetime",
    "load_dataset",
    "optimistic_value",
    "resume",
    "suggest_shift",
    "train",
    "train_offline",
]
