"""What the agents that learn from fixed data share."""

from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Array, Float

from rewardshift.agents.checks import check_number
from rewardshift.networks import twin_values
from rewardshift.replay import as_floats
from rewardshift.settings import check_types
from rewardshift.shift import Shift, Terminal, lifetime


@dataclass(frozen=True, kw_only=True)
class Offline:
    """Settings of every agent that learns from fixed data.

    Args:
        bias: The constant that is added to every reward. Positive: caution.
        scale: The factor on every reward.
        terminal: What happens at a terminal state; see `Shift`.
        gamma: The discount.
        batch_size: Transitions per update.
        tau: How far the target networks move at every update.
    """

    bias: float = 0.0
    scale: float = 1.0
    terminal: Terminal = "zero"
    gamma: float = 0.99
    batch_size: int = 256
    tau: float = 0.005

    continuous: ClassVar[bool] = True
    period: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_types(self)
        _ = self.shift  # refuses what is none
        check_number(self, "batch_size", "1 or more", lambda value: value >= 1)
        check_number(self, "tau", "in (0, 1]", lambda value: 0 < value <= 1)

    @property
    def shift(self) -> Shift:
        """What is done to the rewards."""
        return Shift(self.bias, self.scale, self.gamma, self.terminal)

    @property
    def lifetime(self) -> float:
        """How many updates a shift lasts; see `rewardshift.shift.lifetime`."""
        return lifetime(self.gamma, self.tau)

    def action_value(
        self, state: Any, observation: Array, action: Float[Array, "batch size"]
    ) -> Float[Array, " batch"]:
        """What the agent thinks of actions, on the shifted scale: the lower of the twins."""
        return twin_values(state.critics, as_floats(observation), action).min(axis=0)
