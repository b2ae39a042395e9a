"""The whole TD3 family: one agent, whose members are critics that see shifted rewards.

TD3 is one member with bias 0, Random Reward Shift several with different ones, Ensemble TD3
several zeros, Bootstrapped TD3 gives every member an actor of its own, and DDPG is one network
without delay and smoothing.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, cast

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from rewardshift.agents.checks import check_hindsight, check_offline
from rewardshift.agents.members import (
    improve_critics,
    keep_leading,
    leading_value,
    member_values,
)
from rewardshift.agents.normaliser import Normaliser, init_normaliser, normalise, take_note
from rewardshift.agents.selection import Lead, Mixing, Selection, Uniform, first_lead
from rewardshift.agents.shifts import ShiftLike, as_members
from rewardshift.agents.targets import member_targets
from rewardshift.checks import (
    Count,
    Discount,
    Natural,
    NonNegative,
    Positive,
    Rate,
    Share,
    Widths,
    check,
)
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import InputError
from rewardshift.hindsight import Hindsight
from rewardshift.networks import (
    MLP,
    adam_step,
    apply_mlp,
    init_mlps,
    normal_from_uniform,
    soft_update,
)
from rewardshift.optimism import lifetime
from rewardshift.replay import Batch, as_floats
from rewardshift.shift import Shift


class TD3State(NamedTuple):
    """What a `TD3` has learned.

    Actors have a leading axis over the members, of length 1 if they share one; critics have
    one over the members and one over the twins.
    """

    actors: MLP
    target_actors: MLP
    critics: MLP
    target_critics: MLP
    actor_optimiser: optax.OptState
    critic_optimiser: optax.OptState
    lead: Lead
    normaliser: Normaliser | tuple[()]


@dataclass(frozen=True)
class TD3:
    """Twin Delayed DDPG with one pair of critics per shift.

    All members learn from the same transitions, each on its own scale, with the minimum taken
    within a pair and never across members. The policy follows the first critic of the member
    that leads, or, for selections that mix, a weighted sum.

    Args:
        shift: What is done to the rewards: a number, a `Shift`, or several, one for each member.
        gamma: The discount.
        hidden: Widths of the hidden layers of actors and critics.
        learning_rate: Adam's learning rate.
        batch_size: Transitions per update.
        tau: How far the target networks move at every update of the policy.
        noise: Standard deviation of the exploration noise; actions are in [-1, 1].
        random_actions: The probability of an action that is drawn uniformly instead.
        target_noise: Standard deviation of the noise that smooths the target policy.
        target_noise_clip: Where that noise is cut off.
        policy_delay: Updates of the critics per update of the policy.
        twins: Critics of a member, whose minimum is the target.
        warm_up: Steps with random actions and without updates, at first.
        n_step: How many rewards a target sums up.
        own_actors: Whether every member has an actor, which leads with it.
        mask: The share of the transitions that a member learns from, another share for each.
        selection: Which member leads.
        lead_episodes: Episodes that a member leads at least. 0 allows a switch within an episode.
        lead_steps: Steps that a member leads at least.
        normalise: Whether observations are scaled by their running mean and deviation.
        hindsight: How goals are relabelled, in a goal task.
    """

    shift: ShiftLike = 0.0
    gamma: Discount = 0.99
    hidden: Widths = (256, 256)
    learning_rate: Positive = 3e-4
    batch_size: Count = 256
    tau: Rate = 0.005
    noise: NonNegative = 0.1
    random_actions: Share = 0.0
    target_noise: NonNegative = 0.2
    target_noise_clip: NonNegative = 0.5
    policy_delay: Count = 2
    twins: Count = 2
    warm_up: Natural = 25_000
    n_step: Count = 1
    own_actors: bool = False
    mask: Rate = 1.0
    selection: Selection = field(default_factory=Uniform)
    lead_episodes: Natural = 1
    lead_steps: Natural = 1000
    normalise: bool = False
    hindsight: Hindsight | None = None

    networks: ClassVar[tuple[str, ...]] = ("actors", "critics", "lead", "normaliser")
    continuous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "shift", as_members(self.shift, self.gamma))
        check_hindsight(self)
        if self.own_actors and isinstance(self.selection, Mixing):
            raise InputError(f"actors of their own cannot be mixed, got {self.selection}")

    @property
    def members(self) -> tuple[Shift, ...]:
        """The shift of each member; the discount is the agent's."""
        return cast("tuple[Shift, ...]", self.shift)

    @property
    def period(self) -> int:
        """Length of the update cycle."""
        return self.policy_delay

    @property
    def lifetime(self) -> float:
        """How many updates a shift lasts; see `rewardshift.lifetime`."""
        return lifetime(self.gamma, self.tau, self.policy_delay)

    def check_offline(self, updates: int) -> None:
        """See `Choosy`."""
        if self.normalise:
            raise InputError("normalise is by what is collected; a fixed data set can be scaled")
        check_offline(self, mixes=isinstance(self.selection, Mixing))

    def init(self, key: PRNGKeyArray, spec: TaskSpec) -> TD3State:
        """Random networks, the same for the same key whatever the shifts are."""
        actor_key, critic_key, lead_key = jax.random.split(key, 3)
        members = len(self.members)
        actor_sizes = (spec.features, *self.hidden, spec.action_size)
        critic_sizes = (spec.features + spec.action_size, *self.hidden, 1)
        actors = init_mlps(actor_key, actor_sizes, (members if self.own_actors else 1,))
        critics = init_mlps(critic_key, critic_sizes, (members, self.twins))
        adam = optax.adam(self.learning_rate)
        return TD3State(
            actors=actors,
            target_actors=jax.tree.map(jnp.copy, actors),
            critics=critics,
            target_critics=jax.tree.map(jnp.copy, critics),
            actor_optimiser=adam.init(actors),
            critic_optimiser=adam.init(critics),
            lead=first_lead(members, jax.random.uniform(lead_key)),
            normaliser=init_normaliser(spec) if self.normalise else (),
        )

    def greedy(self, state: TD3State, observation: Array) -> Float[Array, " size"]:
        """The action of the policy, without noise."""
        leader = state.lead.leader if self.own_actors else 0
        actor = jax.tree.map(lambda leaf: leaf[leader], state.actors)
        return jnp.tanh(apply_mlp(actor, self._see(state, observation)))

    def values(
        self, state: TD3State, observation: Float[Array, "batch features"], action: Array
    ) -> Float[Array, "member batch"]:
        """What each member thinks of actions, on its own scale: the lower of its twins."""
        seen = self._see(state, observation)
        return member_values(state.critics, seen, action[None]).min(axis=1)

    def _see(self, state: TD3State, observation: Array) -> Float[Array, "*batch features"]:
        """Observations as the networks take them."""
        floats = as_floats(observation)
        if isinstance(state.normaliser, Normaliser):
            return normalise(state.normaliser, floats)
        return floats

    def draws(self, spec: TaskSpec) -> int:
        """How many random numbers `act` takes."""
        return spec.action_size * (2 if self.random_actions else 1) + bool(self.random_actions)

    def act(
        self, state: TD3State, observation: Array, draws: Float[Array, " draws"], explore: Any
    ) -> Float[Array, " size"]:
        """The greedy action with noise, or a random one: always in the warm-up."""
        greedy = self.greedy(state, observation)
        uniform, at_random = draws[: greedy.size], explore
        if self.random_actions:
            uniform, roll = draws[greedy.size : -1], draws[-1]
            at_random = explore | (roll < self.random_actions)
        deviate = normal_from_uniform(draws[: greedy.size])
        noisy = jnp.clip(greedy + self.noise * deviate, -1.0, 1.0)
        return jnp.where(at_random, 2 * uniform - 1, noisy)

    def exploration(self, step: int, steps: int) -> bool:
        """Whether it is the warm-up, with random actions."""
        return step < self.warm_up

    def observe(self, state: TD3State, observation: Array) -> tuple[TD3State, Float[Array, ""]]:
        """Takes note of what is acted in; there is no intrinsic reward."""
        if isinstance(state.normaliser, Normaliser):
            seen = take_note(state.normaliser, as_floats(observation))
            state = state._replace(normaliser=seen)
        return state, jnp.zeros(())

    def lead(self, state: TD3State, draw: Float[Array, ""], ended: Any, total: Any) -> TD3State:
        """Decides, after a step, which member leads on."""
        return state._replace(lead=keep_leading(self, state.lead, draw, ended, total))

    def update(
        self, state: TD3State, batch: Batch, key: PRNGKeyArray, turn: int
    ) -> tuple[TD3State, dict[str, Float[Array, ""]]]:
        """One step of every member on the same batch, and in its turn one of the policy."""
        observation = self._see(state, batch.observation)
        target = self._target(state, batch, key)
        (critics, optimiser), metrics = improve_critics(
            self.learning_rate,
            (state.critics, state.critic_optimiser),
            (observation, batch.action),
            target,
            self._weight(batch),
        )
        state = state._replace(critics=critics, critic_optimiser=optimiser)
        if turn == self.policy_delay - 1:
            state = self._improve_policy(state, observation)
        return state, metrics

    def _target(
        self, state: TD3State, batch: Batch, key: PRNGKeyArray
    ) -> Float[Array, "member batch"]:
        """What each member's values should have been."""
        following = self._see(state, batch.next_observation)
        action = jnp.tanh(jax.vmap(apply_mlp, in_axes=(0, None))(state.target_actors, following))
        if self.target_noise:
            noise = self.target_noise * jax.random.normal(key, action.shape[1:])
            noise = jnp.clip(noise, -self.target_noise_clip, self.target_noise_clip)
            action = jnp.clip(action + noise, -1.0, 1.0)
        value = member_values(state.target_critics, following, action).min(axis=1)
        return member_targets(self, batch, value)

    def _weight(self, batch: Batch) -> Float[Array, "member batch"]:
        """Which transitions each member learns from: the same ones whenever they are sampled."""
        members = len(self.members)
        if self.mask == 1:
            return jnp.ones((members, 1))

        def taken(lot: Array) -> Bool[Array, " member"]:
            return jax.random.bernoulli(jax.random.key(lot), self.mask, (members,))

        return jax.vmap(taken)(batch.lot).T / self.mask

    def _improve_policy(self, state: TD3State, observation: Array) -> TD3State:
        """One step of the policy up the values of who leads, and of the targets behind it all."""

        def loss(actors: MLP) -> Array:
            action = jnp.tanh(jax.vmap(apply_mlp, in_axes=(0, None))(actors, observation))
            return -self._leading_value(state, observation, action).mean(axis=-1).sum()

        gradient = jax.grad(loss)(state.actors)
        actors, optimiser = adam_step(
            self.learning_rate, gradient, state.actor_optimiser, state.actors
        )
        return state._replace(
            actors=actors,
            actor_optimiser=optimiser,
            target_actors=soft_update(state.target_actors, actors, self.tau),
            target_critics=soft_update(state.target_critics, state.critics, self.tau),
        )

    def _leading_value(
        self, state: TD3State, observation: Array, action: Float[Array, "actor batch size"]
    ) -> Float[Array, "actor batch"]:
        """The value that each actor climbs: its own member's, the leader's, or a mix."""
        first = jax.tree.map(lambda leaf: leaf[:, :1], state.critics)
        if self.own_actors:
            return member_values(first, observation, action)[:, 0]
        return leading_value(self, first, state.lead.leader, observation, action[0])[None]


def ddpg(**settings: Any) -> TD3:
    """DDPG: one critic, no delay, no smoothing; otherwise as `TD3`, and so are the settings."""
    return TD3(**{"twins": 1, "policy_delay": 1, "target_noise": 0.0, **settings})
