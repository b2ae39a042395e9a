"""Targets: the one place where agents shift the environment's rewards."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Float

from rewardshift.replay import Batch
from rewardshift.shift import Shift


@runtime_checkable
class Members(Protocol):
    """The settings of an agent with members that its targets depend on."""

    @property
    def gamma(self) -> float:
        """The discount."""
        ...

    @property
    def n_step(self) -> int:
        """The number of rewards in a transition of a batch."""
        ...

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The lowest and the highest primal reward, or None if targets are not bounded."""
        ...


def _stack(members: Sequence[Shift], gamma: float) -> Shift:
    """The members' shifts as one shift for batches, with numbers of the shape `[member, 1]`."""
    bias, scale = (
        jnp.asarray([getattr(member, name) for member in members])[:, None]
        for name in ("bias", "scale")
    )
    return Shift(bias, scale, gamma, members[0].terminal)


def member_targets(
    agent: Members,
    shifts: Sequence[Shift],
    batch: Batch,
    value: Float[Array, "member batch"],
    bonus: Any = 0.0,
) -> Float[Array, "member batch"]:
    """`k_k r + b_k + gamma V_k(s')` for every member, with `V_k = 0` after a terminal state.

    Args:
        agent: The agent's settings.
        shifts: The members' shifts.
        batch: Primal transitions.
        value: Each member's value of the following state, on its own scale.
        bonus: A reward beside the environment's, already shifted.
    """
    shift = _stack(shifts, agent.gamma)
    if agent.n_step == 1:
        target = one_step_target(shift, batch, value, bonus)
    else:
        reward = shift.multistep_return(batch.reward, batch.steps, batch.terminated)
        discount = shift.gamma**batch.steps
        target = reward + bonus + discount * jnp.where(batch.terminated, 0.0, value)
    if agent.reward_range is None:
        return target
    possible = jnp.clip(target, *value_range(shift, agent.reward_range))
    return jnp.where(batch.terminated, target, possible)


def value_range(shift: Shift, rewards: tuple[float, float]) -> tuple[Any, Any]:
    """The lowest and the highest possible value: of a terminal reward, or of one reward forever.

    Args:
        shift: The shift, with the discount.
        rewards: The lowest and the highest primal reward.
    """
    assert shift.gamma is not None
    (low, low_end), (high, high_end) = (
        (shift.reward(reward, False) / (1 - shift.gamma), shift.reward(reward, True))
        for reward in rewards
    )
    return jnp.minimum(low, low_end), jnp.maximum(high, high_end)


def one_step_target(
    shift: Shift, batch: Batch, value: Float[Array, "*member batch"], bonus: Any = 0.0
) -> Float[Array, "*member batch"]:
    """`k r + b + gamma V(s')`, with `V = 0` after a terminal state.

    Args:
        shift: The shift, with the discount.
        batch: Primal transitions of one step.
        value: The value of the following state, on the shifted scale.
        bonus: As in `member_targets`.
    """
    reward = shift.reward(batch.reward, batch.terminated)
    return reward + bonus + shift.gamma * jnp.where(batch.terminated, 0.0, value)
