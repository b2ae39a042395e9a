"""The constants that a sweep compares: numbers, `"auto"` and members."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from rewardshift.auto import AUTO
from rewardshift.checks import Finite, Must, check
from rewardshift.errors import InputError, shown
from rewardshift.lab.figure import Metric
from rewardshift.shift import Shift

NONE = "none"  # the method without a shift
# The metrics that compare a constant with none, and their words.
METRICS: dict[Metric, str] = {"auc": "over the whole training", "final": "at its end"}

Number = Finite | Literal["auto"]
# The constants of the members of one agent.
Members = Annotated[tuple[Finite, ...], Must("two or more numbers", lambda given: len(given) > 1)]
Constant = Number | Members
Range = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Constants:
    """The constants of a sweep, given directly or as optimisms; 0, no shift, is always added.

    Args:
        shift: The constants. `auto` chooses one from the rewards, or from the data set. Several
            numbers with commas between them are those of the members of one agent.
        optimism: Optimisms instead of constants. An optimism says where a Q of 0 lies in the range
            of the task's values: 0 is cautious everywhere, 1 optimistic everywhere. Needs --values
            or --rewards. `auto` works here too.
        values: The lowest and the highest discounted return of an episode.
        rewards: The lowest and the highest reward of a step, for episodes that never end. If the
            reward is sparse, give the values instead.
    """

    shift: tuple[Constant, ...] = ()
    optimism: tuple[Number, ...] = ()
    values: tuple[Finite, Finite] | None = None
    rewards: tuple[Finite, Finite] | None = None

    def __post_init__(self) -> None:
        check(self)
        if bool(self.shift) == bool(self.optimism):
            raise InputError("a sweep needs constants: give either shift or optimism")
        if self.values is not None and self.rewards is not None:
            raise InputError("give either values or rewards")

    def range_of_values(self, gamma: float) -> Range | None:
        """The range of the values, if it was given."""
        if self.rewards is None:
            return self.values
        low, high = self.rewards
        return low / (1 - gamma), high / (1 - gamma)

    def as_shifts(self, shift: Shift) -> tuple[Constant, ...]:
        """The constants, with optimisms converted to constants.

        Args:
            shift: The scale and the discount.
        """
        places = numbers_in(self.optimism)
        if not places:
            return self.shift or self.optimism
        assert shift.gamma is not None
        values = self.range_of_values(shift.gamma)
        if values is None:
            raise InputError(
                "optimism is a place in the range of the task's values: give values (--values LOW"
                " HIGH), the lowest and the highest discounted return of an episode, or rewards"
            )
        low, high = values
        starts = [low + place * (high - low) for place in places]
        biases = [-(1 - shift.gamma) * shift.scale * start for start in starts]
        # Rounded, so that a command can name them. Adding 0 turns -0 into 0.
        rounded = [float(f"{bias:.6g}") + 0.0 for bias in biases]
        return (*rounded, *(one for one in self.optimism if one == AUTO))


def in_order(constants: Sequence[Constant]) -> tuple[Constant, ...]:
    """No shift, then the numbers from the least to the most optimistic, then the others."""
    given = constants if 0.0 in constants else (0.0, *constants)
    numbers = sorted(numbers_in(given), key=lambda one: (one != 0, -one))
    ordered = (*numbers, *(one for one in given if not isinstance(one, float)))
    if len({method_name(one) for one in ordered}) < len(ordered):
        raise InputError(f"the constants of a sweep must differ, got {shown(tuple(constants))}")
    if len(ordered) < 2:
        raise InputError("a sweep needs a constant other than 0, which is no shift")
    return ordered


def numbers_in(constants: Sequence[Constant]) -> list[float]:
    """The constants that are numbers."""
    return [constant for constant in constants if isinstance(constant, float)]


def method_name(constant: Constant) -> str:
    """The name of the method with this constant."""
    if isinstance(constant, tuple):
        return ",".join(f"{bias:.6g}" for bias in constant)
    if constant == AUTO:
        return AUTO
    return NONE if constant == 0 else f"{constant:.6g}"
