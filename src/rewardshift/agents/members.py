"""Members of the actor-critic agents: critics with one shift each, one of which leads."""

from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from rewardshift.agents.selection import Lead, Mixing, Selection, next_lead
from rewardshift.errors import InputError, shown
from rewardshift.learners import Learner
from rewardshift.networks import Network
from rewardshift.shift import Shift


@runtime_checkable
class Led(Protocol):
    """The settings of an agent with members, one of which the policy follows."""

    @property
    def network(self) -> Network:
        """The network of every critic."""
        ...

    @property
    def learning_rate(self) -> float:
        """Adam's learning rate."""
        ...

    @property
    def members(self) -> tuple[Shift, ...]:
        """The shift of each member."""
        ...

    @property
    def selection(self) -> Selection:
        """Chooses the leading member, or mixes all of them."""
        ...

    @property
    def lead_episodes(self) -> int:
        """The minimum number of episodes that a member leads."""
        ...

    @property
    def lead_steps(self) -> int:
        """The minimum number of steps that a member leads."""
        ...


def keep_leading(agent: Led, lead: Lead, draw: Float[Array, ""], ended: Any, total: Any) -> Lead:
    """The lead after a step. A selection that mixes keeps it as it is.

    Args:
        agent: The agent's settings.
        lead: The lead before the step.
        draw: A random number in [0, 1).
        ended: Whether the step ended an episode.
        total: The return of the episode so far.
    """
    if isinstance(agent.selection, Mixing):
        return lead
    least = (agent.lead_episodes, agent.lead_steps)
    return next_lead(lead, agent.selection, draw, (ended, total), least)


def mixing_weights(selection: Mixing, members: tuple[Shift, ...]) -> Float[Array, " member"]:
    """The weight of each member's value in the mix, which has the mean of the members' scales."""
    weights = jnp.asarray(selection.weights(tuple(m.bias / m.scale for m in members)))
    if weights.shape != (len(members),):
        raise InputError(
            f"weights of {shown(selection)} must return one number for each of {len(members)}"
            f" members, got the shape {weights.shape}"
        )
    scales = jnp.asarray([m.scale for m in members])
    return weights / scales * scales.mean()


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
    agent: Led,
    critics: Any,
    leader: Int[Array, ""],
    observation: Float[Array, "batch features"],
    action: Float[Array, "batch size"],
) -> Float[Array, " batch"]:
    """The value that a policy shared by all members maximises: the leader's, or a mix.

    A member's value is the lowest of its critics' values.
    """
    if isinstance(agent.selection, Mixing):
        values = member_values(agent.network, critics, observation, action[None]).min(axis=1)
        return mixing_weights(agent.selection, agent.members) @ values
    led = jax.tree.map(lambda leaf: leaf[leader[None]], critics)
    return member_values(agent.network, led, observation, action[None])[0].min(axis=0)


def improve_critics(
    agent: Led,
    critics: Learner,
    inputs: tuple[Array, Array],
    target: Float[Array, "member batch"],
    weight: Float[Array, "#member #batch"],
) -> tuple[Learner, dict[str, Float[Array, ""]]]:
    """One step of every critic towards its member's targets, and the metrics of that step.

    Args:
        agent: The agent's settings.
        critics: The critics.
        inputs: Observations and actions of the batch.
        target: The members' targets.
        weight: The weight of each transition for each member.
    """
    observation, action = inputs

    def loss(critics: Any) -> tuple[Array, Array]:
        values = member_values(agent.network, critics, observation, action[None])
        errors = (values - target[:, None]) ** 2 * weight[:, None]
        return errors.mean(axis=2).sum(), values.mean()

    (total, q), gradient = jax.value_and_grad(loss, has_aux=True)(critics.parameters)
    return critics.step(gradient, optax.adam(agent.learning_rate)), {"loss": total, "q": q}
