"""DQN whose members see differently shifted rewards, with a slot for an intrinsic reward."""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, cast

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rewardshift.agents.checks import check_hindsight, check_offline
from rewardshift.agents.intrinsic import Intrinsic
from rewardshift.agents.members import keep_leading, mixing_weights
from rewardshift.agents.selection import Lead, Mixing, Selection, Uniform, first_lead
from rewardshift.agents.shifts import ShiftLike, as_members
from rewardshift.agents.targets import member_targets
from rewardshift.checks import Count, Discount, Natural, Positive, Rate, Widths, check
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import InputError
from rewardshift.hindsight import Hindsight
from rewardshift.networks import MLP, adam_step, apply_mlp, huber, init_mlp, soft_update
from rewardshift.optimism import lifetime
from rewardshift.replay import Batch, as_floats
from rewardshift.shift import Shift

Schedule = Literal["linear", "exponential"]


class DQNState(NamedTuple):
    """What a `DQN` has learned: networks with a leading axis over the members."""

    online: MLP
    target: MLP
    optimiser: optax.OptState
    intrinsic: Any
    lead: Lead


@dataclass(frozen=True)
class DQN:
    """Deep Q-learning with one network per shift.

    One shift is plain DQN, with 0 the usual one. Several are Random Reward Shift for
    discrete actions: all members learn from the same transitions, each on its own scale,
    and one of them, drawn anew for every episode, chooses the actions.

    Args:
        shift: What is done to the rewards: a number, a `Shift`, or several, one for each member.
        gamma: The discount.
        hidden: Widths of the hidden layers.
        learning_rate: Adam's learning rate.
        batch_size: Transitions per update.
        tau: How far the target networks move to the online ones at every update.
        double: Whether the online network chooses the action that the target one values.
        n_step: How many rewards a target sums up.
        epsilon: `"linear"`: from 0.9 to 0.05 over the first fifth of training, the paper's
            word. `"exponential"`: 0.05 + 0.85 exp(-steps / 200), the authors' code.
        input_range: The lowest and the highest value of each number of an observation, or of all
            of them if it is one pair. The networks then see inputs from 0 to 1; if it is empty,
            they see the observations as they are.
        intrinsic: An intrinsic reward that is added to the extrinsic one.
        selection: Which member leads.
        lead_episodes: Episodes that a member leads at least. 0 allows a switch within an episode.
        lead_steps: Steps that a member leads at least.
        hindsight: How goals are relabelled, in a goal task.
    """

    shift: ShiftLike = 0.0
    gamma: Discount = 0.95
    hidden: Widths = (64,)
    learning_rate: Positive = 1e-3
    batch_size: Count = 64
    tau: Rate = 0.05
    double: bool = False
    n_step: Count = 1
    epsilon: Schedule = "linear"
    input_range: tuple[tuple[float, float], ...] = ()
    intrinsic: Intrinsic | None = None
    selection: Selection = field(default_factory=Uniform)
    lead_episodes: Natural = 1
    lead_steps: Natural = 0
    hindsight: Hindsight | None = None

    networks: ClassVar[tuple[str, ...]] = ("online", "lead")
    continuous: ClassVar[bool] = False
    period: ClassVar[int] = 1
    warm_up: ClassVar[int] = 0

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "shift", as_members(self.shift, self.gamma))
        if any(not low < high for low, high in self.input_range):
            raise InputError(
                f"input_range must be pairs of a lower and a higher number, got {self.input_range}"
            )
        check_hindsight(self)
        if self.intrinsic is not None and self.n_step != 1:
            raise InputError(f"an intrinsic reward needs n_step=1, got {self.n_step}")

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
        if self.intrinsic is not None:
            raise InputError("an intrinsic reward is for exploration; a fixed data set has none")
        check_offline(self, mixes=isinstance(self.selection, Mixing))

    def init(self, key: PRNGKeyArray, spec: TaskSpec) -> DQNState:
        """Random networks, the same for the same key whatever the shifts are."""
        if len(self.input_range) not in (0, 1, spec.features):
            raise InputError(
                f"input_range must be one pair, or one for each of the {spec.features} numbers of"
                f" an observation, got {len(self.input_range)}"
            )
        member_key, intrinsic_key, leader_key = jax.random.split(key, 3)
        sizes = (spec.features, *self.hidden, spec.num_actions)
        keys = jax.random.split(member_key, len(self.members))
        online = jax.vmap(lambda k: init_mlp(k, sizes))(keys)
        return DQNState(
            online=online,
            target=jax.tree.map(jnp.copy, online),
            optimiser=optax.adam(self.learning_rate).init(online),
            intrinsic=()
            if self.intrinsic is None
            else self.intrinsic.init(intrinsic_key, spec.features),
            lead=first_lead(len(self.members), jax.random.uniform(leader_key)),
        )

    def values(
        self, state: DQNState, observation: Float[Array, "*batch features"]
    ) -> Float[Array, "member *batch action"]:
        """What each member thinks of each action, on its own scale."""
        return self._values(state.online, observation)

    def greedy(self, state: DQNState, observation: Array) -> Int[Array, ""]:
        """The best action by the leader's values, or by a mix of all members'."""
        floats = as_floats(observation)
        if isinstance(self.selection, Mixing):
            values = mixing_weights(self.selection, self.members) @ self.values(state, floats)
        else:
            leader = jax.tree.map(lambda leaf: leaf[state.lead.leader], state.online)
            values = apply_mlp(leader, self._scaled(floats))
        return jnp.argmax(values).astype(jnp.int32)

    def draws(self, spec: TaskSpec) -> int:
        """How many random numbers `act` takes."""
        return 2

    def act(
        self, state: DQNState, observation: Array, draws: Float[Array, " 2"], explore: Any
    ) -> Int[Array, ""]:
        """The greedy action; with probability `explore` a random one."""
        roll, pick = draws
        random_action = (pick * state.online[-1][1].shape[-1]).astype(jnp.int32)
        return jnp.where(roll < explore, random_action, self.greedy(state, observation))

    def lead(self, state: DQNState, draw: Float[Array, ""], ended: Any, total: Any) -> DQNState:
        """Decides, after a step, which member leads on."""
        return state._replace(lead=keep_leading(self, state.lead, draw, ended, total))

    def observe(self, state: DQNState, observation: Array) -> tuple[DQNState, Float[Array, ""]]:
        """Takes note of what is acted in, and says how new it is now if that is to be stored."""
        if self.intrinsic is None:
            return state, jnp.zeros(())
        floats = as_floats(observation)
        intrinsic = self.intrinsic.observe(state.intrinsic, floats)
        stored = self.intrinsic.evaluated == "stored"
        bonus = self.intrinsic.bonus(intrinsic, floats) if stored else jnp.zeros(())
        return state._replace(intrinsic=intrinsic), bonus

    def update(
        self, state: DQNState, batch: Batch, key: PRNGKeyArray, turn: int
    ) -> tuple[DQNState, dict[str, Float[Array, ""]]]:
        """One step of every member on the same batch."""
        observation, following = as_floats(batch.observation), as_floats(batch.next_observation)
        bonus = self._bonus(state, batch, observation)
        target = self._target(state, batch, following, bonus)

        def loss(online: MLP) -> tuple[Array, Array]:
            values = self._values(online, observation)
            chosen = jnp.take_along_axis(values, batch.action[None, :, None], axis=2)[..., 0]
            return huber(chosen - target).mean(axis=1).sum(), chosen.mean()

        (total, q), gradient = jax.value_and_grad(loss, has_aux=True)(state.online)
        online, optimiser = adam_step(self.learning_rate, gradient, state.optimiser, state.online)
        intrinsic, metrics = state.intrinsic, {"loss": total, "q": q}
        if self.intrinsic is not None:
            intrinsic = self.intrinsic.update(intrinsic, observation)
            metrics["bonus"] = bonus.mean()
        state = state._replace(
            online=online,
            target=soft_update(state.target, online, self.tau),
            optimiser=optimiser,
            intrinsic=intrinsic,
        )
        return state, metrics

    def _scaled(self, observation: Float[Array, "*batch features"]) -> Array:
        """Observations as the networks see them."""
        if not self.input_range:
            return observation
        low, high = jnp.asarray(self.input_range).T
        return (observation - low) / (high - low)

    def _values(
        self, networks: MLP, observation: Float[Array, "*batch features"]
    ) -> Float[Array, "member *batch action"]:
        return jax.vmap(apply_mlp, in_axes=(0, None))(networks, self._scaled(observation))

    def _bonus(self, state: DQNState, batch: Batch, observation: Array) -> Float[Array, " batch"]:
        """The intrinsic reward of each transition, not shifted."""
        if self.intrinsic is None or self.intrinsic.evaluated == "stored":
            return batch.intrinsic
        return self.intrinsic.bonus(state.intrinsic, observation)

    def _target(
        self, state: DQNState, batch: Batch, following: Array, bonus: Float[Array, " batch"]
    ) -> Float[Array, "member batch"]:
        """What each member's values should have been."""
        values = self._values(state.target, following)
        if self.double:
            best = jnp.argmax(self.values(state, following), axis=-1, keepdims=True)
            value = jnp.take_along_axis(values, best, axis=-1)[..., 0]
        else:
            value = values.max(axis=-1)
        if self.intrinsic is None:
            return member_targets(self, batch, value)
        own = Shift(self.intrinsic.shift, 1.0, self.gamma, self.members[0].terminal)
        return member_targets(self, batch, value, own.reward(bonus, batch.terminated))

    def exploration(self, step: int, steps: int) -> float:
        """Epsilon at a step of a training of so many steps."""
        if self.epsilon == "exponential":
            return 0.05 + 0.85 * math.exp(-step / 200)
        return max(0.05, 0.9 - 0.85 * step / max(1.0, steps / 5))
