"""What the agents that learn from fixed data share."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

from jaxtyping import Array, Float

from rewardshift.agents.shifts import as_members
from rewardshift.checks import Count, Discount, Rate, check
from rewardshift.networks import MLP, Initial, Network, twin_values
from rewardshift.optimism import lifetime
from rewardshift.replay import as_floats
from rewardshift.shift import Shift


@dataclass(frozen=True, kw_only=True)
class Offline:
    """Settings of every agent that learns from fixed data.

    Args:
        shift: The shift of the rewards: a number, or in Python also a `Shift`. A shift above 0
            makes the agent cautious.
        gamma: The discount.
        batch_size: Transitions per update.
        tau: The share by which an update moves the target networks towards the learned ones.
        network: The networks of the policy and the critics.
        initial: `"zero"` starts the output layer of the critics at zero, so that every value is
            exactly 0 at first.
    """

    shift: float | Shift = 0.0
    gamma: Discount = 0.99
    batch_size: Count = 256
    tau: Rate = 0.005
    network: Network = field(default_factory=MLP)
    initial: Initial = "random"

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
        """The values of actions, on the shifted scale: the lower of the twins."""
        return twin_values(
            self.network, state.critics.parameters, as_floats(observation), action
        ).min(axis=0)
