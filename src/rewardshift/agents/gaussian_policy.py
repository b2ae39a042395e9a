"""The policy of SAC and CQL: a Gaussian squashed by tanh.

As in appendix C of https://arxiv.org/abs/1812.05905; the bounds on its deviation are usual ones.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from rewardshift.agents.networks import Learner, Network


def middle(outputs: Float[Array, "*batch twice"]) -> Float[Array, "*batch size"]:
    """The greedy action: the middle of the policy's distribution."""
    mean, _ = jnp.split(outputs, 2, axis=-1)
    return jnp.tanh(mean)


def squash(
    outputs: Float[Array, "*batch twice"], noise: Float[Array, "*batch size"]
) -> tuple[Float[Array, "*batch size"], Float[Array, "*batch"]]:
    """Actions of a Gaussian policy, squashed into (-1, 1) by tanh, and their log-density.

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
    """The log-density of given actions; see `squash`."""
    edge = 1 - 1e-6  # the inverse of tanh is infinite at 1
    return _log_density(jnp.arctanh(jnp.clip(action, -edge, edge)), *_gaussian(outputs))


def _gaussian(outputs: Array) -> tuple[Array, Array]:
    mean, log_deviation = jnp.split(outputs, 2, axis=-1)
    # Bounds of usual implementations: a wider or narrower policy makes the gradient explode.
    return mean, jnp.exp(jnp.clip(log_deviation, -5.0, 2.0))


def _log_density(raw: Array, mean: Array, deviation: Array) -> Array:
    """The log-density of tanh(raw), in a numerically stable form."""
    # log(1 - tanh(raw)^2), which rounds to log(0) for large actions if computed directly.
    slope = 2 * (math.log(2) - raw - jax.nn.softplus(-2 * raw))
    return (jax.scipy.stats.norm.logpdf(raw, mean, deviation) - slope).sum(axis=-1)


def improve_policy(
    network: Network,
    policy: Learner,
    loss_inputs: tuple[Array, Array, float | Float[Array, ""]],
    worth: Callable[[Array, Array], Float[Array, " batch"]],
    adam: optax.GradientTransformation,
) -> Learner:
    """One step of the policy towards higher value and entropy.

    Args:
        network: The policy's network.
        policy: The policy.
        loss_inputs: Observations, a standard normal number for each component of an action, and the
            weight of the entropy.
        worth: The value of an action, given the network's outputs and the action.
        adam: The optimiser.
    """
    observation, noise, temperature = loss_inputs

    def loss(parameters: Any) -> Array:
        outputs = network.apply(parameters, observation)
        action, log_density = squash(outputs, noise)
        return -(worth(outputs, action) - temperature * log_density).mean()

    return policy.step(jax.grad(loss)(policy.parameters), adam)
