"""The ensemble of critics that `TD3` and `SAC` share: one pair, or more, for each shift.

This is Random Reward Shift, Algorithm 1 of https://arxiv.org/abs/2209.07288. The algorithm as
printed leaves out the discount and the second critic; we follow its authors' code, which has both.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from rewardshift.agents.learner import Learner
from rewardshift.agents.networks import init_several
from rewardshift.agents.selection import Mixing
from rewardshift.agents.settings import Online
from rewardshift.envs.tasks import TaskSpec


@dataclass(frozen=True, kw_only=True)
class ActorCritic(Online):
    """An agent with continuous actions, whose critics have axes over the members and the twins."""

    continuous: ClassVar[bool] = True

    def init_critics(self, key: PRNGKeyArray, spec: TaskSpec, twins: int) -> Any:
        """The critics' parameters, `[member, twin, ...]`."""
        task = (spec, spec.action_size, 1, self.initial)
        return init_several(self.network, key, (len(self.members), twins), task)

    def member_values(
        self,
        critics: Any,
        observation: Float[Array, "batch features"],
        action: Float[Array, "one batch size"],
    ) -> Float[Array, "member twin batch"]:
        """Every critic's values of actions; `one` is 1 if the members share the actions."""
        axes = jax.tree.leaves(critics)[0].shape[:2]  # members and twins
        observations = jnp.broadcast_to(observation, (*axes, *observation.shape))
        actions = jnp.broadcast_to(action[:, None], (*axes, *action.shape[1:]))
        return jax.vmap(jax.vmap(self.network.apply))(critics, observations, actions)[..., 0]

    def values(
        self, state: Any, observation: Array, action: Array | None = None
    ) -> Float[Array, "member batch"]:
        """Each member's values of actions, on its own scale: the lowest of its twins."""
        assert action is not None
        inputs = self.inputs(state, observation)
        return self.member_values(state.critics.parameters, inputs, action[None]).min(axis=1)

    def leading_value(
        self,
        state: Any,
        critics: Any,
        observation: Float[Array, "batch features"],
        action: Float[Array, "batch size"],
    ) -> Float[Array, " batch"]:
        """The value that a policy shared by all members maximises: the leader's, or a mix.

        A member's value is the lowest of its critics' values.
        """
        if isinstance(self.selection, Mixing):
            values = self.member_values(critics, observation, action[None]).min(axis=1)
            return self.mixing_weights(state.biases) @ values
        leader = jax.tree.map(lambda leaf: leaf[state.lead.leader[None]], critics)
        return self.member_values(leader, observation, action[None])[0].min(axis=0)

    def improve_critics(
        self,
        critics: Learner,
        observation: Float[Array, "batch features"],
        action: Float[Array, "batch size"],
        target: Float[Array, "member batch"],
    ) -> tuple[Learner, dict[str, Float[Array, ""]]]:
        """One step of every critic towards its member's targets, and the metrics of that step."""

        def loss(critics: Any) -> tuple[Array, Array]:
            values = self.member_values(critics, observation, action[None])
            # A sum over critics: each then has the gradient that it would have alone.
            return ((values - target[:, None]) ** 2).mean(axis=2).sum(), values.mean()

        (total, q), gradient = jax.value_and_grad(loss, has_aux=True)(critics.parameters)
        return critics.step(gradient, optax.adam(self.learning_rate)), {"loss": total, "q": q}

    def exploration(self, step: int, steps: int) -> bool:
        """Whether the step is in the warm-up, with random actions."""
        return step < self.warm_up
