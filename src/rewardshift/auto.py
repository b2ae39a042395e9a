"""Rules that choose the shift, from the rewards of a training or from a data set."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from rewardshift.checks import Discount, Finite, Positive, Settings, checked
from rewardshift.errors import InputError, shown
from rewardshift.optimism import value_bounds
from rewardshift.shift import Shift, Terminal, as_single_shift

AUTO = "auto"
# The rule in two sentences, for every text that explains it.
RULE = (
    "A reward that ends the episode can be had once; a reward after which the episode goes on can"
    " be had at every step.\n"
    "So `auto` starts Q at five times the first kind, counted as 1 if it is less, or at half of"
    " what the second kind adds up to;\n"
    "where every step costs something, Q = 0 is optimistic already, and there is no shift."
)
# For rewards at every step: the bias of an optimism of one unit. With five it is half a reward.
EVERY_STEP = 0.1


@runtime_checkable
class Rule(Protocol):
    """The contract of a rule: its state follows the rewards, and the shift follows the state.

    A state is a number, or a NamedTuple of numbers. Each may be an array, with one number for each
    seed.
    """

    @property
    def terminal(self) -> Terminal:
        """As in `Shift`."""
        ...

    def start(self) -> Any:
        """The state before the first reward."""
        ...

    def observe(self, state: Any, reward: Any, terminated: Any, gamma: float) -> Any:
        """The state after a step.

        Args:
            state: The state before it.
            reward: The primal reward of the step.
            terminated: Whether the step ended an episode in a terminal state.
            gamma: The discount of the agent that learns.
        """
        ...

    def shift_at(self, state: Any, gamma: float) -> Shift:
        """The shift now, with one bias and one scale.

        Args:
            state: The state.
            gamma: The discount of the agent that learns.
        """
        ...

    def metrics(self, state: Any) -> dict[str, Any]:
        """The numbers of the state to log."""
        ...


class Seen(NamedTuple):
    """What `Auto` has seen of the rewards; each may be an array with one number for each seed.

    Args:
        paid: The first positive reward, or 0 before there is one.
        once: 1 if that reward ended its episode, else 0.
        free: 1 if a step has cost nothing and the episode went on, else 0.
    """

    paid: Any
    once: Any
    free: Any


@dataclass(frozen=True)
class Auto(Settings):
    """The rule that `"auto"` stands for.

    A reward that ends the episode can be had once; a reward after which the episode goes on can be
    had at every step. So `auto` starts Q at five times the first kind, counted as 1 if it is less,
    or at half of what the second kind adds up to; where every step costs something, Q = 0 is
    optimistic already, and there is no shift.

    The first positive reward decides which kind it is. It is also the unit: rewards are divided by
    it. Until there is one, and if a step has cost nothing, the rule expects a reward of the first
    kind and of size `least`. Five times and not once, because networks forget a part of their
    optimism. Half and not all, because a step that pays then still pays after the shift, so no
    agent is taught to end its episode.

    For the first kind the rule is domain-independent optimistic initialisation (Machado,
    Srinivasan and Bowling, 2015) with another number of units.

    Args:
        optimism: The initial value for a reward of the first kind, in units. For the second kind it
            is a tenth of what the rewards add up to.
        terminal: As in `Shift`. `"goal"` takes every end with a positive reward for a goal. So it
            does not credit a fall that pays, as in CartPole; such rewards are of the second kind.
        least: The smallest unit.

    >>> Auto().shift([0.0, 0.0, 4.0], [False, False, True], gamma=0.5)
    Shift(bias=-2.5, scale=0.25, gamma=0.5, terminal='goal')
    >>> Auto().shift([4.0, 4.0], [False, True], gamma=0.5)
    Shift(bias=-0.5, scale=0.25, gamma=0.5, terminal='goal')
    >>> Auto().shift([-1.0, -1.0], [False, True], gamma=0.5)
    Shift(bias=0.0, scale=1.0, gamma=0.5, terminal='goal')
    """

    optimism: Finite = 5.0
    terminal: Terminal = "goal"
    least: Positive = 1.0

    def start(self) -> Seen:
        """See `Rule`."""
        return Seen(0.0, 0.0, 0.0)

    def observe(self, state: Seen, reward: Any, terminated: Any, gamma: float) -> Seen:
        """See `Rule`."""
        first = (state.paid == 0) * (reward > 0)
        free = (reward >= 0) * (1 - terminated)
        return Seen(
            state.paid + first * abs(reward),
            state.once + first * terminated,
            state.free + (1 - state.free) * free,
        )

    def shift_at(self, state: Seen, gamma: float) -> Shift:
        """See `Rule`."""
        unit = state.paid + (state.paid < self.least) * (self.least - state.paid)
        often = (state.paid > 0) * (1 - state.once)
        waits = (state.paid == 0) * state.free
        # The bias of an optimism of one unit, by kind: at most one of the three flags is 1.
        each = 0.0 - (1 - gamma) * (state.once + waits) - EVERY_STEP * often * state.paid / unit
        return Shift(self.optimism * each, 1 / unit, gamma, self.terminal)

    def shift(self, reward: Any, terminated: Any, gamma: float) -> Shift:
        """The shift after these rewards, for rewards that are all known.

        Args:
            reward: The primal rewards, in the order of the steps.
            terminated: Whether each of them ended an episode in a terminal state.
            gamma: The discount of the agent that learns.
        """
        numbers, ended = _known(reward, terminated)
        positive = numbers > 0
        first = int(positive.argmax())
        paid = float(numbers[first]) if positive.any() else 0.0
        free = ((numbers >= 0) & ~ended).any()
        state = Seen(paid, float(paid > 0 and ended[first]), float(free))
        return self.shift_at(state, checked("gamma", Discount, gamma))

    def metrics(self, state: Seen) -> dict[str, Any]:
        """See `Rule`."""
        return {"reward_size": state.paid, "reward_once": state.once}


@dataclass(frozen=True)
class Cautious(Settings):
    """The rule for the shift on a data set: values start at the lowest possible one, or at 0.

    This is what `"auto"` stands for there. The lowest possible value is the lowest that rewards
    like those of the data can add up to. If it is not negative, there is no shift. All rewards are
    known before the first update, so the rule has no state.

    Args:
        terminal: As in `Shift`.

    >>> Cautious().shift(np.array([-4.0, 2.0]), np.array([False, True]), gamma=0.5)
    Shift(bias=4.0, scale=1.0, gamma=0.5, terminal='absorbing')
    """

    terminal: Terminal = "absorbing"

    def shift(self, reward: np.ndarray, terminated: np.ndarray, gamma: float) -> Shift:
        """The shift.

        Args:
            reward: The rewards of the data.
            terminated: Whether each of them ended an episode.
            gamma: The discount of the agent that learns.
        """
        numbers, ended = _known(reward, terminated)
        discount = checked("gamma", Discount, gamma)
        lowest = value_bounds(numbers, ended, discount).low
        return Shift(max(0.0, (discount - 1) * lowest), 1.0, discount, self.terminal)


def _known(reward: Any, terminated: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rewards and flags as arrays; refused if they do not belong together."""
    numbers = np.asarray(reward, np.float64)
    if numbers.ndim != 1 or not (numbers.size and np.isfinite(numbers).all()):
        raise InputError(f"reward must be a list of finite numbers, got {shown(reward)}")
    if np.shape(terminated) != numbers.shape:
        raise InputError(
            f"terminated must have one flag for each of the {numbers.size} rewards, got the"
            f" shape {np.shape(terminated)}"
        )
    return numbers, np.asarray(terminated, bool)


def rule_on_data(shift: Any) -> Cautious | None:
    """The rule by which a data set chooses an agent's shift; None if it does not.

    An agent that also learns online holds `Auto()` where it was given `"auto"`, maybe with another
    treatment of ends.
    """
    if isinstance(shift, Auto) and replace(shift, terminal=Auto.terminal) == Auto():
        return Cautious() if shift.terminal == Auto.terminal else Cautious(shift.terminal)
    return shift if isinstance(shift, Cautious) else None


def chosen_shift(
    shift: Any,
    gamma: float | None,
    rewards: Callable[[], tuple[np.ndarray, np.ndarray]],
    auto: Auto | Cautious,
) -> Shift:
    """A shift as it is given, or as a rule chooses it from rewards that are all known.

    Args:
        shift: A bias, a `Shift` or its dict, `"auto"`, or a rule of the kind of `auto`.
        gamma: The agent's discount, for a rule alone.
        rewards: Finds the rewards and the terminal flags; called for a rule alone.
        auto: The rule that `"auto"` stands for.
    """
    if isinstance(shift, str) and shift != AUTO:
        raise InputError(f"a shift must be a number, a Shift or 'auto', got {shift!r}")
    rule = auto if isinstance(shift, str) else shift
    if not isinstance(rule, type(auto)):
        if isinstance(rule, Rule | Cautious):
            raise InputError(f"here a rule is 'auto' or {type(auto).__name__}(...), got {rule}")
        given = as_single_shift(shift)
        if gamma is not None:
            raise InputError(f"gamma is for shift='auto'; a Shift has its own, got {given!r}")
        return given
    if gamma is None:
        raise InputError(f"{shift!r} needs the agent's discount, as in gamma=0.99, got gamma=None")
    checked("gamma", Discount, gamma)  # before the search, which may take a while
    return rule.shift(*rewards(), gamma)
