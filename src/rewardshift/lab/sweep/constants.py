"""The constants of a sweep, given directly or as optimisms, and agents with such a constant."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from rewardshift.agents.base import Agent
from rewardshift.agents.offline import Offline
from rewardshift.agents.online import Online
from rewardshift.auto import AUTO, Auto, Cautious, Rule
from rewardshift.checks import Finite, check
from rewardshift.errors import InputError, shown
from rewardshift.lab.figure import Metric
from rewardshift.shift import Shift, as_shift

NONE = "none"  # the method without a shift
# The metrics that compare a constant with none, and their words.
METRICS: dict[Metric, str] = {"auc": "over the whole training", "final": "at its end"}

Constant = Finite | Literal["auto"]  # a number, or the rule that chooses one
Range = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Constants:
    """The constants of a sweep, given directly or as optimisms; 0, no shift, is always added.

    Args:
        shift: The constants. `auto` chooses one from the rewards, or from the data set.
        optimism: Optimisms instead of constants. An optimism says where a Q of 0 lies in the range
            of the task's values: 0 is cautious everywhere, 1 optimistic everywhere. Needs --values
            or --rewards. `auto` works here too.
        values: The lowest and the highest discounted return of an episode.
        rewards: The lowest and the highest reward of a step, for episodes that never end. If the
            reward is sparse, give the values instead.
    """

    shift: tuple[Constant, ...] = ()
    optimism: tuple[Constant, ...] = ()
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

    def all(self, shift: Shift) -> tuple[Constant, ...]:
        """The constants, with optimisms converted to constants.

        Args:
            shift: The scale and the discount.
        """
        places = numbers_in(self.optimism)
        if not places:
            return self.shift or self.optimism
        values = self.range_of_values(shift)
        if values is None:
            raise InputError(
                "optimism is a place in the range of the task's values: give values (--values LOW"
                " HIGH), the lowest and the highest discounted return of an episode, or rewards"
            )
        rules = [one for one in self.optimism if one == AUTO]
        return (*biases_of(places, values, shift), *rules)


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


def in_order(constants: Sequence[Constant]) -> tuple[Constant, ...]:
    """No shift, then the numbers from the least to the most optimistic, then the rule."""
    given = constants if 0.0 in constants else (0.0, *constants)
    ordered = tuple(sorted(given, key=lambda one: (one != 0, place(one))))
    if len({method_name(one) for one in ordered}) < len(ordered):
        raise InputError(f"the constants of a sweep must differ, got {shown(tuple(constants))}")
    if len(ordered) < 2:
        raise InputError("a sweep needs a constant other than 0, which is no shift")
    return ordered


def numbers_in(constants: Sequence[Constant]) -> list[float]:
    """The constants that are numbers."""
    return [constant for constant in constants if not isinstance(constant, str)]


def place(constant: Constant) -> float:
    """A key to sort by: from the least to the most optimistic number, then the rule."""
    return math.inf if isinstance(constant, str) else -constant


def method_name(constant: Constant) -> str:
    """The name of the method with this constant."""
    if constant == AUTO:
        return AUTO
    return NONE if constant == 0 else f"{constant:.6g}"


def with_constant(agent: Agent, constant: Constant) -> Agent:
    """The agent with another constant; its scale and its treatment of terminal states stay."""
    shift = single_shift(agent)
    chosen: Any = agent  # a dataclass, which the protocol does not say
    if constant != AUTO:
        return cast("Agent", replace(chosen, shift=replace(shift, bias=float(constant))))
    if not isinstance(agent, Online | Offline):
        raise InputError(
            "'auto' is for agents whose shift may depend on rewards, such as DQN and BCQ;"
            f" that of {type(agent).__name__} must be a number"
        )
    rule = Cautious if isinstance(agent, Offline) else Auto
    return cast("Agent", replace(chosen, shift=_rule(rule, shift)))


def _rule(kind: type[Auto | Cautious], shift: Shift) -> Auto | Cautious:
    """The rule beside constants with this scale and treatment of terminal states.

    Like `rewardshift train --shift auto`, it takes over any treatment but the default one.
    """
    if shift.scale != 1.0:
        raise InputError(
            f"'auto' has a scale of its own, so it must be left out, got {shift.scale}"
        )
    return kind() if shift.terminal == Shift.terminal else kind(terminal=shift.terminal)


def single_shift(agent: Any) -> Shift:
    """The agent's only shift."""
    if not isinstance(agent, Agent):
        raise InputError(f"agent must be an agent, such as DQN(), got {shown(agent)}")
    given = getattr(agent, "shift", None)
    if given is None:
        raise InputError(
            f"a sweep needs an agent with a setting called shift, {type(agent).__name__} has none"
        )
    if isinstance(given, Rule | Cautious):
        raise InputError(
            "a sweep gives its agent the shift, and 'auto' may be among its constants: leave out"
            f" the agent's own rule, got {given}"
        )
    members = given if isinstance(given, tuple) else (given,)
    if len(members) > 1:
        raise InputError(
            f"a sweep trains one constant at a time, so its agent has one shift, got {shown(given)}"
        )
    return replace(as_shift(members[0]), gamma=None)
