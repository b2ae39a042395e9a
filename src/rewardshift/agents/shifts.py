"""The shifts that an agent takes: one, one for each member, or a rule that chooses them."""

from dataclasses import replace
from typing import Any, Literal

from rewardshift.agents.contract import Adapting, WithMembers
from rewardshift.auto import Rule
from rewardshift.errors import InputError
from rewardshift.shift import Shift, as_shift, without_arrays

ShiftLike = float | Shift | tuple[float | Shift, ...] | Rule | Literal["auto"]


def as_members(value: float | Shift | tuple[float | Shift, ...], gamma: float) -> tuple[Shift, ...]:
    """The shifts of an agent's members. They have no discount: it belongs to the agent.

    Args:
        value: A number, a `Shift`, or several of these, one for each member.
        gamma: The agent's discount. A `Shift` with another discount is refused.
    """
    given = value if isinstance(value, tuple) else (value,)
    members = tuple(_without_discount(without_arrays(as_shift(one)), gamma) for one in given)
    if not members:
        raise InputError("shift must be at least one number or Shift, got ()")
    if len({member.terminal for member in members}) > 1:
        raise InputError(f"the members of shift must agree in terminal, got {members}")
    return members


def shifts_now(agent: WithMembers, state: Any) -> tuple[Shift, ...]:
    """The members' shifts in a state of an agent."""
    return agent.shifts(state) if isinstance(agent, Adapting) else agent.members


def _without_discount(shift: Shift, gamma: float) -> Shift:
    if shift.gamma not in (None, gamma):
        raise InputError(
            f"the discount of shift must be the agent's, gamma={gamma}, or left out, got"
            f" {shift.gamma}"
        )
    return shift if shift.gamma is None else replace(shift, gamma=None)
