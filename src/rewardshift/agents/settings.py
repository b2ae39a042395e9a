"""Settings that agents share: online ones, and those that learn from fixed data."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rewardshift.agents.base import Agent, Biases, as_floats
from rewardshift.agents.networks import MLP, Initial, Network, init_several, twin_values
from rewardshift.agents.normaliser import Normaliser
from rewardshift.agents.selection import Mixing, Selection, Uniform, first_lead, next_lead
from rewardshift.auto import AUTO, Cautious, Rule, as_rule
from rewardshift.checks import Count, Natural, Positive, Range, Rate, check
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import InputError, shown
from rewardshift.optimism import lifetime
from rewardshift.shift import Shift, as_shift, without_arrays

ShiftLike = float | Shift | tuple[float | Shift, ...] | Rule | Literal["auto"]


def as_members(value: float | Shift | tuple[float | Shift, ...], gamma: float) -> tuple[Shift, ...]:
    """The shifts of an agent's members. They have no discount: it belongs to the agent.

    Args:
        value: A number, a `Shift`, or several of these, one for each member.
        gamma: The agent's discount. A `Shift` with another discount is refused.
    """
    given = value if isinstance(value, tuple) else (value,)
    members = tuple(without_arrays(as_shift(one)) for one in given)
    if not members:
        raise InputError("shift must be at least one number or Shift, got ()")
    for member in members:
        if member.gamma not in (None, gamma):
            raise InputError(
                f"the discount of shift must be the agent's, gamma={gamma}, or left out, got"
                f" {member.gamma}"
            )
    if len({member.terminal for member in members}) > 1:
        raise InputError(f"the members of shift must agree in terminal, got {members}")
    return tuple(replace(member, gamma=None) for member in members)


@dataclass(frozen=True, kw_only=True)
class Online(Agent):
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
        rule = as_rule(self.shift)
        given = cast("Any", self.shift)
        object.__setattr__(self, "shift", rule or as_members(given, self.gamma))
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
        if isinstance(self.shift, Rule):
            shifts: Any = self.shift.shifts(self.shift.start(), self.gamma)
            if not (isinstance(shifts, tuple) and all(isinstance(one, Shift) for one in shifts)):
                raise InputError(
                    f"shifts of {shown(self.shift)} must return a tuple with a Shift for each"
                    f" member, got {shown(shifts)}"
                )
            return shifts
        return cast("tuple[Shift, ...]", self.shift)

    def init_shared(self, key: PRNGKeyArray, spec: TaskSpec) -> dict[str, Any]:
        """The fields of the state that every such agent has, before the first step."""
        rule = self.shift.start() if isinstance(self.shift, Rule) else ()
        return {
            "lead": first_lead(len(self.members), jax.random.uniform(key)),
            "normaliser": Normaliser.start(spec) if self.normalise else (),
            "rule": jax.tree.map(jnp.float32, rule),
            "biases": Biases.of(self.members),
        }

    def inputs(self, state: Any, observation: Array) -> Float[Array, "*batch features"]:
        """Observations as the networks see them."""
        floats = as_floats(observation)
        return state.normaliser.scale(floats) if self.normalise else floats

    def observe(self, state: Any, observation: Array) -> tuple[Any, Float[Array, ""]]:
        """Updates the normaliser; there is no intrinsic reward."""
        if self.normalise:
            state = state._replace(normaliser=state.normaliser.add(as_floats(observation)))
        return state, jnp.zeros(())

    def adapt(self, state: Any, reward: Float[Array, ""], ended: Any) -> Any:
        """Lets the rule that chooses the shift observe the reward."""
        if not isinstance(self.shift, Rule):
            return state
        rule = self.shift.observe(state.rule, reward, ended, self.gamma)
        return state._replace(rule=rule, biases=Biases.of(self.shift.shifts(rule, self.gamma)))

    def rule_metrics(self, state: Any) -> dict[str, Array]:
        """Metrics of the rule that chooses the shift."""
        return self.shift.metrics(state.rule) if isinstance(self.shift, Rule) else {}

    def mixing_weights(self, biases: Biases) -> Float[Array, " member"]:
        """The weight of each member's value in the mix, which has the members' mean scale."""
        bias, scale = biases
        assert isinstance(self.selection, Mixing)
        weights = jnp.asarray(self.selection.weights(bias / scale))
        if weights.shape != bias.shape:
            raise InputError(
                f"weights of {shown(self.selection)} must return one number for each of"
                f" {bias.size} members, got the shape {weights.shape}"
            )
        return weights / scale * scale.mean()

    @property
    def lifetime(self) -> float:
        """The lifetime of a shift, in updates; see `rewardshift.lifetime`."""
        return lifetime(self.gamma, self.tau, self.period)

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

    def lead(self, state: Any, draw: Float[Array, ""], ended: Any, total: Any) -> Any:
        """The state after a step, with the member that leads next."""
        if isinstance(self.selection, Mixing):
            return state
        least = (self.lead_episodes, self.lead_steps)
        lead = next_lead(state.lead, self.selection, draw, (ended, total), least)
        return state._replace(lead=lead)


@dataclass(frozen=True, kw_only=True)
class Offline(Agent):
    """Settings of every agent that learns from fixed data.

    Args:
        shift: The shift of the rewards: a number, or in Python also a `Shift`. A positive shift
            makes the agent cautious. `"auto"` takes the smallest shift with which values start no
            higher than the lowest value that is possible with the rewards of the data.
        gamma: The discount.
        batch_size: Transitions per update.
        tau: The share by which an update moves the target networks towards the learned ones.
        network: The networks of the policy and the critics.
        initial: `"zero"` starts the output layer of the critics at zero, so that every value is
            exactly 0 at first.
    """

    shift: float | Shift | Cautious | Literal["auto"] = 0.0
    tau: Rate = 0.005
    network: Network = field(default_factory=MLP)
    initial: Initial = "random"

    continuous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check(self)
        given: Any = Cautious() if self.shift == AUTO else self.shift
        shift = given if isinstance(given, Cautious) else as_members(given, self.gamma)[0]
        if shift.terminal == "goal":
            raise InputError(
                f"{type(self).__name__} takes terminal='zero' or 'absorbing', got 'goal'"
            )
        object.__setattr__(self, "shift", shift)

    @property
    def members(self) -> tuple[Shift, ...]:
        """The shift; empty if it is `"auto"`, which a data set decides, in `train_offline`."""
        return (self.shift,) if isinstance(self.shift, Shift) else ()

    @property
    def lifetime(self) -> float:
        """The lifetime of a shift, in updates; see `rewardshift.lifetime`."""
        return lifetime(self.gamma, self.tau)

    def init_critics(self, key: PRNGKeyArray, spec: TaskSpec) -> Any:
        """The parameters of two critics, `[twin, ...]`."""
        return init_several(self.network, key, (2,), (spec, spec.action_size, 1, self.initial))

    def values(
        self, state: Any, observation: Array, action: Array | None = None
    ) -> Float[Array, "1 batch"]:
        """The values of actions, on the shifted scale: the lower of the twins."""
        assert action is not None
        return twin_values(
            self.network, state.critics.parameters, as_floats(observation), action
        ).min(axis=0, keepdims=True)
