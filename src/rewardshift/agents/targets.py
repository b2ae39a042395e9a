"""Targets: the one place where agents shift the environment's rewards.

The shift is `r' = k r + b`, Remark 1 of https://arxiv.org/abs/2209.07288. The tabular agent has a
line of its own for it, because the numbers of its shift are axes of the program. Targets of several
steps are those of https://arxiv.org/abs/1710.02298, section "Multi-step learning": they take the
actions of the replay as they are.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from rewardshift.agents.base import Agent, Batch, Biases
from rewardshift.shift import Shift


def member_targets(
    agent: Agent,
    biases: Biases,
    batch: Batch,
    value: Float[Array, "member batch"],
    bonus: Any = 0.0,
) -> Float[Array, "member batch"]:
    """`k_k r + b_k + gamma V_k(s')` for every member, with `V_k = 0` after a terminal state.

    Args:
        agent: The agent's settings.
        biases: The bias and the scale of each member.
        batch: Primal transitions.
        value: Each member's value of the following state, on its own scale.
        bonus: A reward beside the environment's, already shifted.
    """
    bias, scale = (numbers[:, None] for numbers in biases)
    shift = Shift(bias, scale, agent.gamma, agent.members[0].terminal)
    if agent.n_step == 1:
        reward, discount = shift.reward(batch.reward, batch.terminated), shift.gamma
    else:
        reward = shift.multistep_return(batch.reward, batch.steps, batch.terminated)
        discount = shift.gamma**batch.steps
    target = reward + bonus + discount * jnp.where(batch.terminated, 0.0, value)
    if agent.reward_range is None:
        return target
    possible = jnp.clip(target, *value_range(shift, agent.reward_range))
    return jnp.where(batch.terminated, target, possible)


def value_range(shift: Shift, rewards: tuple[float, float]) -> tuple[Any, Any]:
    """The lowest and the highest possible value: of a terminal reward, or of one reward forever."""
    assert shift.gamma is not None
    (low, low_end), (high, high_end) = (
        (shift.reward(reward, False) / (1 - shift.gamma), shift.reward(reward, True))
        for reward in rewards
    )
    return jnp.minimum(low, low_end), jnp.maximum(high, high_end)
