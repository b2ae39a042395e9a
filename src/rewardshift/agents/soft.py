"""The parts of soft actor-critic that SAC and CQL share: a random policy and its temperature."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from rewardshift.learners import Learner
from rewardshift.networks import Network


def start_multiplier(rate: float) -> Learner:
    """A positive number that is tuned, 1 at first; the learner keeps its logarithm.

    Args:
        rate: Adam's learning rate.
    """
    return Learner.start(jnp.zeros(()), optax.adam(rate))


def tune_temperature(
    temperature: Learner,
    log_density: Float[Array, " batch"],
    target_entropy: float,
    rate: float,
) -> Learner:
    """One step of the temperature: up if the policy's entropy is below its target.

    Args:
        temperature: The temperature so far.
        log_density: The log of the density of actions that the policy has drawn.
        target_entropy: The entropy that the policy should have.
        rate: Adam's learning rate.
    """
    return temperature.step(-(log_density.mean() + target_entropy), optax.adam(rate))


def middle(outputs: Float[Array, "*batch twice"]) -> Float[Array, "*batch size"]:
    """The action in the middle of the policy, which acts greedily."""
    mean, _ = jnp.split(outputs, 2, axis=-1)
    return jnp.tanh(mean)


def squash(
    outputs: Float[Array, "*batch twice"], noise: Float[Array, "*batch size"]
) -> tuple[Float[Array, "*batch size"], Float[Array, "*batch"]]:
    """Actions of a Gaussian policy, brought into (-1, 1) by tanh, and the log of their density.

    Args:
        outputs: Outputs of the policy's network: means, and logarithms of standard deviations.
        noise: Standard normal numbers.
    """
    mean, deviation = _gaussian(outputs)
    raw = mean + deviation * noise
    return jnp.tanh(raw), _log_density(raw, mean, deviation)


def squashed_log_density(
    outputs: Float[Array, "*batch twice"], action: Float[Array, "*batch size"]
) -> Float[Array, "*batch"]:
    """The log of the density of given actions; see `squash`."""
    edge = 1 - 1e-6
    return _log_density(jnp.arctanh(jnp.clip(action, -edge, edge)), *_gaussian(outputs))


def _gaussian(outputs: Array) -> tuple[Array, Array]:
    mean, log_deviation = jnp.split(outputs, 2, axis=-1)
    return mean, jnp.exp(jnp.clip(log_deviation, -5.0, 2.0))


def _log_density(raw: Array, mean: Array, deviation: Array) -> Array:
    """The log of the density of tanh(raw), in a form that does not lose digits."""
    slope = 2 * (math.log(2) - raw - jax.nn.softplus(-2 * raw))
    return (jax.scipy.stats.norm.logpdf(raw, mean, deviation) - slope).sum(axis=-1)


def soft_value(
    value: Float[Array, "*member batch"],
    log_density: Float[Array, " batch"],
    temperature: float | Float[Array, ""],
) -> Float[Array, "*member batch"]:
    """The value of drawn actions plus the entropy bonus of drawing them."""
    return value - temperature * log_density


def improve_policy(
    settings: tuple[Network, float],
    policy: Learner,
    inputs: tuple[Array, Array],
    temperature: float | Float[Array, ""],
    worth: Callable[[Array, Array], Float[Array, " batch"]],
) -> Learner:
    """One step of the policy towards actions that are worth more and towards entropy.

    Args:
        settings: The policy's network, and Adam's learning rate.
        policy: The policy.
        inputs: Observations, and one standard normal number for each number of an action.
        temperature: The weight of the entropy.
        worth: What an action is worth, from the network's outputs and the action drawn from them.
    """
    (network, rate), (observation, noise) = settings, inputs

    def loss(parameters: Any) -> Array:
        outputs = network.apply(parameters, observation)
        action, log_density = squash(outputs, noise)
        return -soft_value(worth(outputs, action), log_density, temperature).mean()

    return policy.step(jax.grad(loss)(policy.parameters), optax.adam(rate))
