"""An agent as the doctor sees it: a Q function, a policy, and what else is known of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np

from rewardshift.episodes import unchanged
from rewardshift.errors import InputError, shown
from rewardshift.optimism import lifetime
from rewardshift.shift import Shift, as_shift

# Values of actions in states, one for each pair; and the actions of a policy in states.
QFunction = Callable[[Any, np.ndarray], np.ndarray]
Act = Callable[[Any], np.ndarray]

Normaliser = Literal["none", "outside"]


class Target(NamedTuple):
    """The rule by which a target network follows.

    `tau` is the share by which it moves to the online one, `every` the number of updates between
    two moves, `updates` the number of updates so far, and `n_step` the number of rewards in a
    target. An agent without a target network has `tau=1` and `every=1`.
    """

    tau: float
    every: float
    updates: int
    n_step: int = 1


class Earlier(NamedTuple):
    """The Q function of the same agent, so many updates ago."""

    value: QFunction
    updates: int


@dataclass(frozen=True, kw_only=True)
class AgentView:
    """An agent as the doctor sees it; everything but the first four fields is optional.

    Args:
        value: The Q function: a batch of observations and of actions in, one value for each pair
            out, on the scale that the agent was trained on.
        act: The policy: a batch of observations in, their actions out.
        actions: The space of these actions, `Discrete` or a bounded `Box`.
        gamma: The agent's discount.
        shift: The shift of the rewards that the agent was trained on, a number or a `Shift`.
        fresh: The Q function of an untrained network of the same kind.
        target: The rule of the target network.
        earlier: The Q function some updates ago.
        agent_observation: Converts the environment's observation to the agent's.
        env_action: Converts the agent's action to the environment's.
        normaliser: Whether something `"outside"` of the shift rescales the rewards.
    """

    value: QFunction
    act: Act
    actions: gym.Space[Any]
    gamma: float
    shift: float | Shift = 0.0
    fresh: QFunction | None = None
    target: Target | None = None
    earlier: Earlier | None = None
    agent_observation: Callable[[Any], Any] = unchanged
    env_action: Callable[[Any], Any] = unchanged
    normaliser: Normaliser = "none"

    def __post_init__(self) -> None:
        if not (isinstance(self.gamma, int | float) and 0 <= self.gamma < 1):
            raise InputError(f"gamma must be in [0, 1), got {shown(self.gamma)}")
        shift = as_shift(self.shift)
        if shift.gamma not in (None, self.gamma):
            raise InputError(f"the agent has gamma={self.gamma}, but the shift is {shift}")
        if isinstance(self.actions, gym.spaces.Discrete):
            return
        if not isinstance(self.actions, gym.spaces.Box):
            raise InputError(
                f"the doctor knows Discrete actions and Box actions, got {self.actions}"
            )
        if not self.actions.is_bounded():
            raise InputError(
                "the doctor draws actions from the whole space, so it needs finite bounds, got"
                f" {self.actions}"
            )

    @property
    def trained(self) -> Shift:
        """The scale that the agent was trained on: the shift with the agent's discount."""
        return replace(as_shift(self.shift), gamma=self.gamma)

    @property
    def lifetime(self) -> float | None:
        """The lifetime of an offset in updates, if the rule of the target network is known."""
        if self.target is None:
            return None
        tau, every, _, n_step = self.target
        return every * lifetime(self.gamma, tau, n_step=n_step)

    def random_actions(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Uniform actions, the same for the same generator."""
        space = self.actions
        if isinstance(space, gym.spaces.Discrete):
            return rng.integers(space.n, size=count) + space.start
        assert isinstance(space, gym.spaces.Box)
        drawn = rng.uniform(space.low, space.high, (count, *space.shape))
        return drawn.astype(space.dtype)


def values_at(function: QFunction, observations: Any, actions: np.ndarray) -> np.ndarray:
    """The values of pairs; raises if they are not finite or if there is another number of them."""
    found = np.asarray(function(observations, actions), np.float64)
    if not np.isfinite(found).all():
        raise InputError("the values are not all finite: the agent has diverged")
    if found.shape != (len(actions),):
        raise InputError(
            f"the Q function must return one value for each of {len(actions)} pairs, got the shape"
            f" {found.shape}"
        )
    return found
