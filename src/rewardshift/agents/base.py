"""The base class of every agent, which is all that the loops know of one.

An agent is a frozen dataclass: its fields are its settings, and its methods are pure functions
that JAX can trace. Its state is a NamedTuple of arrays. An agent extends `Agent` and defines
`init`, `update` and `greedy`; to learn in an environment it also defines `act`. Everything else has
a default that does nothing, so an agent from another package works like ours.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from rewardshift.agents.networks import Learner
from rewardshift.checks import Count, Discount
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import InputError
from rewardshift.shift import Shift, as_shift

Metrics = dict[str, Float[Array, ""]]


class Batch(NamedTuple):
    """Sampled transitions, with primal rewards.

    `action` is a whole number, or the components of a continuous action. `reward` is the
    discounted sum of `steps` rewards, and `next_observation` follows the last of them.
    `intrinsic` is the intrinsic reward at the time of collection.
    """

    observation: Array
    action: Int[Array, "*batch"] | Float[Array, "*batch size"]
    reward: Float[Array, "*batch"]
    next_observation: Array
    terminated: Bool[Array, "*batch"]
    steps: Int[Array, "*batch"]
    intrinsic: Float[Array, "*batch"]


class Biases(NamedTuple):
    """The bias and the scale of each member's shift, as part of an agent's state.

    They are numbers of the state and not constants of the program, so one compiled program trains
    rows with different shifts side by side, and a rule can move them.
    """

    bias: Float[Array, " member"]
    scale: Float[Array, " member"]

    @classmethod
    def of(cls, shifts: tuple[Shift, ...]) -> "Biases":
        """The numbers of the members' shifts."""
        bias, scale = ([getattr(one, name) for one in shifts] for name in ("bias", "scale"))
        return cls(jnp.asarray(bias, jnp.float32), jnp.asarray(scale, jnp.float32))


@dataclass(frozen=True, kw_only=True)
class Agent(ABC):
    """An agent.

    `init`, `update` and `greedy` are enough to learn from fixed data; `act`, `draws` and
    `exploration` are for learning in an environment.

    Args:
        shift: The shift of the rewards, in whatever form the agent takes it.
        gamma: The discount.
        batch_size: Transitions per update.
    """

    shift: Any = 0.0
    gamma: Discount = 0.99
    batch_size: Count = 256

    # Whether actions are continuous, in [-1, 1], rather than discrete.
    continuous: ClassVar[bool] = False
    # The fields of the state that `greedy` reads; `parameters.npz` keeps them.
    networks: ClassVar[tuple[str, ...]] = ()

    def defines(self, name: str) -> bool:
        """Whether the agent has its own `act`, `values` or `policy_value`."""
        return getattr(type(self), name) is not getattr(Agent, name)

    def acting_state(self, state: Any) -> Any:
        """The state with the fields that `greedy` reads, without optimisers; others are empty."""
        fields = {name: getattr(state, name) for name in self.networks}
        for name, part in fields.items():
            if isinstance(part, Learner):
                fields[name] = part._replace(optimiser=())
        return state._replace(**(dict.fromkeys(state._fields, ()) | fields))

    @abstractmethod
    def init(self, key: PRNGKeyArray, spec: TaskSpec) -> Any:
        """The state before the first update."""

    @abstractmethod
    def update(self, state: Any, batch: Batch, key: PRNGKeyArray, turn: int) -> tuple[Any, Metrics]:
        """The state after an update on a batch of primal transitions, and metrics to log."""

    @abstractmethod
    def greedy(self, state: Any, observation: Array) -> Array:
        """The action without exploration."""

    @property
    def period(self) -> int:
        """Length of the update cycle; the `turn` of an update counts from 0 to `period - 1`."""
        return 1

    @property
    def warm_up(self) -> int:
        """Steps before the first update."""
        return 0

    def exploration(self, step: int, steps: int) -> Any:
        """The amount of exploration at a step of a training with `steps` steps, for `act`.

        By default this is whether the step is in the warm-up.
        """
        return step < self.warm_up

    def draws(self, spec: TaskSpec) -> int:
        """The number of random numbers that `act` takes."""
        return 0

    def act(self, state: Any, observation: Array, draws: Float[Array, " n"], explore: Any) -> Any:
        """The action to take while training, given random numbers in [0, 1)."""
        raise TypeError(f"{type(self).__name__} learns from a data set and does not explore")

    def lead(self, state: Any, draw: Float[Array, ""], ended: Any, total: Any) -> Any:
        """The state after a step, with the member that leads next.

        Args:
            state: The agent's state.
            draw: A random number in [0, 1).
            ended: Whether the step ended an episode.
            total: The return of the episode so far.
        """
        return state

    def observe(self, state: Any, observation: Array) -> tuple[Any, Float[Array, ""]]:
        """The state after recording an observation, and the intrinsic reward to store, or 0."""
        return state, jnp.zeros(())

    def adapt(self, state: Any, reward: Float[Array, ""], terminated: Any) -> Any:
        """The state after the primal reward of a step, which may have been a terminal one.

        An agent whose shift follows the rewards changes it here.
        """
        return state

    @property
    def n_step(self) -> int:
        """The number of rewards in a target."""
        return 1

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The lowest and the highest primal reward, or None if targets are not bounded."""
        return None

    @property
    def members(self) -> tuple[Shift, ...]:
        """The shift of each member before the first step; empty if the agent tells none."""
        return ()

    def shifts(self, state: Any) -> tuple[Shift, ...]:
        """The members' shifts now, with the agent's discount; empty if the agent tells none."""
        if not self.members:
            return ()
        pairs = zip(state.biases.bias, state.biases.scale, strict=True)
        terminal = self.members[0].terminal
        return tuple(Shift(bias, scale, self.gamma, terminal) for bias, scale in pairs)

    def values(self, state: Any, observation: Array, action: Array | None = None) -> Array:
        """Each member's values of a batch of actions, `[member, batch]`, on its own scale.

        Without actions, an agent with discrete ones returns the values of all of them,
        `[member, batch, action]`.
        """
        raise TypeError(f"{type(self).__name__} does not tell its values")

    def policy_value(self, state: Any, observation: Array) -> Float[Array, ""]:
        """The value of the policy in a state, on the scale of the member that it follows."""
        raise TypeError(f"{type(self).__name__} does not tell the value of its policy")

    def check_offline(self, updates: int) -> None:
        """Raises if `updates` updates on fixed data do not suit the agent's settings."""
        return


def as_members(value: float | Shift | tuple[float | Shift, ...], gamma: float) -> tuple[Shift, ...]:
    """The shifts of an agent's members. They have no discount: it belongs to the agent.

    Args:
        value: A number, a `Shift`, or several of these, one for each member.
        gamma: The agent's discount. A `Shift` with another discount is refused.
    """
    given = value if isinstance(value, tuple) else (value,)
    members = tuple(map(as_shift, given))
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
