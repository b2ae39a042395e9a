"""Stable-Baselines3 and SBX: the shift, its check, members, curiosity, and trials."""

from rewardshift.integrations.sb3_curiosity import CuriousReplayBuffer
from rewardshift.integrations.sb3_members import RRSDQN, RRSSAC, RRSTD3
from rewardshift.integrations.sb3_trial import Trial
from rewardshift.integrations.sb3_wrapper import VecShiftReward, check

__all__ = [
    "RRSDQN",
    "RRSSAC",
    "RRSTD3",
    "CuriousReplayBuffer",
    "Trial",
    "VecShiftReward",
    "check",
]
