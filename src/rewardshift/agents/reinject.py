"""Optimism given anew: values that are raised again while an agent learns."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import optax

from rewardshift.checks import Count, Finite, check
from rewardshift.learners import Learner
from rewardshift.networks import Lifting


@dataclass(frozen=True)
class Reinject:
    """Raises all values of an agent by a constant, again and again.

    The output biases of the value networks and of their targets are raised together. This gives the
    optimism of a shift anew: to raise every value by `c` is to lower the shift's bias once by
    `(1 - gamma) c`, exactly with `terminal="absorbing"` or where nothing terminates.

    Args:
        every: Updates between two raises.
        optimism: The constant, in the unit of the agent's values, which is that of a shift's
            `-b / (1 - gamma)`; with `"auto"`, of its `optimism`. A negative one makes the agent
            cautious anew.
    """

    every: Count = 10_000
    optimism: Finite = 1.0

    def __post_init__(self) -> None:
        check(self)

    def after_update(self, network: Lifting, values: Learner, targets: Any) -> tuple[Learner, Any]:
        """The value networks and their targets after an update, raised if it is time.

        Args:
            network: The network of both.
            values: The value networks; their optimiser counts the updates.
            targets: The parameters of the target networks.
        """
        updates = optax.tree_utils.tree_get(values.optimiser, "count")
        offset = jnp.where(updates % self.every == 0, self.optimism, 0.0)
        raised = network.lift(values.parameters, offset)
        return values._replace(parameters=raised), network.lift(targets, offset)
