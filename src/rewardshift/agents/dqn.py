"""DQN with one member per shift, and a slot for an intrinsic reward.

DQN as in https://arxiv.org/abs/1312.5602, equation 2, with a target network; `double` is Double
DQN, https://arxiv.org/abs/1509.06461. Differences, as in the code of the reward-shifting paper,
https://arxiv.org/abs/2209.07288: Adam, the Huber loss, a target network that moves by `tau` at
every update, one update per step from the first step on, and an epsilon that falls from 0.9 to 0.05
in the first fifth of the training.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rewardshift.agents.base import Batch, Biases
from rewardshift.agents.intrinsic import Evaluated, Intrinsic
from rewardshift.agents.networks import MLP, Learner, Network, init_several
from rewardshift.agents.normaliser import Normaliser
from rewardshift.agents.online import OnlineAgent
from rewardshift.agents.selection import Lead
from rewardshift.agents.targets import member_targets
from rewardshift.checks import Count, Natural, Positive, checked
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import InputError, shown
from rewardshift.shift import Shift


class DQNState(NamedTuple):
    """The state of a `DQN`; networks have a leading axis over the members."""

    online: Learner
    target: Any
    intrinsic: Any
    lead: Lead
    normaliser: Normaliser | tuple[()]
    rule: Any
    biases: Biases


@dataclass(frozen=True, kw_only=True)
class DQN(OnlineAgent):
    """Deep Q-learning with one network per shift.

    One shift gives plain DQN; a shift of 0 is the usual DQN. Several give Random Reward Shift
    for discrete actions: all members learn from the same transitions, each on its own scale,
    and one of them, drawn for every episode, chooses the actions.

    Args:
        double: Whether a target takes the action of the online network and its value from the
            target network (Double DQN).
        intrinsic: An intrinsic reward to add to the extrinsic one.
    """

    network: Network = field(default_factory=lambda: MLP((64,)))
    learning_rate: Positive = 1e-3
    batch_size: Count = 64
    lead_steps: Natural = 0
    double: bool = False
    intrinsic: Intrinsic | None = None

    networks: ClassVar[tuple[str, ...]] = ("online", "lead", "normaliser", "biases")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.intrinsic is None:
            return
        checked("evaluated of the intrinsic reward", Evaluated, self.intrinsic.evaluated)
        if self.n_step != 1:
            raise InputError(f"an intrinsic reward needs n_step=1, got {self.n_step}")
        if self.reward_range is not None:
            raise InputError(
                "an intrinsic reward takes values outside of reward_range: set one of the two, got"
                f" reward_range={self.reward_range}"
            )
        if self.members[0].terminal == "goal":
            raise InputError(
                "an intrinsic reward hides which ends are goals: it needs terminal='zero' or"
                f" 'absorbing', got {self.shift}"
            )

    def check_offline(self, updates: int) -> None:
        """See `Agent`."""
        if self.intrinsic is not None:
            raise InputError("an intrinsic reward is for exploration; a fixed data set has none")
        super().check_offline(updates)

    def init(self, key: PRNGKeyArray, spec: TaskSpec) -> DQNState:
        """Random networks, which depend on the key and not on the shifts."""
        member_key, intrinsic_key, leader_key = jax.random.split(key, 3)
        axes = (len(self.members),)
        online = init_several(
            self.network, member_key, axes, spec, 0, spec.num_actions, self.initial
        )
        return DQNState(
            online=Learner.start(online, optax.adam(self.learning_rate)),
            target=jax.tree.map(jnp.copy, online),
            intrinsic=()
            if self.intrinsic is None
            else self.intrinsic.init(intrinsic_key, spec.features),
            **self.init_shared(leader_key, spec),
        )

    def values(self, state: DQNState, observation: Array, action: Array | None = None) -> Array:
        """See `Agent`."""
        values = self._values(state.online.parameters, self.inputs(state, observation))
        if action is None:
            return values
        return jnp.take_along_axis(values, action[None, :, None], axis=2)[..., 0]

    def greedy(self, state: DQNState, observation: Array) -> Int[Array, ""]:
        """The best action by the leader's values, or by a mix of all members'."""
        return jnp.argmax(self._followed_values(state, observation)).astype(jnp.int32)

    def _followed_values(self, state: DQNState, observation: Array) -> Float[Array, " action"]:
        inputs = self.inputs(state, observation)
        return self.followed(
            state, state.online.parameters, lambda networks: self._values(networks, inputs)
        )

    def draws(self, spec: TaskSpec) -> int:
        """The number of random numbers that `act` takes."""
        return 2

    def act(
        self, state: DQNState, observation: Array, draws: Float[Array, " 2"], explore: Any
    ) -> Int[Array, ""]:
        """The greedy action; with probability `explore` a random one."""
        roll, pick = draws
        values = self._followed_values(state, observation)
        random_action = (pick * values.size).astype(jnp.int32)
        return jnp.where(roll < explore, random_action, jnp.argmax(values).astype(jnp.int32))

    def observe(self, state: DQNState, observation: Array) -> tuple[DQNState, Float[Array, ""]]:
        """Records the observation, and returns the intrinsic reward to store, or 0."""
        state, nothing = super().observe(state, observation)
        if self.intrinsic is None:
            return state, nothing
        floats = observation.astype(jnp.float32)
        state = state._replace(intrinsic=self.intrinsic.observe(state.intrinsic, floats))
        stored = self.intrinsic.evaluated == "stored"
        return state, self._bonus(state, floats) if stored else nothing

    def update(
        self, state: DQNState, batch: Batch, key: PRNGKeyArray, turn: int
    ) -> tuple[DQNState, dict[str, Float[Array, ""]]]:
        """One step of every member on the same batch."""
        raw = batch.observation.astype(jnp.float32)  # a bonus knows no normaliser
        observation = self.inputs(state, batch.observation)
        fresh = self.intrinsic is not None and self.intrinsic.evaluated == "fresh"
        bonus = self._bonus(state, raw) if fresh else batch.intrinsic
        target = self._target(state, batch, bonus)

        def loss(online: Any) -> tuple[Array, Array]:
            values = self._values(online, observation)
            chosen = jnp.take_along_axis(values, batch.action[None, :, None], axis=2)[..., 0]
            return optax.huber_loss(chosen, target).mean(axis=1).sum(), chosen.mean()

        (total, q), gradient = jax.value_and_grad(loss, has_aux=True)(state.online.parameters)
        online = state.online.step(gradient, optax.adam(self.learning_rate))
        intrinsic, metrics = state.intrinsic, {"loss": total, "q": q, **self.rule_metrics(state)}
        if self.intrinsic is not None:
            intrinsic = self.intrinsic.update(intrinsic, raw)
            metrics["bonus"] = bonus.mean()
        target_network = optax.incremental_update(online.parameters, state.target, self.tau)
        state = state._replace(online=online, target=target_network, intrinsic=intrinsic)
        return state, metrics

    def _values(
        self, networks: Any, observation: Float[Array, "*batch features"]
    ) -> Float[Array, "member *batch action"]:
        return jax.vmap(self.network.apply, in_axes=(0, None))(networks, observation)

    def _bonus(
        self, state: DQNState, observation: Float[Array, "*batch features"]
    ) -> Float[Array, "*batch"]:
        """The intrinsic reward of each observation, not shifted."""
        assert self.intrinsic is not None
        bonus = self.intrinsic.bonus(state.intrinsic, observation)
        shape, wanted = getattr(bonus, "shape", None), observation.shape[:-1]
        if shape != wanted:  # another axis would spread over the whole batch
            raise InputError(
                f"bonus of {shown(self.intrinsic)} must return one number for each observation,"
                f" here the shape {wanted}, got {shown(bonus if shape is None else shape)}"
            )
        return bonus

    def _target(
        self, state: DQNState, batch: Batch, bonus: Float[Array, " batch"]
    ) -> Float[Array, "member batch"]:
        """The members' targets."""
        following = self.inputs(state, batch.next_observation)
        values = self._values(state.target, following)
        if self.double:
            online = self._values(state.online.parameters, following)
            best = jnp.argmax(online, axis=-1, keepdims=True)
            value = jnp.take_along_axis(values, best, axis=-1)[..., 0]
        else:
            value = values.max(axis=-1)
        if self.intrinsic is None:
            return member_targets(self, state.biases, batch, value)
        # The bonus has a shift of its own, which treats terminal states as the members' do.
        own = Shift(self.intrinsic.shift, 1.0, self.gamma, self.members[0].terminal)
        paid = own.reward(bonus, batch.terminated)
        return member_targets(self, state.biases, batch, value, paid)

    def exploration(self, step: int, steps: int) -> float:
        """Epsilon, the probability of a random action: from 0.9 to 0.05 in the first fifth."""
        return max(0.05, 0.9 - 0.85 * step / max(1.0, steps / 5))
