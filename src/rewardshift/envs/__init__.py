"""Environments, registered with Gymnasium, and the engines that run them side by side."""

import gymnasium as gym

SPARSE_CHEETAH = "rewardshift/SparseHalfCheetah-v0"
BIT_FLIP = "rewardshift/BitFlip-v0"

# By their paths, so that MuJoCo is not loaded before it is needed.
gym.register(
    id=SPARSE_CHEETAH,
    entry_point="rewardshift.envs.cheetah:SparseHalfCheetah",
    max_episode_steps=1000,
)
gym.register(id=BIT_FLIP, entry_point="rewardshift.envs.bits:BitFlip", max_episode_steps=16)
