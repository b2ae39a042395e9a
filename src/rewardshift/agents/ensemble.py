"""Members of the actor-critic agents: critics with one shift each, one of which leads."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from rewardshift.agents.base import Biases
from rewardshift.agents.learner import Learner
from rewardshift.agents.networks import Network
from rewardshift.agents.selection import Mixing
from rewardshift.agents.settings import Online
from rewardshift.errors import InputError, shown


def mixing_weights(selection: Mixing, biases: Biases) -> Float[Array, " member"]:
    """The weight of each member's value in the mix, which has the mean of the members' scales."""
    bias, scale = biases
    weights = jnp.asarray(selection.weights(bias / scale))
    if weights.shape != bias.shape:
        raise InputError(
            f"weights of {shown(selection)} must return one number for each of {bias.size}"
            f" members, got the shape {weights.shape}"
        )
    return weights / scale * scale.mean()


def member_values(
    network: Network,
    critics: Any,
    observation: Float[Array, "batch features"],
    action: Float[Array, "one batch size"],
) -> Float[Array, "member twin batch"]:
    """Every critic's values of actions; `one` is 1 if the members share the actions."""
    axes = jax.tree.leaves(critics)[0].shape[:2]  # members and twins
    seen = jnp.broadcast_to(observation, (*axes, *observation.shape))
    actions = jnp.broadcast_to(action[:, None], (*axes, *action.shape[1:]))
    return jax.vmap(jax.vmap(network.apply))(critics, seen, actions)[..., 0]


def leading_value(
    agent: Online,
    state: Any,
    critics: Any,
    observation: Float[Array, "batch features"],
    action: Float[Array, "batch size"],
) -> Float[Array, " batch"]:
    """The value that a policy shared by all members maximises: the leader's, or a mix.

    A member's value is the lowest of its critics' values.
    """
    if isinstance(agent.selection, Mixing):
        values = member_values(agent.network, critics, observation, action[None]).min(axis=1)
        return mixing_weights(agent.selection, state.biases) @ values
    led = jax.tree.map(lambda leaf: leaf[state.lead.leader[None]], critics)
    return member_values(agent.network, led, observation, action[None])[0].min(axis=0)


def improve_critics(
    agent: Online,
    critics: Learner,
    inputs: tuple[Array, Array],
    target: Float[Array, "member batch"],
) -> tuple[Learner, dict[str, Float[Array, ""]]]:
    """One step of every critic towards its member's targets, and the metrics of that step.

    Args:
        agent: The agent's settings.
        critics: The critics.
        inputs: Observations and actions of the batch.
        target: The members' targets.
    """
    observation, action = inputs

    def loss(critics: Any) -> tuple[Array, Array]:
        values = member_values(agent.network, critics, observation, action[None])
        errors = (values - target[:, None]) ** 2
        return errors.mean(axis=2).sum(), values.mean()

    (total, q), gradient = jax.value_and_grad(loss, has_aux=True)(critics.parameters)
    return critics.step(gradient, optax.adam(agent.learning_rate)), {"loss": total, "q": q}
