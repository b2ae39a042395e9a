"""What the agents that learn from fixed data share."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

from jaxtyping import Array, Float

from rewardshift.agents.shifts import as_members
from rewardshift.checks import Count, Discount, Rate, check
from rewardshift.networks import twin_values
from rewardshift.optimism import lifetime
from rewardshift.replay import as_floats
from rewardshift.shift import Shift


@dataclass(frozen=True, kw_only=True)
class Offline:
    """Settings of every agent that learns from fixed data.

    Args:
        shift: What is done to the rewards: a number or a `Shift`. Above 0 it is caution.
        gamma: The discount.
        batch_size: Transitions per update.
        tau: How far the target networks move at every update.
    """

    shift: float | Shift = 0.0
    gamma: Discount = 0.99
    batch_size: Count = 256
    tau: Rate = 0.005

    continuous: ClassVar[bool] = True
    period: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)
        (shift,) = as_members(self.shift, self.gamma)
        object.__setattr__(self, "shift", shift)

    @property
    def value_shift(self) -> Shift:
        """The shift on whose scale the values are, with the agent's discount."""
        return replace(cast("Shift", self.shift), gamma=self.gamma)

    @property
    def lifetime(self) -> float:
        """How many updates a shift lasts; see `rewardshift.lifetime`."""
        return lifetime(self.gamma, self.tau)

    def action_value(
        self, state: Any, observation: Array, action: Float[Array, "batch size"]
    ) -> Float[Array, " batch"]:
        """What the agent thinks of actions, on the shifted scale: the lower of the twins."""
        return twin_values(state.critics, as_floats(observation), action).min(axis=0)
