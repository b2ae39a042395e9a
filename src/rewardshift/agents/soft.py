"""The parts of soft actor-critic that SAC and CQL share: a random policy and its temperature."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from rewardshift.networks import MLP, adam_step, apply_mlp, squash


class Multiplier(NamedTuple):
    """A positive number that is tuned until something is where it should be."""

    log: Float[Array, ""]
    optimiser: optax.OptState


def init_multiplier(rate: float) -> Multiplier:
    """A multiplier of 1.

    Args:
        rate: Adam's learning rate.
    """
    log = jnp.zeros(())
    return Multiplier(log, optax.adam(rate).init(log))


def tune(multiplier: Multiplier, slope: Float[Array, ""], rate: float) -> Multiplier:
    """One step of a multiplier, by the slope of the loss in its logarithm."""
    log, optimiser = adam_step(rate, slope, multiplier.optimiser, multiplier.log)
    return Multiplier(log, optimiser)


def tune_temperature(
    temperature: Multiplier,
    log_density: Float[Array, " batch"],
    target_entropy: float,
    rate: float,
) -> Multiplier:
    """One step of the temperature: up if the policy's entropy is below its target.

    Args:
        temperature: The temperature so far.
        log_density: The log of the density of actions that the policy has drawn.
        target_entropy: The entropy that the policy should have.
        rate: Adam's learning rate.
    """
    return tune(temperature, -(log_density.mean() + target_entropy), rate)


def middle(
    policy: MLP, observation: Float[Array, "*batch features"]
) -> Float[Array, "*batch size"]:
    """The action in the middle of the policy, which acts greedily."""
    mean, _ = jnp.split(apply_mlp(policy, observation), 2, axis=-1)
    return jnp.tanh(mean)


def draw_actions(
    policy: MLP,
    observation: Float[Array, "*batch features"],
    noise: Float[Array, "*batch size"],
) -> tuple[Float[Array, "*batch size"], Float[Array, "*batch"]]:
    """Actions of the policy and the log of their density; see `squash`."""
    return squash(apply_mlp(policy, observation), noise)


def soft_value(
    value: Float[Array, "*member batch"],
    log_density: Float[Array, " batch"],
    temperature: float | Float[Array, ""],
) -> Float[Array, "*member batch"]:
    """The value of drawn actions plus the entropy bonus of drawing them."""
    return value - temperature * log_density


def improve_policy(
    rate: float,
    learner: tuple[MLP, optax.OptState],
    inputs: tuple[Array, Array],
    temperature: float | Float[Array, ""],
    worth: Callable[[Array, Array], Float[Array, " batch"]],
) -> tuple[MLP, optax.OptState]:
    """One step of the policy towards actions that are worth more and towards entropy.

    Args:
        rate: Adam's learning rate.
        learner: The policy, and Adam's state for it.
        inputs: Observations, and one standard normal number for each number of an action.
        temperature: The weight of the entropy.
        worth: What an action is worth, from the network's outputs and the action drawn from them.
    """
    observation, noise = inputs

    def loss(policy: MLP) -> Array:
        outputs = apply_mlp(policy, observation)
        action, log_density = squash(outputs, noise)
        return -soft_value(worth(outputs, action), log_density, temperature).mean()

    policy, optimiser = learner
    return adam_step(rate, jax.grad(loss)(policy), optimiser, policy)
