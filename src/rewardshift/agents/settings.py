"""Settings that agents share: online ones, and those that learn from fixed data."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rewardshift.agents.members import keep_leading
from rewardshift.agents.normaliser import Normaliser, init_normaliser, take_note
from rewardshift.agents.reinject import Reinject
from rewardshift.agents.selection import Mixing, Selection, Uniform
from rewardshift.agents.shifts import ShiftLike, as_members
from rewardshift.auto import AUTO, Cautious, Rule, as_rule
from rewardshift.checks import Count, Discount, Finite, Natural, Positive, Rate, check
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import InputError, shown
from rewardshift.learners import Learner
from rewardshift.networks import MLP, Initial, Lifting, Network, twin_values
from rewardshift.optimism import lifetime
from rewardshift.replay import as_floats
from rewardshift.shift import Shift


@dataclass(frozen=True, kw_only=True)
class Online:
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
        reinject: When to raise all values again, which renews the optimism.
    """

    shift: ShiftLike = 0.0
    gamma: Discount = 0.99
    network: Network = field(default_factory=lambda: MLP((256, 256)))
    initial: Initial = "random"
    learning_rate: Positive = 3e-4
    batch_size: Count = 256
    tau: Rate = 0.005
    n_step: Count = 1
    selection: Selection = field(default_factory=Uniform)
    lead_episodes: Natural = 1
    lead_steps: Natural = 1000
    reward_range: tuple[Finite, Finite] | None = None
    normalise: bool = False
    reinject: Reinject | None = None

    def __post_init__(self) -> None:
        check(self)
        rule = as_rule(self.shift)
        given = cast("Any", self.shift)
        object.__setattr__(self, "shift", rule or as_members(given, self.gamma))
        if self.reward_range is not None and self.reward_range[0] > self.reward_range[1]:
            raise InputError(
                f"reward_range must have the lower number first, got {self.reward_range}"
            )
        ranges = getattr(self.network, "input_range", ())
        if self.normalise and ranges:
            raise InputError(
                "normalise scales the observations already, so the network needs input_range=(),"
                f" got {ranges}"
            )
        if self.reinject is not None and not isinstance(self.network, Lifting):
            raise InputError(
                "reinject needs a network with a function `lift`, as MLP and Convolution have, got"
                f" {shown(self.network)}"
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
            return self.shift.shifts(self.shift.start(), self.gamma)
        return cast("tuple[Shift, ...]", self.shift)

    def shifts(self, state: Any) -> tuple[Shift, ...]:
        """See `Adapting`."""
        if isinstance(self.shift, Rule):
            return self.shift.shifts(state.rule, self.gamma)
        return self.members

    def adapt(self, state: Any, reward: Float[Array, ""], ended: Any) -> Any:
        """See `Adapting`."""
        if isinstance(self.shift, Rule):
            return state._replace(rule=self.shift.see(state.rule, reward, ended, self.gamma))
        return state

    def first_rule(self) -> Any:
        """The state of the rule that chooses the shift; empty without a rule."""
        return jax.tree.map(jnp.float32, self.shift.start()) if isinstance(self.shift, Rule) else ()

    def told(self, state: Any) -> dict[str, Array]:
        """Metrics of the rule that chooses the shift."""
        return self.shift.told(state.rule) if isinstance(self.shift, Rule) else {}

    def with_optimism(self, values: Learner, targets: Any) -> tuple[Learner, Any]:
        """The value networks and their targets after an update; see `Reinject`."""
        if self.reinject is None:
            return values, targets
        assert isinstance(self.network, Lifting)
        return self.reinject.after_update(self.network, values, targets)

    def first_normaliser(self, spec: TaskSpec) -> Normaliser | tuple[()]:
        """The normaliser before the first observation; empty if observations are not scaled."""
        return init_normaliser(spec) if self.normalise else ()

    def observe(self, state: Any, observation: Array) -> tuple[Any, Float[Array, ""]]:
        """Updates the normaliser; there is no intrinsic reward."""
        if isinstance(state.normaliser, Normaliser):
            noted = take_note(state.normaliser, as_floats(observation))
            state = state._replace(normaliser=noted)
        return state, jnp.zeros(())

    @property
    def lifetime(self) -> float:
        """The lifetime of a shift, in updates; see `rewardshift.lifetime`."""
        return lifetime(self.gamma, self.tau)

    def check_offline(self, updates: int) -> None:
        """See `Choosy`."""
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
        return state._replace(lead=keep_leading(self, state.lead, draw, ended, total))


@dataclass(frozen=True, kw_only=True)
class Offline:
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
    gamma: Discount = 0.99
    batch_size: Count = 256
    tau: Rate = 0.005
    network: Network = field(default_factory=MLP)
    initial: Initial = "random"

    continuous: ClassVar[bool] = True
    period: ClassVar[int] = 1

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
    def value_shift(self) -> Shift:
        """The shift that gives the values their scale, with the agent's discount."""
        if not isinstance(self.shift, Shift):
            raise AttributeError(  # of this kind, so that `hasattr` is false and raises nothing
                "shift='auto' is decided by a data set, in train_offline; before that"
                f" {type(self).__name__} has no shift"
            )
        return replace(self.shift, gamma=self.gamma)

    @property
    def lifetime(self) -> float:
        """The lifetime of a shift, in updates; see `rewardshift.lifetime`."""
        return lifetime(self.gamma, self.tau)

    def action_value(
        self, state: Any, observation: Array, action: Float[Array, "batch size"]
    ) -> Float[Array, " batch"]:
        """The values of actions, on the shifted scale: the lower of the twins."""
        return twin_values(
            self.network, state.critics.parameters, as_floats(observation), action
        ).min(axis=0)
