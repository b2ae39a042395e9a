"""Environments, registered with Gymnasium, and tasks as agents see them."""

import gymnasium as gym

SPARSE_PENDULUM = "rewardshift/SparsePendulum-v0"
CLIFF_WALKING = "rewardshift/CliffWalking-v0"
FROZEN_LAKE = "rewardshift/FrozenLake8x8-v0"
RUNNERS = ("Swimmer", "Hopper", "Walker2d")
BIT_FLIP = "rewardshift/BitFlip-v0"
DEEP_SEA = "rewardshift/DeepSea-v0"
DEEP_SEA_SIZES = (10, 20, 30, 40, 50)
FOUR_ROOMS_SIZES = (7, 9)


def deep_sea_id(size: int) -> str:
    """The registered name of a size."""
    return f"rewardshift/DeepSea-{size}-v0"


def four_rooms_id(size: int) -> str:
    """The registered name of a size."""
    return f"rewardshift/FourRooms-{size}x{size}-v0"


def sparse_runner_id(robot: str) -> str:
    """The registered name of a robot that is paid for moving forward alone."""
    return f"rewardshift/Sparse{robot}-v0"


SPARSE_CHEETAH = sparse_runner_id("HalfCheetah")

# Registered by path, so that MuJoCo and MiniGrid load only when they are needed.
gym.register(
    id=SPARSE_PENDULUM,
    entry_point="rewardshift.envs.control:SparsePendulum",
    max_episode_steps=200,
)
for _robot in ("HalfCheetah", *RUNNERS):
    gym.register(
        id=sparse_runner_id(_robot),
        entry_point="rewardshift.envs.control:SparseRunner",
        kwargs={"robot": _robot},
        max_episode_steps=1000,
    )
# Gymnasium's CliffWalking has no time limit, and random play does not end it.
gym.register(
    id=CLIFF_WALKING,
    entry_point="gymnasium.envs.toy_text.cliffwalking:CliffWalkingEnv",
    max_episode_steps=200,
)
gym.register(
    id=FROZEN_LAKE,
    entry_point="gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv",
    kwargs={"map_name": "8x8", "is_slippery": False},
    max_episode_steps=200,
)
gym.register(id=BIT_FLIP, entry_point="rewardshift.envs.goals:BitFlip", max_episode_steps=16)
gym.register(id=DEEP_SEA, entry_point="rewardshift.envs.deep_sea:DeepSea")
for _size in DEEP_SEA_SIZES:
    gym.register(
        id=deep_sea_id(_size),
        entry_point="rewardshift.envs.deep_sea:DeepSea",
        kwargs={"size": _size},
    )
for _size in FOUR_ROOMS_SIZES:
    gym.register(
        id=four_rooms_id(_size),
        entry_point="rewardshift.envs.minigrid:SmallFourRooms",
        kwargs={"size": _size},
    )
