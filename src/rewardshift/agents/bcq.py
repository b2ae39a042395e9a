"""BCQ: batch-constrained Q-learning, which only looks at actions like those in the data.

A variational auto-encoder proposes actions that the data might hold for a state, a small network
perturbs them, and the critics choose among them.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from rewardshift.agents.offline import Offline
from rewardshift.agents.targets import one_step_target
from rewardshift.checks import Count, NonNegative, Positive, Share, Widths
from rewardshift.envs.tasks import TaskSpec
from rewardshift.networks import (
    MLP,
    adam_step,
    apply_joint,
    init_mlp,
    init_mlps,
    soft_update,
    twin_values,
)
from rewardshift.replay import Batch, as_floats


class Proposer(NamedTuple):
    """The auto-encoder: what actions the data might hold."""

    encoder: MLP
    decoder: MLP


class BCQState(NamedTuple):
    """What a `BCQ` has learned; critics have a leading axis over the twins."""

    proposer: Proposer
    actor: MLP
    target_actor: MLP
    critics: MLP
    target_critics: MLP
    proposer_optimiser: optax.OptState
    actor_optimiser: optax.OptState
    critic_optimiser: optax.OptState


@dataclass(frozen=True, kw_only=True)
class BCQ(Offline):
    """Batch-constrained Q-learning for continuous actions, with the settings of its authors.

    Args:
        hidden: Widths of the hidden layers of the perturbing actor and the critics.
        proposer_hidden: Widths of the hidden layers of the auto-encoder's two halves.
        learning_rate: Adam's learning rate, for all networks.
        perturbation: How far the actor may move a proposed action.
        candidates: Proposed actions per following state, in a target.
        acting_candidates: Proposed actions of which the best is taken.
        minimum_weight: The share of the lower twin in a target; the rest is the higher one's.
        latent_clip: The bound on the latent numbers that are drawn.
        divergence_weight: The weight of the latent distribution's divergence from a normal one.
    """

    batch_size: Count = 100
    hidden: Widths = (400, 300)
    proposer_hidden: Widths = (750, 750)
    learning_rate: Positive = 1e-3
    perturbation: NonNegative = 0.05
    candidates: Count = 10
    acting_candidates: Count = 100
    minimum_weight: Share = 0.75
    latent_clip: Positive = 0.5
    divergence_weight: NonNegative = 0.5

    networks: ClassVar[tuple[str, ...]] = ("proposer", "actor", "critics")

    def init(self, key: PRNGKeyArray, spec: TaskSpec) -> BCQState:
        """Random networks, the same for the same key whatever the shift is."""
        encoder_key, decoder_key, actor_key, critic_key = jax.random.split(key, 4)
        pair, size = spec.features + spec.action_size, spec.action_size
        latent = 2 * size
        proposer = Proposer(
            encoder=init_mlp(encoder_key, (pair, *self.proposer_hidden, 2 * latent)),
            decoder=init_mlp(decoder_key, (spec.features + latent, *self.proposer_hidden, size)),
        )
        actor = init_mlp(actor_key, (pair, *self.hidden, size))
        critics = init_mlps(critic_key, (pair, *self.hidden, 1), (2,))
        adam = optax.adam(self.learning_rate)
        return BCQState(
            proposer=proposer,
            actor=actor,
            target_actor=jax.tree.map(jnp.copy, actor),
            critics=critics,
            target_critics=jax.tree.map(jnp.copy, critics),
            proposer_optimiser=adam.init(proposer),
            actor_optimiser=adam.init(actor),
            critic_optimiser=adam.init(critics),
        )

    def greedy(self, state: BCQState, observation: Array) -> Float[Array, " size"]:
        """The best of the proposed actions."""
        return self._best(state, observation)[0]

    def value(self, state: BCQState, observation: Array) -> Float[Array, ""]:
        """What the agent thinks that its own action is worth, on the shifted scale."""
        return self._best(state, observation)[1]

    def update(
        self, state: BCQState, batch: Batch, key: PRNGKeyArray, turn: int
    ) -> tuple[BCQState, dict[str, Float[Array, ""]]]:
        """One step of the auto-encoder, the critics and the actor, in this order."""
        observation = as_floats(batch.observation)
        encoding_key, target_key, actor_key = jax.random.split(key, 3)
        proposer, proposer_optimiser = adam_step(
            self.learning_rate,
            jax.grad(self._proposer_loss)(state.proposer, observation, batch.action, encoding_key),
            state.proposer_optimiser,
            state.proposer,
        )
        state = state._replace(proposer=proposer, proposer_optimiser=proposer_optimiser)
        target = self._target(state, batch, target_key)

        def critic_loss(critics: MLP) -> tuple[Array, Array]:
            values = twin_values(critics, observation, batch.action)
            return ((values - target) ** 2).mean(axis=1).sum(), values.mean()

        (loss, q), gradient = jax.value_and_grad(critic_loss, has_aux=True)(state.critics)
        critics, critic_optimiser = adam_step(
            self.learning_rate, gradient, state.critic_optimiser, state.critics
        )
        proposed = self._propose(state.proposer, observation, actor_key, 1)
        first = jax.tree.map(lambda leaf: leaf[0], critics)

        def actor_loss(actor: MLP) -> Array:
            action = self._perturb(actor, observation, proposed)
            return -apply_joint(first, observation, action).mean()

        actor, actor_optimiser = adam_step(
            self.learning_rate,
            jax.grad(actor_loss)(state.actor),
            state.actor_optimiser,
            state.actor,
        )
        state = state._replace(
            actor=actor,
            critics=critics,
            actor_optimiser=actor_optimiser,
            critic_optimiser=critic_optimiser,
            target_actor=soft_update(state.target_actor, actor, self.tau),
            target_critics=soft_update(state.target_critics, critics, self.tau),
        )
        return state, {"loss": loss, "q": q}

    def _proposer_loss(
        self, proposer: Proposer, observation: Array, action: Array, key: PRNGKeyArray
    ) -> Float[Array, ""]:
        """How badly actions are reconstructed, and how far the latent numbers are from normal."""
        mean, log_deviation = jnp.split(
            apply_joint(proposer.encoder, observation, action), 2, axis=-1
        )
        deviation = jnp.exp(jnp.clip(log_deviation, -4.0, 15.0))
        latent = mean + deviation * jax.random.normal(key, mean.shape)
        error = jnp.tanh(apply_joint(proposer.decoder, observation, latent)) - action
        divergence = -0.5 * (1 + 2 * jnp.log(deviation) - mean**2 - deviation**2)
        return (error**2).mean() + self.divergence_weight * divergence.mean()

    def _target(self, state: BCQState, batch: Batch, key: PRNGKeyArray) -> Float[Array, " batch"]:
        """What the critics' values should have been: those of the best of several candidates."""
        following = as_floats(batch.next_observation)
        proposed = self._propose(state.proposer, following, key, self.candidates)
        action = self._perturb(state.target_actor, following, proposed)
        twins = twin_values(state.target_critics, following, action)
        share = self.minimum_weight
        value = share * twins.min(axis=0) + (1 - share) * twins.max(axis=0)
        return one_step_target(self.value_shift, batch, value.max(axis=1))

    def _propose(
        self, proposer: Proposer, observation: Array, key: PRNGKeyArray, count: int
    ) -> Float[Array, "batch candidates size"]:
        """Actions that the data might hold for these states."""
        first_weight = proposer.decoder[0][0]
        shape = (len(observation), count, first_weight.shape[1] - observation.shape[1])
        latent = jax.random.normal(key, shape)
        latent = jnp.clip(latent, -self.latent_clip, self.latent_clip)
        return jnp.tanh(apply_joint(proposer.decoder, observation, latent))

    def _perturb(
        self, actor: MLP, observation: Array, action: Float[Array, "batch candidates size"]
    ) -> Float[Array, "batch candidates size"]:
        """The actions, moved a little towards what the actor likes."""
        moved = action + self.perturbation * jnp.tanh(apply_joint(actor, observation, action))
        return jnp.clip(moved, -1.0, 1.0)

    def _best(self, state: BCQState, observation: Array) -> tuple[Array, Array]:
        """The best of the proposed actions and its value.

        The proposals are random, but the same for the same observation, so that the policy is a
        function of it.
        """
        floats = as_floats(observation)
        bits = jax.lax.bitcast_convert_type(floats, jnp.uint32)
        key = jax.random.key(jnp.sum(bits * (2 * jnp.arange(bits.size, dtype=jnp.uint32) + 1)))
        proposed = self._propose(state.proposer, floats[None], key, self.acting_candidates)
        action = self._perturb(state.actor, floats[None], proposed)[0]
        first = jax.tree.map(lambda leaf: leaf[0], state.critics)
        values = apply_joint(first, floats[None], action[None])[0, :, 0]
        best = jnp.argmax(values)
        return action[best], values[best]
