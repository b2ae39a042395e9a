"""The contract between an agent and the loops that train it.

An agent is a frozen dataclass: its fields are its settings, and its methods are pure functions that
JAX can trace. Its state is a NamedTuple of arrays. The loops know this contract and nothing else,
so an agent from another package works like ours. `Agent` is enough to learn from fixed data,
`OnlineAgent` to learn in an environment. The other protocols are optional: the loops use those that
the agent implements.
"""

from typing import Any, Protocol, TypeVar, runtime_checkable

from jaxtyping import Array, Float, PRNGKeyArray

from rewardshift.envs.tasks import TaskSpec
from rewardshift.replay import Batch
from rewardshift.shift import Shift

State = TypeVar("State")
Metrics = dict[str, Float[Array, ""]]


@runtime_checkable
class Agent(Protocol[State]):
    """The contract of every agent."""

    @property
    def continuous(self) -> bool:
        """Whether actions are continuous, in [-1, 1], rather than discrete."""
        ...

    @property
    def networks(self) -> tuple[str, ...]:
        """The fields of the state that `greedy` reads; `parameters.npz` keeps them."""
        ...

    @property
    def gamma(self) -> float:
        """The discount."""
        ...

    @property
    def batch_size(self) -> int:
        """Transitions per update."""
        ...

    @property
    def period(self) -> int:
        """Length of the update cycle; the `turn` of an update counts from 0 to `period - 1`."""
        ...

    def init(self, key: PRNGKeyArray, spec: TaskSpec) -> State:
        """The state before the first update."""
        ...

    def update(
        self, state: State, batch: Batch, key: PRNGKeyArray, turn: int
    ) -> tuple[State, Metrics]:
        """The state after an update on a batch of primal transitions, and metrics to log."""
        ...

    def greedy(self, state: State, observation: Array) -> Array:
        """The action without exploration."""
        ...


@runtime_checkable
class OnlineAgent(Agent[State], Protocol[State]):
    """The contract of an agent that collects its own transitions."""

    @property
    def warm_up(self) -> int:
        """Steps before the first update."""
        ...

    def exploration(self, step: int, steps: int) -> Any:
        """The amount of exploration at a step of a training with `steps` steps, for `act`."""
        ...

    def draws(self, spec: TaskSpec) -> int:
        """The number of random numbers that `act` takes."""
        ...

    def act(self, state: State, observation: Array, draws: Float[Array, " n"], explore: Any) -> Any:
        """The action to take while training, given random numbers in [0, 1)."""
        ...


@runtime_checkable
class Leading(Protocol[State]):
    """An agent with members, one of which leads at a time."""

    def lead(self, state: State, draw: Float[Array, ""], ended: Any, total: Any) -> State:
        """The state after a step, with the member that leads next.

        Args:
            state: The agent's state.
            draw: A random number in [0, 1).
            ended: Whether the step ended an episode.
            total: The return of the episode so far.
        """
        ...


@runtime_checkable
class Observing(Protocol[State]):
    """An agent that records every observation it acts on."""

    def observe(self, state: State, observation: Array) -> tuple[State, Float[Array, ""]]:
        """The state after recording the observation, and the intrinsic reward to store, or 0."""
        ...


@runtime_checkable
class Adapting(Protocol[State]):
    """An agent whose shifts may depend on the rewards it has received."""

    def adapt(self, state: State, reward: Float[Array, ""], ended: Any) -> State:
        """The state after the primal reward of a step, which may have ended an episode."""
        ...

    def shifts(self, state: State) -> tuple[Shift, ...]:
        """The members' shifts now."""
        ...


@runtime_checkable
class Multistep(Protocol):
    """An agent whose targets sum several rewards."""

    @property
    def n_step(self) -> int:
        """The number of rewards in a target."""
        ...


@runtime_checkable
class Bounding(Protocol):
    """An agent that may bound its targets."""

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The lowest and the highest primal reward, or None if targets are not bounded."""
        ...


@runtime_checkable
class WithMembers(Protocol):
    """An agent with one value function for each of several shifts."""

    @property
    def members(self) -> tuple[Shift, ...]:
        """The shift of each member before the first step."""
        ...


@runtime_checkable
class Valuing(WithMembers, Protocol):
    """An agent that tells its members' values of actions."""

    @property
    def values(self) -> Any:
        """Each member's values, on its own scale.

        For discrete actions this is a function of the state and a batch of observations, which
        returns the values of all actions, `[member, batch, action]`. For continuous actions it
        also takes a batch of actions, and returns their values, `[member, batch]`.
        """
        ...


@runtime_checkable
class Estimating(Protocol):
    """An agent with continuous actions that estimates the values of its policy and of actions."""

    @property
    def value_shift(self) -> Shift:
        """The scale of its values."""
        ...

    def value(self, state: Any, observation: Any) -> Any:
        """The value of its policy in a state, on that scale."""
        ...

    def action_value(self, state: Any, observation: Any, action: Any) -> Any:
        """The values of actions, on that scale."""
        ...


@runtime_checkable
class Choosy(Protocol):
    """An agent with requirements on a training on fixed data."""

    def check_offline(self, updates: int) -> None:
        """Raises if `updates` updates on fixed data do not suit the agent's settings."""
        ...
