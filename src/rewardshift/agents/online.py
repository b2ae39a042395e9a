"""What the agents that learn in an environment share: settings, and one member for each shift.

The members of `TD3` and `SAC` are critics, the same number for each shift. This is Random Reward
Shift, Algorithm 1 of https://arxiv.org/abs/2209.07288. The algorithm as printed leaves out the
discount and the second critic; we follow its authors' code, which has both.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from rewardshift.agents.base import Agent, Biases, as_members
from rewardshift.agents.networks import MLP, Initial, Learner, Network
from rewardshift.agents.normaliser import Normaliser
from rewardshift.agents.selection import Lead, Mixing, Selection, Uniform
from rewardshift.auto import AUTO, Auto, Rule
from rewardshift.checks import Count, Natural, Positive, Range, Rate, check
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import InputError, shown
from rewardshift.optimism import lifetime
from rewardshift.shift import Shift

ShiftLike = float | Shift | tuple[float | Shift, ...] | Rule | Literal["auto"]

# Replaces a uniform number of 0, which `ndtri` would turn into an infinite normal number. Uniform
# numbers are multiples of 2^-24.
SMALLEST_UNIFORM = 2.0**-25


@dataclass(frozen=True, kw_only=True)
class OnlineAgent(Agent):
    """Settings of every agent that learns in an environment, with one member per shift.

    Args:
        shift: The shift of the rewards: a number, or several, one for each member; or `"auto"`,
            which chooses it from the rewards, or on a data set from the data. In Python it may also
            be a rule such as `Auto`, and each number a `Shift`.
        gamma: The discount.
        network: The network of every value function and policy.
        initial: `"zero"` starts the output layer of the value networks at zero, so that every
            value is exactly 0 at first.
        learning_rate: Adam's learning rate.
        batch_size: Transitions per update.
        tau: The share by which an update moves the target networks towards the learned ones.
        n_step: The number of rewards in a target.
        selection: The rule that chooses the leading member.
        lead_episodes: The minimum number of episodes that a member leads. 0 allows a switch within
            an episode.
        lead_steps: The minimum number of steps that a member leads.
        reward_range: The lowest and the highest primal reward. Targets are then bounded by the
            values that such rewards can add up to. The range is shifted like the rewards.
        normalise: Whether observations are scaled by their running mean and deviation.
    """

    shift: ShiftLike = 0.0
    network: Network = field(default_factory=lambda: MLP((256, 256)))
    initial: Initial = "random"
    learning_rate: Positive = 3e-4
    tau: Rate = 0.005
    n_step: Count = 1
    selection: Selection = field(default_factory=Uniform)
    lead_episodes: Natural = 1
    lead_steps: Natural = 1000
    reward_range: Range | None = None
    normalise: bool = False

    def __post_init__(self) -> None:
        check(self)
        given: Any = Auto() if self.shift == AUTO else self.shift
        shift = given if isinstance(given, Rule) else as_members(given, self.gamma)
        object.__setattr__(self, "shift", shift)
        ranges = getattr(self.network, "input_range", ())
        if self.normalise and ranges:
            raise InputError(
                "normalise scales the observations already, so the network needs input_range=(),"
                f" got {ranges}"
            )
        if self.members[0].terminal == "goal" and (self.n_step, self.reward_range) != (1, None):
            raise InputError(
                "terminal='goal', the treatment of 'auto', needs n_step=1 and no reward_range, got"
                f" n_step={self.n_step} and reward_range={self.reward_range}"
            )

    @property
    def members(self) -> tuple[Shift, ...]:
        """The shift of each member before the first step; the discount is the agent's."""
        rule = self.shift
        if not isinstance(rule, Rule):
            return cast("tuple[Shift, ...]", rule)
        shift = rule.shift_at(rule.start(), self.gamma)
        if not isinstance(shift, Shift) or np.ndim(shift.bias) or np.ndim(shift.scale):
            raise InputError(
                f"shift_at of {shown(rule)} must return a Shift of one bias and one scale, got"
                f" {shown(shift)}"
            )
        return (shift,)

    def init_shared(self, key: PRNGKeyArray, spec: TaskSpec) -> dict[str, Any]:
        """The fields of the state that every such agent has, before the first step."""
        zero, zeros = jnp.zeros((), jnp.int32), jnp.zeros(len(self.members))
        leader = Uniform().draw(zeros, jax.random.uniform(key))  # for any selection
        rule = self.shift.start() if isinstance(self.shift, Rule) else ()
        return {
            "lead": Lead(leader, zero, zero, zeros + jnp.nan, zeros),
            "normaliser": Normaliser.start(spec) if self.normalise else (),
            "rule": jax.tree.map(jnp.float32, rule),
            "biases": Biases.of(self.members),
        }

    def inputs(self, state: Any, observation: Array) -> Float[Array, "*batch features"]:
        """Observations as the networks see them."""
        floats = observation.astype(jnp.float32)
        return state.normaliser.scale(floats) if self.normalise else floats

    def observe(self, state: Any, observation: Array) -> tuple[Any, Float[Array, ""]]:
        """Updates the normaliser; there is no intrinsic reward."""
        if self.normalise:
            state = state._replace(normaliser=state.normaliser.add(observation.astype(jnp.float32)))
        return state, jnp.zeros(())

    def adapt(self, state: Any, reward: Float[Array, ""], terminated: Any) -> Any:
        """Lets the rule that chooses the shift observe the reward."""
        if not isinstance(self.shift, Rule):
            return state  # and its biases: those of a sweep are not the settings'
        rule = self.shift.observe(state.rule, reward, terminated, self.gamma)
        shift = self.shift.shift_at(rule, self.gamma)
        return state._replace(rule=rule, biases=Biases.of((shift,)))

    def rule_metrics(self, state: Any) -> dict[str, Array]:
        """Metrics of the rule that chooses the shift."""
        return self.shift.metrics(state.rule) if isinstance(self.shift, Rule) else {}

    def lead(self, state: Any, draw: Float[Array, ""], ended: Any, total: Any) -> Any:
        """The state after a step, with the member that leads next.

        A leader may change once it has led for `lead_episodes` and for `lead_steps`: at the end of
        an episode, or at once if `lead_episodes` is 0.
        """
        if isinstance(self.selection, Mixing):
            return state
        lead: Lead = state.lead
        steps, episodes = lead.steps + 1, lead.episodes + ended
        led = ended & (jnp.arange(lead.progress.shape[0]) == lead.leader)
        progress = jnp.where(led, jnp.nan_to_num(total - lead.last_return), lead.progress)
        due = (steps >= self.lead_steps) & (episodes >= self.lead_episodes)
        if self.lead_episodes:
            due = due & ended
        lead = Lead(
            leader=jnp.where(due, self.selection.draw(progress, draw), lead.leader),
            steps=jnp.where(due, 0, steps),
            episodes=jnp.where(due, 0, episodes),
            last_return=jnp.where(led, total, lead.last_return),
            progress=progress,
        )
        return state._replace(lead=lead)

    def followed(self, state: Any, networks: Any, values_of: Callable[[Any], Array]) -> Array:
        """The values that the policy follows: the leader's, or a mix of all members'.

        The mix has the members' mean scale. `values_of` maps the networks of some members to
        values, `[member, ...]`.
        """
        if not isinstance(self.selection, Mixing):
            leader = jax.tree.map(lambda leaf: leaf[state.lead.leader[None]], networks)
            return values_of(leader)[0]
        bias, scale = state.biases
        weights = jnp.asarray(self.selection.weights(bias / scale))
        return weights / scale * scale.mean() @ values_of(networks)

    @property
    def lifetime(self) -> float:
        """The lifetime of a shift, in updates; see `rewardshift.lifetime`."""
        return lifetime(self.gamma, self.tau, self.period, self.n_step)

    def check_offline(self, updates: int) -> None:
        """See `Agent`."""
        if self.normalise:
            raise InputError("normalise works online only; scale the data set itself instead")
        if isinstance(self.shift, Rule):
            raise InputError(
                f"on a data set shift must be a number, a Shift or 'auto', got {shown(self.shift)},"
                " a rule that follows the steps of a training"
            )
        if self.n_step != 1:
            raise InputError(f"on a data set n_step must be 1, got {self.n_step}")
        if len(self.members) > 1 and not isinstance(self.selection, Mixing):
            raise InputError(
                "members take turns by the episode, and a data set has no new episodes: give one"
                f" shift, or a selection that mixes members, got {len(self.members)} shifts"
            )


@dataclass(frozen=True, kw_only=True)
class ActorCritic(OnlineAgent):
    """An agent with continuous actions, whose critics have axes over the members and the twins."""

    continuous: ClassVar[bool] = True

    def member_values(
        self,
        critics: Any,
        observation: Float[Array, "batch features"],
        action: Float[Array, "one batch size"],
    ) -> Float[Array, "member twin batch"]:
        """Every critic's values of actions; `one` is 1 if the members share the actions."""
        axes = jax.tree.leaves(critics)[0].shape[:2]  # members and twins
        observations = jnp.broadcast_to(observation, (*axes, *observation.shape))
        actions = jnp.broadcast_to(action[:, None], (*axes, *action.shape[1:]))
        return jax.vmap(jax.vmap(self.network.apply))(critics, observations, actions)[..., 0]

    def values(
        self, state: Any, observation: Array, action: Array | None = None
    ) -> Float[Array, "member batch"]:
        """Each member's values of actions, on its own scale: the lowest of its twins."""
        assert action is not None
        inputs = self.inputs(state, observation)
        return self.member_values(state.critics.parameters, inputs, action[None]).min(axis=1)

    def improve_critics(
        self,
        critics: Learner,
        observation: Float[Array, "batch features"],
        action: Float[Array, "batch size"],
        target: Float[Array, "member batch"],
    ) -> tuple[Learner, dict[str, Float[Array, ""]]]:
        """One step of every critic towards its member's targets, and the metrics of that step."""

        def loss(critics: Any) -> tuple[Array, Array]:
            values = self.member_values(critics, observation, action[None])
            # A sum over critics: each then has the gradient that it would have alone.
            return ((values - target[:, None]) ** 2).mean(axis=2).sum(), values.mean()

        (total, q), gradient = jax.value_and_grad(loss, has_aux=True)(critics.parameters)
        return critics.step(gradient, optax.adam(self.learning_rate)), {"loss": total, "q": q}
