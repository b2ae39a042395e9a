"""The one place where the environment's rewards are shifted: what is to be learned from a batch."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from rewardshift.replay import Batch
from rewardshift.shift import Shift, Terminal


def member_targets(
    batch: Batch,
    value: Float[Array, "member batch"],
    *,
    shifts: tuple[float, ...],
    gamma: float,
    terminal: Terminal,
    n_step: int = 1,
    bonus: Any = 0.0,
) -> Float[Array, "member batch"]:
    """`r + b_k + gamma V_k(s')` for every member, nothing after a terminal state.

    Args:
        batch: Primal transitions.
        value: What each member thinks of the state that followed, on its own scale.
        shifts: The bias of each member.
        gamma, terminal: As in `Shift`.
        n_step: Whether the batch has sums of rewards, more than 1, or single ones.
        bonus: A reward beside the environment's, shifted already.
    """
    shift = Shift(jnp.asarray(shifts)[:, None], 1.0, gamma, terminal)
    if n_step == 1:
        reward = shift.reward(batch.reward, batch.terminated)
        discount: Any = gamma
    else:
        reward = shift.multistep_return(batch.reward, batch.steps, batch.terminated)
        discount = gamma**batch.steps
    return reward + bonus + discount * jnp.where(batch.terminated, 0.0, value)
