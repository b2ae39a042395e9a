"""Environments, registered with Gymnasium, and the engines that run them side by side."""

import gymnasium as gym

SPARSE_CHEETAH = "rewardshift/SparseHalfCheetah-v0"

# By its path, so that MuJoCo is not loaded before it is needed.
gym.register(
    id=SPARSE_CHEETAH,
    entry_point="rewardshift.envs.cheetah:SparseHalfCheetah",
    max_episode_steps=1000,
)
