"""What the agents that learn from fixed data share: settings, and twin critics for one shift."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rewardshift.agents.base import Agent, as_members
from rewardshift.agents.networks import MLP, Initial, Network
from rewardshift.auto import AUTO, Cautious
from rewardshift.checks import Rate, check
from rewardshift.errors import InputError
from rewardshift.optimism import lifetime
from rewardshift.shift import Shift


@dataclass(frozen=True, kw_only=True)
class OfflineAgent(Agent):
    """Settings of every agent that learns from fixed data.

    Args:
        shift: The shift of the rewards: a number, or in Python also a `Shift`. A positive shift
            makes the agent cautious. `"auto"` takes the smallest shift with which values start no
            higher than the lowest value that is possible with the rewards of the data.
        gamma: The discount.
        batch_size: Transitions per update.
        tau: The share by which an update moves the target networks towards the learned ones.
        network: The networks of the policy and the critics.
        initial: `"zero"` starts the output layer of the critics at zero, so that every value is
            exactly 0 at first.
    """

    shift: float | Shift | Cautious | Literal["auto"] = 0.0
    tau: Rate = 0.005
    network: Network = field(default_factory=MLP)
    initial: Initial = "random"

    continuous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check(self)
        given: Any = Cautious() if self.shift == AUTO else self.shift
        shift = given if isinstance(given, Cautious) else as_members(given, self.gamma)[0]
        if shift.terminal == "goal":
            raise InputError(
                f"{type(self).__name__} takes terminal='zero' or 'absorbing', got 'goal'"
            )
        object.__setattr__(self, "shift", shift)

    @property
    def members(self) -> tuple[Shift, ...]:
        """The shift; empty if it is `"auto"`, which a data set decides, in `train_offline`."""
        return (self.shift,) if isinstance(self.shift, Shift) else ()

    @property
    def lifetime(self) -> float:
        """The lifetime of a shift, in updates; see `rewardshift.lifetime`."""
        return lifetime(self.gamma, self.tau)

    def twin_values(
        self,
        critics: Any,
        observation: Float[Array, "batch features"],
        action: Float[Array, "batch *candidates size"],
    ) -> Float[Array, "twin batch *candidates"]:
        """The values of actions, by each of the two critics."""
        apply = jax.vmap(self.network.apply, in_axes=(0, None, None))
        return apply(critics, observation, action)[..., 0]

    def values(
        self, state: Any, observation: Array, action: Array | None = None
    ) -> Float[Array, "1 batch"]:
        """The values of actions, on the shifted scale: the lower of the twins."""
        assert action is not None
        twins = self.twin_values(state.critics.parameters, observation.astype(jnp.float32), action)
        return twins.min(axis=0, keepdims=True)
