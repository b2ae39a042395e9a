"""What the doctor sees of an agent and of its data."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np

from rewardshift.envs.stepping import itself
from rewardshift.errors import InputError, shown
from rewardshift.shift import Shift, as_shift, as_single_shift

# Values of actions in states, one for each pair; and the actions of a policy in states.
QFunction = Callable[[Any, np.ndarray], np.ndarray]
Act = Callable[[Any], np.ndarray]

Normaliser = Literal["none", "inside", "outside"]


class Target(NamedTuple):
    """The rule by which a target network follows.

    `tau` is the share by which it moves to the online one, `every` the number of updates between
    two moves, and `updates` the number of updates so far. An agent without a target network has
    `tau=1` and `every=1`.
    """

    tau: float
    every: float
    updates: int


class Earlier(NamedTuple):
    """The Q function of the same agent, so many updates ago."""

    value: QFunction
    updates: int


@dataclass(frozen=True, kw_only=True)
class View:
    """An agent as the doctor sees it; everything but the first four fields is optional.

    Args:
        value: The Q function: a batch of observations and of actions in, one value for each pair
            out, on the scale that the agent was trained on.
        act: The policy: a batch of observations in, their actions out.
        actions: The space of these actions, `Discrete` or a bounded `Box`.
        gamma: The agent's discount.
        shift: The shift of the rewards that the agent was trained on, a number or a `Shift`.
        members: The values of several critics or members, `[member, batch]`, on the primal scale.
        fresh: The Q function of an untrained network of the same kind.
        target: The rule of the target network.
        earlier: The Q function some updates ago.
        see: Makes the agent's observation of the environment's.
        do: Makes the environment's action of the agent's.
        normaliser: Whether something rescales the rewards: `"outside"` of the shift or `"inside"`.
    """

    value: QFunction
    act: Act
    actions: gym.Space[Any]
    gamma: float
    shift: float | Shift = 0.0
    members: QFunction | None = None
    fresh: QFunction | None = None
    target: Target | None = None
    earlier: Earlier | None = None
    see: Callable[[Any], Any] = itself
    do: Callable[[Any], Any] = itself
    normaliser: Normaliser = "none"

    def __post_init__(self) -> None:
        if not (isinstance(self.gamma, int | float) and 0 <= self.gamma < 1):
            raise InputError(f"gamma must be in [0, 1), got {shown(self.gamma)}")
        shift = as_shift(self.shift)
        if shift.gamma not in (None, self.gamma):
            raise InputError(f"the agent has gamma={self.gamma}, but the shift is {shift}")
        as_single_shift(self.trained)
        check_actions(self.actions)

    @property
    def trained(self) -> Shift:
        """The scale that the agent was trained on: the shift with the agent's discount."""
        return replace(as_shift(self.shift), gamma=self.gamma)

    def uniform(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Random actions, the same for the same generator."""
        space = self.actions
        if isinstance(space, gym.spaces.Discrete):
            return rng.integers(space.n, size=count) + space.start
        assert isinstance(space, gym.spaces.Box)
        drawn = rng.uniform(space.low, space.high, (count, *space.shape))
        return drawn.astype(space.dtype)


def check_actions(space: gym.Space[Any]) -> None:
    """Raises if no action can be drawn from the whole space."""
    if isinstance(space, gym.spaces.Discrete):
        return
    if not isinstance(space, gym.spaces.Box):
        raise InputError(f"the doctor knows Discrete actions and Box actions, got {space}")
    if not space.is_bounded():
        raise InputError(
            f"the doctor draws actions from the whole space, so it needs finite bounds, got {space}"
        )


# The columns of transitions that need as many rows as there are rewards.
_COLUMNS = ("observation", "action", "terminated", "next_observation", "ended", "settled")


@dataclass(frozen=True, eq=False)
class Transitions:
    """Transitions of a replay or a data set; the arrays are read, and only a sample is copied.

    Args:
        observation: One observation per row; a dict of arrays for observations with parts.
        action: The action taken, in the form that the agent's Q function takes.
        reward: The primal reward.
        terminated: Whether the transition ended in a terminal state.
        next_observation: The observation that followed, if it is stored.
        ended: Whether the episode ended after the row, for any reason. With it, rows are
            consecutive and the returns in the data are known.
        whole: The rewards and the terminal flags of all transitions, if the rows are a sample.
        settled: Whether each row belongs to the older half of the replay, so that the agent had
            the time to learn it. Without it, all do: a data set was there from the beginning.
    """

    observation: Any
    action: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    next_observation: Any = None
    ended: np.ndarray | None = None
    whole: tuple[np.ndarray, np.ndarray] | None = None
    settled: np.ndarray | None = None

    def __post_init__(self) -> None:
        count = len(self.reward)
        if count == 0:
            raise InputError("there are no transitions to look at: is the replay empty?")
        for name in _COLUMNS:
            column = getattr(self, name)
            if column is not None and rows_in(column) != count:
                raise InputError(f"there are {count} rewards and {rows_in(column)} rows of {name}")
        if not np.isfinite(self.reward).all():
            raise InputError("the transitions have a reward that is not finite")

    def __len__(self) -> int:
        return len(self.reward)

    @property
    def rewards(self) -> tuple[np.ndarray, np.ndarray]:
        """The rewards and the terminal flags of all transitions."""
        reward, terminated = self.whole or (self.reward, self.terminated)
        return np.asarray(reward, np.float64), np.asarray(terminated, bool)


def rows_in(column: Any) -> int:
    """The number of rows of an array, or of a dict of arrays."""
    return rows_in(next(iter(column.values()))) if isinstance(column, dict) else len(column)


def take(column: Any, rows: Any) -> Any:
    """Some rows of an array, or of a dict of arrays."""
    if isinstance(column, dict):
        return {name: part[rows] for name, part in column.items()}
    return column[rows]


def stack(observations: list[Any]) -> Any:
    """A batch of observations, each an array or a dict of arrays."""
    if isinstance(observations[0], dict):
        return {name: stack([one[name] for one in observations]) for name in observations[0]}
    return np.stack([np.asarray(one) for one in observations])


def finite(values: Any, of: str) -> np.ndarray:
    """Values of a Q function as an array; raises if there is one that is not a number."""
    found = np.asarray(values, np.float64)
    if not np.isfinite(found).all():
        raise InputError(f"the values of {of} are not all finite: the agent has diverged")
    return found


def values_at(function: QFunction, observations: Any, actions: np.ndarray, of: str) -> np.ndarray:
    """The values of pairs; raises if the Q function returns another number of them."""
    found = finite(function(observations, actions), of)
    if found.shape[-1:] != (len(actions),):
        raise InputError(
            f"the Q function of {of} must return one value for each of {len(actions)} pairs, got"
            f" the shape {found.shape}"
        )
    return found
