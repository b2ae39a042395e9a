"""Rules that choose the shift, from the rewards of a training or from a data set."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rewardshift.checks import Discount, Finite, NonNegative, check, checked
from rewardshift.errors import InputError, shown
from rewardshift.optimism import value_bounds
from rewardshift.shift import Shift, Terminal, as_single_shift

AUTO = "auto"


@runtime_checkable
class Rule(Protocol):
    """The contract of a rule: its state follows the rewards, and the shifts follow the state.

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

    def observe(self, state: Any, reward: Any, ended: Any, gamma: float) -> Any:
        """The state after a step.

        Args:
            state: The state before it.
            reward: The primal reward of the step.
            ended: Whether the step ended an episode.
            gamma: The discount of the agent that learns.
        """
        ...

    def shifts(self, state: Any, gamma: float) -> tuple[Shift, ...]:
        """The shifts of the members now.

        Args:
            state: The state.
            gamma: The discount of the agent that learns.
        """
        ...

    def metrics(self, state: Any) -> dict[str, Any]:
        """The numbers of the state to log."""
        ...


@dataclass(frozen=True)
class Auto:
    """A rule for the shift: the first reward that is not 0 is the unit of the values.

    The rewards are divided by the unit, and the bias is `optimism (gamma - 1)`. So a `Q` that
    starts at zero starts at `optimism` units. With `least=0` and `optimism=1` this is
    domain-independent optimistic initialisation (Machado, Srinivasan and Bowling, 2015), which is
    exact from the first step on: before the first reward, the scale makes no difference. The
    defaults were chosen for networks, which forget a part of their optimism, and for tasks whose
    first reward is a small cost.

    It fits a task that pays once, at its goal. Where every step pays, a return is many rewards, and
    the optimism is small.

    The rule's state is one number: the size of that reward, or 0 before it is seen. Once it is
    seen, the shift stays, so a wrapper may use this rule.

    Args:
        optimism: The initial value in units, or several, one for each member.
        terminal: As in `Shift`.
        least: The smallest unit. If the first reward is smaller, this is the unit.

    >>> rule = Auto(optimism=1.0)
    >>> size = rule.observe(rule.start(), -4.0, ended=False, gamma=0.5)
    >>> rule.shifts(size, gamma=0.5)
    (Shift(bias=-0.5, scale=0.25, gamma=0.5, terminal='goal'),)
    """

    optimism: Finite | tuple[Finite, ...] = 5.0
    terminal: Terminal = "goal"
    least: NonNegative = 1.0

    def __post_init__(self) -> None:
        check(self)
        if self.optimism == ():
            raise InputError("optimism must be at least one number, got ()")

    def start(self) -> float:
        """See `Rule`."""
        return 0.0

    def observe(self, state: Any, reward: Any, ended: Any, gamma: float) -> Any:
        """See `Rule`."""
        return state + (state == 0) * abs(reward)

    def shifts(self, state: Any, gamma: float) -> tuple[Shift, ...]:
        """See `Rule`."""
        unit = state + (state < self.least) * (self.least - state)
        unit = unit + (unit == 0)  # 1 before the first reward, without a least unit
        levels = self.optimism if isinstance(self.optimism, tuple) else (self.optimism,)
        return tuple(Shift(o * (gamma - 1), 1 / unit, gamma, self.terminal) for o in levels)

    def metrics(self, state: Any) -> dict[str, Any]:
        """See `Rule`."""
        return {"reward_size": state}


@dataclass(frozen=True)
class Cautious:
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

    def __post_init__(self) -> None:
        check(self)

    def shift(self, reward: np.ndarray, terminated: np.ndarray, gamma: float) -> Shift:
        """The shift.

        Args:
            reward: The rewards of the data.
            terminated: Whether each of them ended an episode.
            gamma: The discount of the agent that learns.
        """
        numbers, discount = np.asarray(reward, np.float64), checked("gamma", Discount, gamma)
        if numbers.ndim != 1 or not (numbers.size and np.isfinite(numbers).all()):
            raise InputError(f"reward must be a list of finite numbers, got {shown(reward)}")
        if np.shape(terminated) != numbers.shape:
            raise InputError(
                f"terminated must have one flag for each of the {numbers.size} rewards, got the"
                f" shape {np.shape(terminated)}"
            )
        lowest = value_bounds(numbers, terminated, discount).low
        return Shift(max(0.0, (discount - 1) * lowest), 1.0, discount, self.terminal)


def as_rule(value: Any) -> Rule | None:
    """The rule that a shift stands for: `"auto"`, or a rule as in JSON; None if it is a number."""
    if isinstance(value, str):
        if value != AUTO:
            raise InputError(f"a shift must be a number, a Shift or 'auto', got {value!r}")
        return Auto()
    if isinstance(value, Mapping) and set(value) == {field.name for field in fields(Auto)}:
        return Auto(**value)
    return value if isinstance(value, Rule) else None


def rule_on_data(shift: Any) -> Cautious | None:
    """The rule by which a data set chooses an agent's shift; None if it does not.

    An agent that also learns online holds `Auto()` where it was given `"auto"`, maybe with another
    treatment of ends.
    """
    if isinstance(shift, Auto) and replace(shift, terminal=Auto.terminal) == Auto():
        return Cautious() if shift.terminal == Auto.terminal else Cautious(shift.terminal)
    return shift if isinstance(shift, Cautious) else None


def shift_on_data(
    shift: Any, gamma: float | None, data: Callable[[], tuple[np.ndarray, np.ndarray]]
) -> Shift:
    """A shift as it is given, or as `"auto"` or a `Cautious` chooses it from a data set.

    Args:
        shift: A bias, a `Shift`, the dict of a `Shift` in JSON, `"auto"` or a `Cautious`.
        gamma: The discount of the agent that learns, for a choice.
        data: A function that reads the rewards and the terminal flags; called for a choice only.
    """
    rule = shift if isinstance(shift, Cautious) else rule_on_data(as_rule(shift))
    if rule is None:
        if gamma is not None:
            raise InputError(f"gamma is for shift='auto'; a Shift has its own, got {shift!r}")
        return as_single_shift(shift)
    if gamma is None:
        raise InputError(f"{shift!r} needs the agent's discount, as in gamma=0.99, got gamma=None")
    return rule.shift(*data(), gamma)
