"""Soft actor-critic whose members are critics that see shifted rewards.

SAC as in https://arxiv.org/abs/1812.05905, Algorithm 1: two critics and no value network (equation
5), a policy that learns through its actions (equation 9), and a tuned temperature (section 5).
As in its authors' code, the temperature's loss is linear in its logarithm, and the first steps are
random. One difference: an update tunes the temperature before the policy, from the same actions.
Members with shifts of their own are Random Reward Shift; see `online`.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from rewardshift.agents.base import Batch, Biases
from rewardshift.agents.gaussian_policy import improve_policy, middle, squash
from rewardshift.agents.networks import Learner, init_several
from rewardshift.agents.normaliser import Normaliser
from rewardshift.agents.online import SMALLEST_UNIFORM, ActorCritic
from rewardshift.agents.selection import Lead
from rewardshift.agents.targets import member_targets
from rewardshift.checks import Finite, Natural, NonNegative
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import InputError

TWINS = 2


class SACState(NamedTuple):
    """The state of a `SAC`.

    Critics have a leading axis over the members and one over the twins. `temperature` learns the
    logarithm; it is empty if the settings fix the temperature.
    """

    policy: Learner
    critics: Learner
    target_critics: Any
    temperature: Learner | tuple[()]
    lead: Lead
    normaliser: Normaliser | tuple[()]
    rule: Any
    biases: Biases


@dataclass(frozen=True, kw_only=True)
class SAC(ActorCritic):
    """Soft actor-critic with one pair of critics per shift.

    All members learn from the same transitions, each on its own scale, with the minimum taken
    within a pair and never across members. The policy, a Gaussian squashed by tanh, follows the
    lower critic of the leading member, or a weighted sum over members if the selection mixes.
    With `n_step` above 1 the entropy bonus counts at the last step only.

    Args:
        temperature: The weight of the policy's entropy. None tunes it, starting at 1.
        target_entropy: The entropy that a tuned temperature aims at. None stands for minus the
            number of an action's components.
        warm_up: Steps at the start with random actions and without updates.
    """

    temperature: NonNegative | None = None
    target_entropy: Finite | None = None
    warm_up: Natural = 10_000

    networks: ClassVar[tuple[str, ...]] = ("policy", "critics", "lead", "normaliser", "biases")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target_entropy is not None and self.temperature is not None:
            raise InputError(
                "target_entropy needs a tuned temperature, temperature=None; got"
                f" temperature={self.temperature} and target_entropy={self.target_entropy}"
            )
        if self.reward_range is not None and self.temperature != 0:
            raise InputError(
                "reward_range needs temperature=0, because the entropy takes values outside of that"
                f" range; got temperature={self.temperature}"
            )

    def init(self, key: PRNGKeyArray, spec: TaskSpec) -> SACState:
        """Random networks, which depend on the key and not on the shifts."""
        policy_key, critic_key, lead_key = jax.random.split(key, 3)
        adam = optax.adam(self.learning_rate)
        policy = self.network.init(policy_key, spec, 0, 2 * spec.action_size, "random")
        axes = (len(self.members), TWINS)
        critics = init_several(
            self.network, critic_key, axes, spec, spec.action_size, 1, self.initial
        )
        return SACState(
            policy=Learner.start(policy, adam),
            critics=Learner.start(critics, adam),
            target_critics=jax.tree.map(jnp.copy, critics),
            temperature=Learner.start(jnp.zeros(()), adam) if self.temperature is None else (),
            **self.init_shared(lead_key, spec),
        )

    def greedy(self, state: SACState, observation: Array) -> Float[Array, " size"]:
        """The action in the middle of the policy's distribution."""
        inputs = self.inputs(state, observation)
        return middle(self.network.apply(state.policy.parameters, inputs))

    def policy_value(self, state: SACState, observation: Array) -> Float[Array, ""]:
        """The value of the greedy action, on the scale of the leading member, or of the mix."""
        action, inputs = self.greedy(state, observation), self.inputs(state, observation)
        return self._followed_value(state, inputs[None], action[None])[0]

    def draws(self, spec: TaskSpec) -> int:
        """The number of random numbers that `act` takes."""
        return spec.action_size

    def act(
        self, state: SACState, observation: Array, draws: Float[Array, " draws"], explore: Any
    ) -> Float[Array, " size"]:
        """An action drawn from the policy; in the warm-up a uniformly random one."""
        noise = jax.scipy.special.ndtri(jnp.maximum(draws, SMALLEST_UNIFORM))
        action, _ = self._draw(state, self.inputs(state, observation), noise)
        return jnp.where(explore, 2 * draws - 1, action)

    def update(
        self, state: SACState, batch: Batch, key: PRNGKeyArray, turn: int
    ) -> tuple[SACState, dict[str, Float[Array, ""]]]:
        """One step of every member on the same batch, then of the temperature and the policy."""
        target_key, policy_key = jax.random.split(key)
        observation = self.inputs(state, batch.observation)
        target = self._target(state, batch, target_key)
        critics, metrics = self.improve_critics(state.critics, observation, batch.action, target)
        following = optax.incremental_update(critics.parameters, state.target_critics, self.tau)
        state = state._replace(critics=critics, target_critics=following)
        noise = jax.random.normal(policy_key, batch.action.shape)
        state = self._improve_policy(state, observation, noise)
        temperature = jnp.asarray(self._temperature(state))
        return state, {**metrics, "temperature": temperature, **self.rule_metrics(state)}

    def _target(
        self, state: SACState, batch: Batch, key: PRNGKeyArray
    ) -> Float[Array, "member batch"]:
        """The members' targets, entropy included."""
        following = self.inputs(state, batch.next_observation)
        noise = jax.random.normal(key, batch.action.shape)
        action, log_density = self._draw(state, following, noise)
        values = self.member_values(state.target_critics, following, action[None])
        soft = values.min(axis=1) - self._temperature(state) * log_density
        return member_targets(self, state.biases, batch, soft)

    def _improve_policy(self, state: SACState, observation: Array, noise: Array) -> SACState:
        """One step of the temperature, if it is tuned, then one of the policy."""
        adam = optax.adam(self.learning_rate)
        if isinstance(state.temperature, Learner):
            _, log_density = self._draw(state, observation, noise)
            wanted = -noise.shape[-1] if self.target_entropy is None else self.target_entropy
            # Up if the policy's entropy is below the wanted one.
            slope = -(log_density.mean() + wanted)
            state = state._replace(temperature=state.temperature.step(slope, adam))

        def worth(_: Array, action: Array) -> Array:
            return self._followed_value(state, observation, action)

        inputs = (observation, noise, self._temperature(state))
        policy = improve_policy(self.network, state.policy, inputs, worth, adam)
        return state._replace(policy=policy)

    def _followed_value(
        self, state: SACState, observation: Array, action: Float[Array, "batch size"]
    ) -> Float[Array, " batch"]:
        """The value that the policy maximises, by the lower of the twins."""
        return self.followed(
            state,
            state.critics.parameters,
            lambda critics: self.member_values(critics, observation, action[None]).min(axis=1),
        )

    def _draw(self, state: SACState, observation: Array, noise: Array) -> tuple[Array, Array]:
        """Actions drawn from the policy, and their log-density."""
        return squash(self.network.apply(state.policy.parameters, observation), noise)

    def _temperature(self, state: SACState) -> float | Float[Array, ""]:
        if isinstance(state.temperature, Learner):
            return jnp.exp(state.temperature.parameters)
        assert self.temperature is not None
        return self.temperature
