"""The whole TD3 family: one agent, whose members are critics that see shifted rewards.

- TD3, https://arxiv.org/abs/1802.09477, Algorithm 1: one member with bias 0.
- Random Reward Shift, https://arxiv.org/abs/2209.07288: several members with different biases.
- Ensemble TD3, of the same paper: several members with bias 0.
- Bootstrapped TD3, after https://arxiv.org/abs/1602.04621: every member has its own actor.
- DDPG, https://arxiv.org/abs/1509.02971: one critic, no delay and no smoothing. Its noise is
  Gaussian, as in TD3, because correlated noise was found not to help there.

The settings are those of TD3's authors' code, whose networks, learning rate and batches are not
those printed in the paper (400-300 units, 1e-3, 100). As in their code, nothing is learned in the
warm-up.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from rewardshift.agents.base import Batch, Biases
from rewardshift.agents.networks import Learner, init_several
from rewardshift.agents.normaliser import Normaliser
from rewardshift.agents.online import SMALLEST_UNIFORM, ActorCritic
from rewardshift.agents.selection import Lead, Mixing
from rewardshift.agents.targets import member_targets
from rewardshift.checks import Count, Natural, NonNegative, Share
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import InputError


class TD3State(NamedTuple):
    """The state of a `TD3`.

    Actors have a leading axis over the members, of length 1 if they share one actor; critics
    have one over the members and one over the twins.
    """

    actors: Learner
    target_actors: Any
    critics: Learner
    target_critics: Any
    lead: Lead
    normaliser: Normaliser | tuple[()]
    rule: Any
    biases: Biases


@dataclass(frozen=True, kw_only=True)
class TD3(ActorCritic):
    """Twin Delayed DDPG with one pair of critics per shift.

    All members learn from the same transitions, each on its own scale, with the minimum taken
    within a pair and never across members. The policy follows the first critic of the leading
    member, or a weighted sum over members if the selection mixes. The target networks move at
    every update of the policy.

    Args:
        noise: Standard deviation of the exploration noise; actions are in [-1, 1].
        random_actions: The probability of a uniformly random action.
        target_noise: Standard deviation of the noise that smooths the target policy.
        target_noise_clip: The bound on the target noise.
        policy_delay: Updates of the critics per update of the policy.
        twins: Critics per member; a target takes their minimum.
        warm_up: Steps at the start with random actions and without updates.
        own_actors: Whether every member has its own actor, as in Bootstrapped TD3.
    """

    noise: NonNegative = 0.1
    random_actions: Share = 0.0
    target_noise: NonNegative = 0.2
    target_noise_clip: NonNegative = 0.5
    policy_delay: Count = 2
    twins: Count = 2
    warm_up: Natural = 25_000
    own_actors: bool = False

    networks: ClassVar[tuple[str, ...]] = ("actors", "critics", "lead", "normaliser", "biases")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.own_actors and isinstance(self.selection, Mixing):
            raise InputError(
                f"own_actors needs a selection that chooses one member, got {self.selection}"
            )

    @property
    def period(self) -> int:
        """Length of the update cycle."""
        return self.policy_delay

    def init(self, key: PRNGKeyArray, spec: TaskSpec) -> TD3State:
        """Random networks, which depend on the key and not on the shifts."""
        actor_key, critic_key, lead_key = jax.random.split(key, 3)
        members, size = len(self.members), spec.action_size
        count = members if self.own_actors else 1
        actors = init_several(self.network, actor_key, (count,), spec, 0, size, "random")
        critics = init_several(
            self.network, critic_key, (members, self.twins), spec, size, 1, self.initial
        )
        adam = optax.adam(self.learning_rate)
        return TD3State(
            actors=Learner.start(actors, adam),
            target_actors=jax.tree.map(jnp.copy, actors),
            critics=Learner.start(critics, adam),
            target_critics=jax.tree.map(jnp.copy, critics),
            **self.init_shared(lead_key, spec),
        )

    def greedy(self, state: TD3State, observation: Array) -> Float[Array, " size"]:
        """The action of the policy, without noise."""
        leader = state.lead.leader if self.own_actors else 0
        actor = jax.tree.map(lambda leaf: leaf[leader], state.actors.parameters)
        return jnp.tanh(self.network.apply(actor, self.inputs(state, observation)))

    def draws(self, spec: TaskSpec) -> int:
        """The number of random numbers that `act` takes."""
        return spec.action_size * (2 if self.random_actions else 1) + bool(self.random_actions)

    def act(
        self, state: TD3State, observation: Array, draws: Float[Array, " draws"], explore: Any
    ) -> Float[Array, " size"]:
        """The greedy action with noise, or a random one; in the warm-up always a random one."""
        greedy = self.greedy(state, observation)
        uniform, at_random = draws[: greedy.size], explore
        if self.random_actions:
            uniform, roll = draws[greedy.size : -1], draws[-1]
            at_random = explore | (roll < self.random_actions)
        normal = jax.scipy.special.ndtri(jnp.maximum(draws[: greedy.size], SMALLEST_UNIFORM))
        noisy = jnp.clip(greedy + self.noise * normal, -1.0, 1.0)
        return jnp.where(at_random, 2 * uniform - 1, noisy)

    def update(
        self, state: TD3State, batch: Batch, key: PRNGKeyArray, turn: int
    ) -> tuple[TD3State, dict[str, Float[Array, ""]]]:
        """One step of every member on the same batch, and one of the policy at the last turn."""
        observation = self.inputs(state, batch.observation)
        target = self._target(state, batch, key)
        critics, metrics = self.improve_critics(state.critics, observation, batch.action, target)
        state = state._replace(critics=critics)
        if turn == self.policy_delay - 1:
            state = self._improve_policy(state, observation)
        return state, {**metrics, **self.rule_metrics(state)}

    def _target(
        self, state: TD3State, batch: Batch, key: PRNGKeyArray
    ) -> Float[Array, "member batch"]:
        """The members' targets."""
        following = self.inputs(state, batch.next_observation)
        action = self._actions(state.target_actors, following)
        if self.target_noise:
            # One noise for all actors, so that members differ in their values alone.
            noise = self.target_noise * jax.random.normal(key, action.shape[1:])
            noise = jnp.clip(noise, -self.target_noise_clip, self.target_noise_clip)
            action = jnp.clip(action + noise, -1.0, 1.0)
        # The minimum within a member: across members it would mix their scales.
        value = self.member_values(state.target_critics, following, action).min(axis=1)
        return member_targets(self, state.biases, batch, value)

    def _improve_policy(self, state: TD3State, observation: Array) -> TD3State:
        """One step of the policy towards higher values, then one of the target networks."""
        # The value is that of the first critic of a pair, as in TD3's Algorithm 1.
        first = jax.tree.map(lambda leaf: leaf[:, :1], state.critics.parameters)

        def loss(actors: Any) -> Array:
            action = self._actions(actors, observation)
            if self.own_actors:
                value = self.member_values(first, observation, action)[:, 0]
            else:
                value = self.followed(
                    state,
                    first,
                    lambda critics: self.member_values(critics, observation, action)[:, 0],
                )
            return -value.mean(axis=-1).sum()  # over the actors, if there are several

        gradient = jax.grad(loss)(state.actors.parameters)
        actors = state.actors.step(gradient, optax.adam(self.learning_rate))
        targets = optax.incremental_update(
            (actors.parameters, state.critics.parameters),
            (state.target_actors, state.target_critics),
            self.tau,
        )
        return state._replace(actors=actors, target_actors=targets[0], target_critics=targets[1])

    def _actions(
        self, actors: Any, observation: Float[Array, "batch features"]
    ) -> Float[Array, "actor batch size"]:
        """The actions of every actor, without noise."""
        return jnp.tanh(jax.vmap(self.network.apply, in_axes=(0, None))(actors, observation))


def ddpg(**settings: Any) -> TD3:
    """DDPG: `TD3` with one critic, no delay and no smoothing; it takes the same settings."""
    return TD3(**{"twins": 1, "policy_delay": 1, "target_noise": 0.0, **settings})
