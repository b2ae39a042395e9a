"""BCQ: batch-constrained Q-learning, which only considers actions like those in the data.

A variational auto-encoder proposes actions that the data might hold for a state, a small network
perturbs them, and the critics choose among them: https://arxiv.org/abs/1812.02900, Algorithm 1,
whose targets weigh the lower twin against the higher one (section 4.2). The settings are those of
its authors' code, which acts by the best of 100 proposals where the paper has 10. One difference to
both: a key that the observation determines draws the proposals for acting, so that the policy is a
function, and evaluations can be repeated.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from rewardshift.agents.base import Batch, Biases
from rewardshift.agents.networks import MLP, Learner, Network, init_several
from rewardshift.agents.offline import OfflineAgent
from rewardshift.agents.targets import member_targets
from rewardshift.checks import Count, NonNegative, Positive, Share
from rewardshift.envs.tasks import TaskSpec


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Proposer:
    """The auto-encoder that proposes actions the data might hold."""

    encoder: Any
    decoder: Any
    latent: int = field(metadata={"static": True})


class BCQState(NamedTuple):
    """The state of a `BCQ`; critics have a leading axis over the twins."""

    proposer: Learner
    actor: Learner
    target_actor: Any
    critics: Learner
    target_critics: Any
    biases: Biases


@dataclass(frozen=True, kw_only=True)
class BCQ(OfflineAgent):
    """Batch-constrained Q-learning for continuous actions, with the settings of its authors.

    Args:
        proposer: The networks of the auto-encoder's two halves.
        learning_rate: Adam's learning rate, for all networks.
        perturbation: The largest change that the actor makes to a proposed action.
        candidates: Proposed actions for each next state of a target.
        acting_candidates: Proposed actions per decision; the best one is taken.
        minimum_weight: The weight of the lower twin in a target; the higher twin has the rest.
        latent_clip: The bound on the sampled latent numbers.
        divergence_weight: The weight of the divergence of the latent distribution from a normal
            distribution.
    """

    batch_size: Count = 100
    network: Network = field(default_factory=lambda: MLP((400, 300)))
    proposer: Network = field(default_factory=lambda: MLP((750, 750)))
    learning_rate: Positive = 1e-3
    perturbation: NonNegative = 0.05
    candidates: Count = 10
    acting_candidates: Count = 100
    minimum_weight: Share = 0.75
    latent_clip: Positive = 0.5
    divergence_weight: NonNegative = 0.5

    networks: ClassVar[tuple[str, ...]] = ("proposer", "actor", "critics", "biases")

    def init(self, key: PRNGKeyArray, spec: TaskSpec) -> BCQState:
        """Random networks, which depend on the key and not on the shift."""
        encoder_key, decoder_key, actor_key, critic_key = jax.random.split(key, 4)
        size, latent = spec.action_size, 2 * spec.action_size
        proposer = Proposer(
            encoder=self.proposer.init(encoder_key, spec, size, 2 * latent, "random"),
            decoder=self.proposer.init(decoder_key, spec, latent, size, "random"),
            latent=latent,
        )
        actor = self.network.init(actor_key, spec, size, size, "random")
        critics = init_several(self.network, critic_key, (2,), spec, size, 1, self.initial)
        adam = optax.adam(self.learning_rate)
        return BCQState(
            proposer=Learner.start(proposer, adam),
            actor=Learner.start(actor, adam),
            target_actor=jax.tree.map(jnp.copy, actor),
            critics=Learner.start(critics, adam),
            target_critics=jax.tree.map(jnp.copy, critics),
            biases=Biases.of(self.members),
        )

    def greedy(self, state: BCQState, observation: Array) -> Float[Array, " size"]:
        """The best of the proposed actions."""
        return self._best(state, observation)[0]

    def policy_value(self, state: BCQState, observation: Array) -> Float[Array, ""]:
        """The value of the greedy action, on the shifted scale."""
        return self._best(state, observation)[1]

    def update(
        self, state: BCQState, batch: Batch, key: PRNGKeyArray, turn: int
    ) -> tuple[BCQState, dict[str, Float[Array, ""]]]:
        """One step of the auto-encoder, the critics and the actor, in this order."""
        observation = batch.observation.astype(jnp.float32)
        encoding_key, target_key, actor_key = jax.random.split(key, 3)
        adam = optax.adam(self.learning_rate)
        gradient = jax.grad(self._proposer_loss)(
            state.proposer.parameters, observation, batch.action, encoding_key
        )
        state = state._replace(proposer=state.proposer.step(gradient, adam))
        target = self._target(state, batch, target_key)

        def critic_loss(critics: Any) -> tuple[Array, Array]:
            values = self.twin_values(critics, observation, batch.action)
            return ((values - target) ** 2).mean(axis=1).sum(), values.mean()

        improve = jax.value_and_grad(critic_loss, has_aux=True)
        (loss, q), gradient = improve(state.critics.parameters)
        critics = state.critics.step(gradient, adam)
        proposed = self._propose(state.proposer.parameters, observation, actor_key, 1)
        first = jax.tree.map(lambda leaf: leaf[0], critics.parameters)

        def actor_loss(actor: Any) -> Array:
            action = self._perturb(actor, observation, proposed)
            return -self.network.apply(first, observation, action).mean()

        actor = state.actor.step(jax.grad(actor_loss)(state.actor.parameters), adam)
        target_actor, target_critics = optax.incremental_update(
            (actor.parameters, critics.parameters),
            (state.target_actor, state.target_critics),
            self.tau,
        )
        state = state._replace(
            actor=actor, critics=critics, target_actor=target_actor, target_critics=target_critics
        )
        return state, {"loss": loss, "q": q}

    def _proposer_loss(
        self, proposer: Proposer, observation: Array, action: Array, key: PRNGKeyArray
    ) -> Float[Array, ""]:
        """The error of reconstructed actions, plus the divergence of the latent distribution."""
        mean, log_deviation = jnp.split(
            self.proposer.apply(proposer.encoder, observation, action), 2, axis=-1
        )
        deviation = jnp.exp(jnp.clip(log_deviation, -4.0, 15.0))  # the bounds of the authors' code
        latent = mean + deviation * jax.random.normal(key, mean.shape)
        error = jnp.tanh(self.proposer.apply(proposer.decoder, observation, latent)) - action
        divergence = -0.5 * (1 + 2 * jnp.log(deviation) - mean**2 - deviation**2)
        return (error**2).mean() + self.divergence_weight * divergence.mean()

    def _target(self, state: BCQState, batch: Batch, key: PRNGKeyArray) -> Float[Array, " batch"]:
        """The critics' targets, with the value of the best of several candidates."""
        following = batch.next_observation.astype(jnp.float32)
        proposed = self._propose(state.proposer.parameters, following, key, self.candidates)
        action = self._perturb(state.target_actor, following, proposed)
        twins = self.twin_values(state.target_critics, following, action)
        share = self.minimum_weight
        value = share * twins.min(axis=0) + (1 - share) * twins.max(axis=0)
        return member_targets(self, state.biases, batch, value.max(axis=1)[None])[0]

    def _propose(
        self, proposer: Proposer, observation: Array, key: PRNGKeyArray, count: int
    ) -> Float[Array, "batch candidates size"]:
        """Actions that the data might hold for these states."""
        latent = jax.random.normal(key, (len(observation), count, proposer.latent))
        latent = jnp.clip(latent, -self.latent_clip, self.latent_clip)
        return jnp.tanh(self.proposer.apply(proposer.decoder, observation, latent))

    def _perturb(
        self, actor: Any, observation: Array, action: Float[Array, "batch candidates size"]
    ) -> Float[Array, "batch candidates size"]:
        """The actions, perturbed by the actor."""
        change = jnp.tanh(self.network.apply(actor, observation, action))
        return jnp.clip(action + self.perturbation * change, -1.0, 1.0)

    def _best(self, state: BCQState, observation: Array) -> tuple[Array, Array]:
        """The best of the proposed actions and its value."""
        floats = observation.astype(jnp.float32)
        # A hash of the observation. Odd factors keep all bits of each number.
        bits = jax.lax.bitcast_convert_type(floats, jnp.uint32)
        key = jax.random.key(jnp.sum(bits * (2 * jnp.arange(bits.size, dtype=jnp.uint32) + 1)))
        proposed = self._propose(
            state.proposer.parameters, floats[None], key, self.acting_candidates
        )
        action = self._perturb(state.actor.parameters, floats[None], proposed)[0]
        first = jax.tree.map(lambda leaf: leaf[0], state.critics.parameters)
        values = self.network.apply(first, floats[None], action[None])[0, :, 0]
        best = jnp.argmax(values)
        return action[best], values[best]
