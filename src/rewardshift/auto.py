"""The shift that chooses itself from the rewards that a training sees."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from rewardshift.checks import Finite, NonNegative, check
from rewardshift.errors import InputError
from rewardshift.shift import Shift, Terminal

AUTO = "auto"


@dataclass(frozen=True)
class Auto:
    """A rule for the shift: the first reward that is not 0 is the unit of the values.

    The rewards are divided by the size of that reward, and the bias is `optimism (gamma - 1)`. So a
    `Q` that starts at zero starts at `optimism` such rewards. This is domain-independent optimistic
    initialisation (Machado, Srinivasan and Bowling, 2015). It is exact from the first step on:
    before the first such reward, the scale makes no difference.

    It fits a task that pays once, at its goal. Where every step pays, a return is many rewards, and
    the optimism is small; where the first reward is a small cost, it is small too, unless `least`
    says how large a unit must be.

    The rule's state is one number: the size of that reward, or 0 before it is seen. It may be an
    array, with one number for each seed.

    Args:
        optimism: The initial value in units of that reward, or several, one for each member.
        terminal: As in `Shift`.
        least: The smallest unit. If the first reward is smaller, this is the unit.

    >>> rule = Auto()
    >>> size = rule.see(0.0, -4.0)
    >>> rule.shifts(size, gamma=0.5)
    (Shift(bias=-0.5, scale=0.25, gamma=0.5, terminal='goal'),)
    """

    optimism: Finite | tuple[Finite, ...] = 1.0
    terminal: Terminal = "goal"
    least: NonNegative = 0.0

    def __post_init__(self) -> None:
        check(self)
        if self.optimism == ():
            raise InputError("optimism must be at least one number, got ()")

    @property
    def levels(self) -> tuple[float, ...]:
        """The optimism of each member."""
        return self.optimism if isinstance(self.optimism, tuple) else (self.optimism,)

    def see(self, size: Any, reward: Any) -> Any:
        """The state after a primal reward.

        Args:
            size: The state before it.
            reward: The reward.
        """
        return size + (size == 0) * abs(reward)

    def shifts(self, size: Any, gamma: float) -> tuple[Shift, ...]:
        """The shifts of the members now.

        Args:
            size: The state.
            gamma: The discount of the agent that learns.
        """
        unit = size + (size < self.least) * (self.least - size)
        scale = 1 / (unit + (unit == 0))
        return tuple(Shift(o * (gamma - 1), scale, gamma, self.terminal) for o in self.levels)


def as_rule(value: Any) -> Auto | None:
    """The rule that a shift stands for: `"auto"`, or a rule as in JSON; None if it is a number."""
    if isinstance(value, str):
        if value != AUTO:
            raise InputError(f"a shift must be a number, a Shift or 'auto', got {value!r}")
        return Auto()
    if isinstance(value, Mapping) and set(value) == {field.name for field in fields(Auto)}:
        return Auto(**value)
    return value if isinstance(value, Auto) else None
