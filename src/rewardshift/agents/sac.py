"""Soft actor-critic whose members are critics that see shifted rewards."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, cast

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from rewardshift.agents.checks import check_hindsight, check_offline
from rewardshift.agents.members import (
    improve_critics,
    keep_leading,
    leading_value,
    member_values,
)
from rewardshift.agents.selection import Lead, Mixing, Selection, Uniform, first_lead
from rewardshift.agents.shifts import ShiftLike, as_members
from rewardshift.agents.soft import (
    Multiplier,
    draw_actions,
    improve_policy,
    init_multiplier,
    middle,
    soft_value,
    tune_temperature,
)
from rewardshift.agents.targets import member_targets
from rewardshift.checks import (
    Count,
    Discount,
    Finite,
    Natural,
    NonNegative,
    Positive,
    Rate,
    Widths,
    check,
)
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import InputError
from rewardshift.hindsight import Hindsight
from rewardshift.networks import MLP, init_mlp, init_mlps, normal_from_uniform, soft_update
from rewardshift.optimism import lifetime
from rewardshift.replay import Batch, as_floats
from rewardshift.shift import Shift

TWINS = 2


class SACState(NamedTuple):
    """What a `SAC` has learned.

    Critics have a leading axis over the members and one over the twins. `temperature` is empty
    if the settings fix it.
    """

    policy: MLP
    critics: MLP
    target_critics: MLP
    policy_optimiser: optax.OptState
    critic_optimiser: optax.OptState
    temperature: Multiplier | tuple[()]
    lead: Lead


@dataclass(frozen=True)
class SAC:
    """Soft actor-critic with one pair of critics per shift.

    All members learn from the same transitions, each on its own scale, with the minimum taken
    within a pair and never across members. The policy, a Gaussian squashed by tanh, follows the
    lower critic of the leading member, or, for selections that mix, a weighted sum over members.

    Args:
        shift: What is done to the rewards: a number, a `Shift`, or several, one for each member.
        gamma: The discount.
        hidden: Widths of the hidden layers of the policy and the critics.
        learning_rate: Adam's learning rate.
        batch_size: Transitions per update.
        tau: How far the target critics move at every update.
        temperature: The weight of the policy's entropy. None tunes it, from 1 on.
        target_entropy: The entropy that a tuned temperature aims at. None is minus the number of
            an action's components.
        warm_up: Steps with random actions and without updates, at the start.
        n_step: Rewards that a target sums up. The entropy bonus counts at the last step only.
        selection: Which member leads.
        lead_episodes: The least number of episodes that a member leads. 0 allows a switch within
            an episode.
        lead_steps: The least number of steps that a member leads.
        hindsight: How goals are relabelled, in a goal task.
    """

    shift: ShiftLike = 0.0
    gamma: Discount = 0.99
    hidden: Widths = (256, 256)
    learning_rate: Positive = 3e-4
    batch_size: Count = 256
    tau: Rate = 0.005
    temperature: NonNegative | None = None
    target_entropy: Finite | None = None
    warm_up: Natural = 10_000
    n_step: Count = 1
    selection: Selection = field(default_factory=Uniform)
    lead_episodes: Natural = 1
    lead_steps: Natural = 1000
    hindsight: Hindsight | None = None

    networks: ClassVar[tuple[str, ...]] = ("policy", "critics", "lead")
    continuous: ClassVar[bool] = True
    period: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "shift", as_members(self.shift, self.gamma))
        check_hindsight(self)
        self._check_temperature()

    def _check_temperature(self) -> None:
        if self.target_entropy is not None and self.temperature is not None:
            raise InputError(
                "target_entropy is for a tuned temperature, which is None; got a temperature of"
                f" {self.temperature} and a target_entropy of {self.target_entropy}"
            )
        bounded = self.hindsight is not None and self.hindsight.reward_range is not None
        if bounded and self.temperature != 0:
            raise InputError(
                "hindsight with a reward_range needs temperature=0, because entropy takes values"
                f" out of that range; got {self.temperature}"
            )

    @property
    def members(self) -> tuple[Shift, ...]:
        """The shift of each member; the discount is the agent's."""
        return cast("tuple[Shift, ...]", self.shift)

    @property
    def lifetime(self) -> float:
        """How many updates a shift lasts; see `rewardshift.lifetime`."""
        return lifetime(self.gamma, self.tau)

    def check_offline(self, updates: int) -> None:
        """See `Choosy`."""
        check_offline(self, mixes=isinstance(self.selection, Mixing))

    def init(self, key: PRNGKeyArray, spec: TaskSpec) -> SACState:
        """Random networks, the same for the same key whatever the shifts are."""
        policy_key, critic_key, lead_key = jax.random.split(key, 3)
        members = len(self.members)
        policy = init_mlp(policy_key, (spec.features, *self.hidden, 2 * spec.action_size))
        critic_sizes = (spec.features + spec.action_size, *self.hidden, 1)
        critics = init_mlps(critic_key, critic_sizes, (members, TWINS))
        adam = optax.adam(self.learning_rate)
        return SACState(
            policy=policy,
            critics=critics,
            target_critics=jax.tree.map(jnp.copy, critics),
            policy_optimiser=adam.init(policy),
            critic_optimiser=adam.init(critics),
            temperature=init_multiplier(self.learning_rate) if self.temperature is None else (),
            lead=first_lead(members, jax.random.uniform(lead_key)),
        )

    def greedy(self, state: SACState, observation: Array) -> Float[Array, " size"]:
        """The action in the middle of the policy."""
        return middle(state.policy, as_floats(observation))

    def value(self, state: SACState, observation: Array) -> Float[Array, ""]:
        """The value of the greedy action, on the scale of the leading member, or of the mix."""
        action = self.greedy(state, observation)[None]
        return self._led(state, as_floats(observation)[None], action)[0]

    def values(
        self, state: SACState, observation: Float[Array, "batch features"], action: Array
    ) -> Float[Array, "member batch"]:
        """Each member's values of actions, on its own scale: the lower of its twins."""
        return member_values(state.critics, as_floats(observation), action[None]).min(axis=1)

    def draws(self, spec: TaskSpec) -> int:
        """How many random numbers `act` takes."""
        return spec.action_size

    def act(
        self, state: SACState, observation: Array, draws: Float[Array, " draws"], explore: Any
    ) -> Float[Array, " size"]:
        """An action drawn from the policy, or, in the warm-up, uniformly."""
        noise = normal_from_uniform(draws)
        action, _ = draw_actions(state.policy, as_floats(observation), noise)
        return jnp.where(explore, 2 * draws - 1, action)

    def exploration(self, step: int, steps: int) -> bool:
        """Whether it is the warm-up, with random actions."""
        return step < self.warm_up

    def observe(self, state: SACState, observation: Array) -> tuple[SACState, Float[Array, ""]]:
        """Changes nothing: there is no intrinsic reward."""
        return state, jnp.zeros(())

    def lead(self, state: SACState, draw: Float[Array, ""], ended: Any, total: Any) -> SACState:
        """Decides, after a step, which member leads on."""
        return state._replace(lead=keep_leading(self, state.lead, draw, ended, total))

    def update(
        self, state: SACState, batch: Batch, key: PRNGKeyArray, turn: int
    ) -> tuple[SACState, dict[str, Float[Array, ""]]]:
        """One step of every member on the same batch, then of the temperature and the policy."""
        target_key, policy_key = jax.random.split(key)
        observation = as_floats(batch.observation)
        (critics, optimiser), metrics = improve_critics(
            self.learning_rate,
            (state.critics, state.critic_optimiser),
            (observation, batch.action),
            self._target(state, batch, target_key),
            jnp.ones((1, 1)),
        )
        state = state._replace(
            critics=critics,
            critic_optimiser=optimiser,
            target_critics=soft_update(state.target_critics, critics, self.tau),
        )
        noise = jax.random.normal(policy_key, batch.action.shape)
        return self._improve_policy(state, observation, noise), metrics

    def _target(
        self, state: SACState, batch: Batch, key: PRNGKeyArray
    ) -> Float[Array, "member batch"]:
        """What each member's values should have been, entropy included."""
        following = as_floats(batch.next_observation)
        noise = jax.random.normal(key, batch.action.shape)
        action, log_density = draw_actions(state.policy, following, noise)
        value = member_values(state.target_critics, following, action[None]).min(axis=1)
        soft = soft_value(value, log_density, self._temperature(state))
        return member_targets(self, batch, soft)

    def _improve_policy(self, state: SACState, observation: Array, noise: Array) -> SACState:
        """One step of the temperature, if it is tuned, and with it one of the policy."""
        if isinstance(state.temperature, Multiplier):
            _, log_density = draw_actions(state.policy, observation, noise)
            wanted = -noise.shape[-1] if self.target_entropy is None else self.target_entropy
            tuned = tune_temperature(state.temperature, log_density, wanted, self.learning_rate)
            state = state._replace(temperature=tuned)
        policy, optimiser = improve_policy(
            self.learning_rate,
            (state.policy, state.policy_optimiser),
            (observation, noise),
            self._temperature(state),
            lambda _, action: self._led(state, observation, action),
        )
        return state._replace(policy=policy, policy_optimiser=optimiser)

    def _temperature(self, state: SACState) -> float | Float[Array, ""]:
        if isinstance(state.temperature, Multiplier):
            return jnp.exp(state.temperature.log)
        assert self.temperature is not None
        return self.temperature

    def _led(
        self, state: SACState, observation: Array, action: Float[Array, "batch size"]
    ) -> Float[Array, " batch"]:
        """The value that the policy climbs."""
        return leading_value(self, state.critics, state.lead.leader, observation, action)
