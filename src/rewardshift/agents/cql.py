"""CQL: soft actor-critic with a penalty on the values of actions outside the data.

CQL(H), equation 4 of https://arxiv.org/abs/2006.04779, with the importance-sampled soft maximum and
the Lagrange form of its appendix F. As in its authors' code, the targets leave out the entropy (a
deterministic backup), the squared error has no factor of one half, and the policy imitates the data
at the start.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rewardshift.agents.base import Batch, Biases
from rewardshift.agents.gaussian_policy import (
    improve_policy,
    middle,
    squash,
    squashed_log_density,
)
from rewardshift.agents.networks import MLP, Learner, Network, init_several
from rewardshift.agents.offline import OfflineAgent
from rewardshift.agents.targets import member_targets
from rewardshift.checks import Count, Natural, NonNegative, Positive
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import InputError

LARGEST_LOG_FACTOR = math.log(1e6)
# A megabyte, which fits into a core's cache beside its gradient.
CACHED = 2**18


class CQLState(NamedTuple):
    """The state of a `CQL`; critics have a leading axis over the twins.

    `temperature` and `penalty` learn the logarithms of the factors of these names.
    """

    policy: Learner
    critics: Learner
    target_critics: Any
    temperature: Learner
    penalty: Learner
    updates: Int[Array, ""]
    biases: Biases


@dataclass(frozen=True, kw_only=True)
class CQL(OfflineAgent):
    """Conservative Q-learning, CQL(H), with the settings of its authors.

    Args:
        learning_rate: Adam's learning rate for the critics.
        policy_rate: Adam's learning rate for the policy and the temperature.
        candidates: Actions in the penalty from each of three sources: the uniform distribution, the
            policy, and the policy in the following state.
        weight: The weight of the penalty.
        threshold: If given, a tuned factor keeps the penalty at this value (the Lagrange form).
        cloning_updates: Updates at the start in which the policy imitates the data.
    """

    network: Network = field(default_factory=lambda: MLP((256, 256, 256)))
    learning_rate: Positive = 3e-4
    policy_rate: Positive = 1e-4
    candidates: Count = 10
    weight: NonNegative = 5.0
    threshold: NonNegative | None = None
    cloning_updates: Natural = 40_000

    networks: ClassVar[tuple[str, ...]] = ("policy", "critics", "biases")

    def check_offline(self, updates: int) -> None:
        """See `Agent`."""
        if self.cloning_updates >= updates:
            raise InputError(
                "the policy would only imitate the data: cloning_updates is"
                f" {self.cloning_updates}, the whole training {updates}"
            )

    def init(self, key: PRNGKeyArray, spec: TaskSpec) -> CQLState:
        """Random networks, which depend on the key and not on the shift."""
        policy_key, critic_key = jax.random.split(key)
        policy = self.network.init(policy_key, spec, 0, 2 * spec.action_size, "random")
        critics = init_several(
            self.network, critic_key, (2,), spec, spec.action_size, 1, self.initial
        )
        policy_adam, critic_adam = optax.adam(self.policy_rate), optax.adam(self.learning_rate)
        return CQLState(
            policy=Learner.start(policy, policy_adam),
            critics=Learner.start(critics, critic_adam),
            target_critics=jax.tree.map(jnp.copy, critics),
            temperature=Learner.start(jnp.zeros(()), policy_adam),
            penalty=Learner.start(jnp.zeros(()), critic_adam),
            updates=jnp.zeros((), jnp.int32),
            biases=Biases.of(self.members),
        )

    def greedy(self, state: CQLState, observation: Array) -> Float[Array, " size"]:
        """The action in the middle of the policy's distribution."""
        return middle(self._outputs(state, observation))

    def _outputs(self, state: CQLState, observation: Array) -> Float[Array, "*batch twice"]:
        """The outputs of the policy's network."""
        return self.network.apply(state.policy.parameters, observation.astype(jnp.float32))

    def policy_value(self, state: CQLState, observation: Array) -> Float[Array, ""]:
        """The value of the greedy action, on the shifted scale."""
        return self.values(state, observation[None], self.greedy(state, observation)[None])[0, 0]

    def update(
        self, state: CQLState, batch: Batch, key: PRNGKeyArray, turn: int
    ) -> tuple[CQLState, dict[str, Float[Array, ""]]]:
        """One step of the temperature, the policy and the critics, all from the same networks."""
        policy_key, critic_key = jax.random.split(key)
        changed = self._improve_policy(state, batch, policy_key)
        tuned = state._replace(temperature=changed.temperature)
        new, metrics = self._improve_critics(tuned, batch, critic_key)
        new = new._replace(
            policy=changed.policy,
            target_critics=optax.incremental_update(
                new.critics.parameters, state.target_critics, self.tau
            ),
            updates=state.updates + 1,
        )
        return new, metrics

    def _improve_policy(self, state: CQLState, batch: Batch, key: PRNGKeyArray) -> CQLState:
        """One step of the temperature, then one of the policy."""
        observation = batch.observation.astype(jnp.float32)
        noise = jax.random.normal(key, batch.action.shape)
        _, log_density = squash(self._outputs(state, observation), noise)
        wanted = -batch.action.shape[-1]  # SAC's own target entropy
        adam = optax.adam(self.policy_rate)
        temperature = state.temperature.step(-(log_density.mean() + wanted), adam)
        cloning = state.updates < self.cloning_updates

        def worth(outputs: Array, action: Array) -> Array:
            critics = state.critics.parameters
            value = self.twin_values(critics, observation, action).min(axis=0)
            return jnp.where(cloning, squashed_log_density(outputs, batch.action), value)

        inputs = (observation, noise, jnp.exp(temperature.parameters))
        policy = improve_policy(self.network, state.policy, inputs, worth, adam)
        return state._replace(policy=policy, temperature=temperature)

    def _improve_critics(
        self, state: CQLState, batch: Batch, key: PRNGKeyArray
    ) -> tuple[CQLState, dict[str, Array]]:
        """One step of the critics towards their targets, with the penalty on other actions."""
        target_key, candidate_key = jax.random.split(key)
        target = self._target(state, batch, target_key)
        candidates, log_densities = self._candidates(state, batch, candidate_key)
        factor = jnp.exp(jnp.minimum(state.penalty.parameters, LARGEST_LOG_FACTOR))

        # The data's own actions come first. One call values all of them, because the first layer
        # then processes each observation once.
        actions = jnp.concatenate([batch.action[:, None], candidates], axis=1)

        def loss(critics: Any, part: Any) -> tuple[Array, tuple[Array, Array]]:
            observation, actions, log_densities, target = part
            values = self.twin_values(critics, observation, actions)
            own, others = values[..., 0], values[..., 1:]
            # The penalty: the soft maximum of all actions' values minus the values of the data.
            soft = jax.scipy.special.logsumexp(others - log_densities, axis=2)
            excess = self.weight * (soft - own).mean(axis=1)
            errors = ((own - target) ** 2).mean(axis=1)
            return (errors + factor * excess).sum(), (own.mean(), excess.mean())

        (total, (q, excess)), gradient = mean_and_grad(
            loss,
            state.critics.parameters,
            (batch.observation.astype(jnp.float32), actions, log_densities, target),
            size=actions.shape[0] * actions.shape[1] * _widest(state.critics.parameters),
        )
        adam = optax.adam(self.learning_rate)
        state = state._replace(critics=state.critics.step(gradient, adam))
        if self.threshold is not None:
            slope = factor * (self.threshold - excess)
            state = state._replace(penalty=state.penalty.step(slope, adam))
        return state, {"loss": total, "q": q}

    def _candidates(
        self, state: CQLState, batch: Batch, key: PRNGKeyArray
    ) -> tuple[Float[Array, "batch candidates size"], Float[Array, "batch candidates"]]:
        """Actions for the penalty, and the log-density that each was drawn with."""
        random_key, now_key, next_key = jax.random.split(key, 3)
        count, size = batch.action.shape
        shape = (count, self.candidates, size)
        uniform = jax.random.uniform(random_key, shape, minval=-1.0, maxval=1.0)

        def drawn(observation: Array, key: PRNGKeyArray) -> tuple[Array, Array]:
            outputs = self._outputs(state, observation)[:, None]
            outputs = jnp.broadcast_to(outputs, (*shape[:2], 2 * size))
            return squash(outputs, jax.random.normal(key, shape))

        now, now_density = drawn(batch.observation, now_key)
        following, following_density = drawn(batch.next_observation, next_key)
        # Uniform in a box of side 2.
        uniform_density = jnp.full(shape[:2], -size * jnp.log(2.0))
        return (
            jnp.concatenate([uniform, now, following], axis=1),
            jnp.concatenate([uniform_density, now_density, following_density], axis=1),
        )

    def _target(self, state: CQLState, batch: Batch, key: PRNGKeyArray) -> Float[Array, " batch"]:
        """The critics' targets."""
        following = batch.next_observation.astype(jnp.float32)
        noise = jax.random.normal(key, batch.action.shape)
        action, _ = squash(self._outputs(state, following), noise)
        value = self.twin_values(state.target_critics, following, action).min(axis=0)
        return member_targets(self, state.biases, batch, value[None])[0]


def _widest(critics: Any) -> int:
    """The largest number of inputs or outputs of a critic's layer."""
    return max(max(leaf.shape[1:], default=1) for leaf in jax.tree.leaves(critics))


def mean_and_grad(
    loss: Callable[[Any, Any], tuple[Array, Any]], parameters: Any, batch: Any, *, size: int
) -> tuple[tuple[Array, Any], Any]:
    """`jax.value_and_grad(loss, has_aux=True)`, for losses and aux that are means over a batch.

    A large batch is processed in equal parts, one after the other: a layer's outputs are then
    still in the cache when the gradient needs them.

    Args:
        loss: Takes the parameters and a batch, or a part of one.
        parameters: The parameters to differentiate by.
        batch: Arrays whose first axis is the batch.
        size: The largest number of outputs of a layer, for the whole batch.
    """
    wanted = 2 ** max(0, math.ceil(math.log2(size / CACHED)))
    parts = math.gcd(len(jax.tree.leaves(batch)[0]), wanted)
    split = jax.tree.map(lambda leaf: leaf.reshape(parts, -1, *leaf.shape[1:]), batch)
    of_part = partial(jax.value_and_grad(loss, has_aux=True), parameters)

    def add(total: Any, part: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, of_part(part)), None

    shapes = jax.eval_shape(of_part, jax.tree.map(lambda leaf: leaf[0], split))
    nothing = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)
    total, _ = jax.lax.scan(add, nothing, split)
    return jax.tree.map(lambda leaf: leaf / parts, total)
