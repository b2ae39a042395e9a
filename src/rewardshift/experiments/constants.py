"""The constants of a sweep, given as they are or as optimisms."""

from collections.abc import Sequence
from dataclasses import dataclass

from rewardshift.checks import Finite, check
from rewardshift.errors import InputError
from rewardshift.shift import Shift

Range = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Constants:
    """The constants of a sweep: as they are, or as optimisms. 0, no shift, is always among them.

    Args:
        shift: The constants.
        optimism: Their optimisms instead: where Q begins in the range of the task's values, from 0
            (cautious everywhere) to 1 (optimistic everywhere) and beyond. Needs --values or
            --rewards.
        values: The lowest and the highest discounted return of an episode.
        rewards: The lowest and the highest reward of a step, for episodes that never end. If the
            reward is sparse, give the values instead.
    """

    shift: tuple[Finite, ...] = ()
    optimism: tuple[Finite, ...] = ()
    values: tuple[Finite, Finite] | None = None
    rewards: tuple[Finite, Finite] | None = None

    def __post_init__(self) -> None:
        check(self)
        if bool(self.shift) == bool(self.optimism):
            raise InputError("a sweep needs constants: give either shift or optimism")
        if self.values is not None and self.rewards is not None:
            raise InputError("give either values or rewards")

    def range_of_values(self, shift: Shift) -> Range | None:
        """The range of the values, if it was given."""
        if self.rewards is None:
            return self.values
        low, high = self.rewards
        assert shift.gamma is not None
        return low / (1 - shift.gamma), high / (1 - shift.gamma)


def biases_of(optimism: Sequence[float], values: Range, shift: Shift) -> tuple[float, ...]:
    """The biases with which an initial value of 0 has these optimisms.

    Args:
        optimism: 0 for the lowest of the values, 1 for the highest.
        values: The lowest and the highest discounted return.
        shift: The scale and the discount.
    """
    shift.optimism(*values)  # refuses an empty range
    low, high = values
    assert shift.gamma is not None
    starts = [low + place * (high - low) for place in optimism]
    biases = [-(1 - shift.gamma) * shift.scale * start for start in starts]
    # Rounded, so that a command can name them. Adding 0 turns -0 into 0.
    return tuple(float(f"{bias:.6g}") + 0.0 for bias in biases)
