"""Stable-Baselines3 and SBX: the shift, its check, members, curiosity, and a log of estimates."""

from rewardshift.integrations.sb3_curiosity import CuriousReplayBuffer
from rewardshift.integrations.sb3_estimates import OverestimationCallback
from rewardshift.integrations.sb3_members import RRSDQN, RRSSAC, RRSTD3
from rewardshift.integrations.sb3_trial import Trial
from rewardshift.integrations.sb3_wrapper import VecShiftReward, check

__all__ = [
    "RRSDQN",
    "RRSSAC",
    "RRSTD3",
    "CuriousReplayBuffer",
    "OverestimationCallback",
    "Trial",
    "VecShiftReward",
    "check",
]
