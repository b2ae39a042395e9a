"""The arithmetic of reward shifting, ``r' = k r + b``.

This is the only place in the project that adds a constant to a reward. Wrappers,
agents and adapters hold a `Shift` and use its methods.

Three facts carry everything else. With discount ``gamma`` and a task that never
terminates, the shifted optimal values are ``Q'* = k Q* + b / (1 - gamma)``: every
value moves by the same offset, so the best policy stays the same. But learning starts
where the network starts, near zero, and zero on the shifted scale stands for
``-b / ((1 - gamma) k)`` on the primal scale. So ``b < 0`` is an optimistic initial
value and ``b > 0`` a cautious one.
"""

import math
import numbers
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal, get_args

import numpy as np

from rewardshift.arrays import as_numbers, as_numpy, check_shape, expm1, like, log
from rewardshift.errors import InputError, needs, shown

Terminal = Literal["zero", "absorbing", "goal"]

ROUNDING = 1e-6  # of numbers in single precision, with some room
_LEAVES = ("bias", "scale", "gamma")


@dataclass(frozen=True)
class Shift:  # noqa: PLW1641  the dataclass gets a hash of its fields
    """A linear change of the reward, ``r' = scale * r + bias``, and its effect on values.

    It is frozen, and hashable if its numbers are Python floats. It takes floats, NumPy, JAX
    and torch values and keeps their floating dtype. For JAX it is a pytree: see
    `register_pytree`.

    Args:
        bias: The constant `b` that is added to every reward. Negative: optimism, the
            agent explores. Positive: caution, the agent stays with its data. An array
            (one bias per member) and a traced value work too.
        scale: The factor `k > 0`.
        gamma: The discount of the agent that learns, in `[0, 1)`. The value maps and
            `terminal="absorbing"` need it, a plain change of rewards does not. A shift for
            one of our agents may leave it out: the discount is the agent's.
        terminal: The reward of a terminal transition.
            `"zero"`: `k r + b`, and nothing afterwards, as in the paper. The shift then
            ends with the episode, so `b < 0` also rewards ending soon and `b > 0`
            rewards surviving: the best policy may change.
            `"absorbing"`: `k r + b + gamma b / (1 - gamma)`, as if an absorbing state paid
            `b` forever. The best policy never changes.
            `"goal"`: as `"zero"` if the terminal reward is positive, else as `"absorbing"`. So
            `b < 0` is a price of time on the way to a goal, and a fall does not escape it. The
            best policy stays the same if all goals pay the same and no other reward is paid.
            A fall that pays more than 0, as in CartPole and Hopper, counts as a goal.

    Note:
        The value maps `to_primal`, `from_primal`, `value_offset`, `initial_value` and
        `optimism` are exact only for `terminal="absorbing"` and for tasks that never
        terminate. Under `"zero"` and `"goal"` with terminal states there is no such map:
        compare values on the shifted scale.

    >>> shift = Shift(bias=-0.5, gamma=0.99)
    >>> shift
    Shift(bias=-0.5, scale=1.0, gamma=0.99, terminal='zero')
    >>> shift.reward(1.0)
    0.5
    >>> round(shift.initial_value, 6)  # what Q = 0 stands for: a value no agent reaches
    50.0
    """

    bias: Any
    scale: Any = 1.0
    gamma: Any = None
    terminal: Terminal = "zero"

    def __post_init__(self) -> None:
        bias = _number("bias", self.bias, "finite")
        scale = _number("scale", self.scale, "finite and above 0", lambda k: k > 0)
        gamma = self.gamma
        if gamma is not None:
            gamma = _number("gamma", gamma, "in [0, 1)", lambda g: (g >= 0) & (g < 1))
        for name, number in zip(_LEAVES, (bias, scale, gamma), strict=True):
            object.__setattr__(self, name, number)
        if not isinstance(self.terminal, str) or self.terminal not in get_args(Terminal):
            raise InputError(
                f"terminal must be 'zero', 'absorbing' or 'goal', got {shown(self.terminal)}"
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Shift):
            return NotImplemented
        pairs = ((getattr(self, name), getattr(other, name)) for name in _LEAVES)
        alike = (np.array_equal(as_numpy(ours), as_numpy(theirs)) for ours, theirs in pairs)
        return self.terminal == other.terminal and all(alike)

    def reward(self, reward: Any, terminated: Any = False) -> Any:
        """The shifted reward, `k r + b`.

        Args:
            reward: The primal reward, a number, a list or an array.
            terminated: Whether the transition ended the episode in a terminal state. A
                time limit does not count. `terminal="zero"` does not use it; the others refuse
                flags whose shape would make the result larger than the reward.
        """
        reward, ended = as_numbers("reward", reward), as_numbers("terminated", terminated)
        shifted = like(self.scale, reward) * reward + like(self.bias, reward)
        if self.terminal == "zero":
            return shifted
        self.need_discount()
        check_shape("terminated", ended, "reward", reward)
        if self.terminal == "goal":
            ended = like(ended, shifted) * like(reward <= 0, shifted)
        paid = like(self._credit, shifted) * like(ended, shifted)
        return shifted + like(paid, shifted)

    def to_primal_reward(self, reward: Any, terminated: Any = False) -> Any:
        """The primal reward of a shifted one: the inverse of `reward`.

        With `terminal="goal"` and a bias above 0, two terminal rewards can have the same shifted
        reward, one of a goal and one of another end. Such a reward is refused.

        Args:
            reward: The shifted reward, a number, a list or an array.
            terminated: As in `reward`.

        >>> shift = Shift(-0.5, gamma=0.99, terminal="goal")
        >>> shift.to_primal_reward(shift.reward(1.0, True), True)
        1.0
        """
        reward, ended = as_numbers("reward", reward), as_numbers("terminated", terminated)
        primal = (reward - like(self.bias, reward)) / like(self.scale, reward)
        if self.terminal == "zero":
            return primal
        self.need_discount()
        check_shape("terminated", ended, "reward", reward)
        credit = like(self._credit / self.scale, primal)
        if self.terminal == "goal":
            _check_goals(primal, ended, credit, self.bias / self.scale)
            # A goal has no credit, so it is above 0 here. With a bias below 0, other ends are at
            # the credit or below: half of it tells the two apart, whatever the rounding.
            ended = like(ended, primal) * like(primal <= credit / 2, primal)
        paid = credit * like(ended, primal)
        return primal - like(paid, primal)

    @property
    def _credit(self) -> Any:
        """The shift of all steps after an end, `gamma b / (1 - gamma)`."""
        return self.gamma * self.bias / (1 - self.gamma)

    def prepared(self) -> Callable[[Any, Any], Any]:
        """A fast function equal to `reward`, for wrappers, which call it at every step."""
        plain = type(self.bias) is float and type(self.scale) is float and self.scale == 1
        if plain and not self.credits_ends:
            return partial(_add, self.bias)
        return self.reward

    def multistep_return(self, total: Any, steps: Any, terminated: Any = False) -> Any:
        """The shifted counterpart of `r_1 + gamma r_2 + ... + gamma^(n-1) r_n`.

        `n` rewards shift by `b (1 - gamma^n) / (1 - gamma)`, not by `b`. If the last of
        them is terminal, `"absorbing"` also adds the shift of all steps that would follow.

        Args:
            total: The discounted sum of the primal rewards, a number, a list or an array.
            steps: The number of rewards in the sum; fewer than asked for if the episode
                ended earlier.
            terminated: Whether the last of them ended in a terminal state.
        """
        if self.terminal == "goal":
            raise InputError("terminal='goal' needs each reward: it has no multi-step return")
        total, steps = as_numbers("total", total), as_numbers("steps", steps)
        ended = as_numbers("terminated", terminated)
        _number("steps", steps, "1 or more", lambda n: n >= 1)
        check_shape("steps", steps, "total", total)
        offset = self.value_offset
        # 1 - gamma^n, without cancellation
        share = -expm1(steps * like(log(self.gamma), steps))
        if self.terminal == "absorbing":
            check_shape("terminated", ended, "total", total)
            share = share + (1 - share) * like(ended * 1.0, share)
        offset = share * like(offset, share)
        return like(self.scale, total) * total + like(offset, total)

    @property
    def credits_ends(self) -> bool:
        """Whether terminal transitions get a credit, so that the shift has to know them."""
        return self.terminal != "zero"

    def need_discount(self) -> None:
        """Raises if rewards cannot be shifted because the discount is missing."""
        if self.credits_ends and self.gamma is None:
            raise InputError(f"terminal={self.terminal!r} needs the discount, got gamma=None")

    @property
    def value_offset(self) -> Any:
        """The offset `b / (1 - gamma)` by which the bias moves every value."""
        if self.gamma is None:
            raise InputError("the value maps need the discount, got gamma=None")
        return self.bias / (1 - self.gamma)

    def to_primal(self, value: Any) -> Any:
        """A value on the shifted scale, moved to the primal scale: `(q - b / (1 - gamma)) / k`.

        For a member with `b > 0` this is the paper's lower bound `Q_LB`, for one with
        `b < 0` the upper bound `Q_UB`.
        """
        value = as_numbers("value", value)
        return (value - like(self.value_offset, value)) / like(self.scale, value)

    def from_primal(self, value: Any) -> Any:
        """A value on the primal scale, moved to the shifted scale: `k q + b / (1 - gamma)`."""
        value = as_numbers("value", value)
        return like(self.scale, value) * value + like(self.value_offset, value)

    @property
    def initial_value(self) -> Any:
        """The primal value `-b / ((1 - gamma) k)` that a zero-initialised `Q` stands for."""
        return self.to_primal(0.0)

    def optimism(self, value_low: float, value_high: float) -> Any:
        """The place of the initial value between the lowest (0) and the highest (1) value.

        0 or less is caution everywhere, 1 or more optimism everywhere. The number does
        not depend on a task's units, so constants can be compared across tasks.

        Args:
            value_low, value_high: The range of the primal values (discounted returns).
        """
        low, high = as_numbers("value_low", value_low), as_numbers("value_high", value_high)
        if not (np.ndim(low) == np.ndim(high) == 0 and -math.inf < low < high < math.inf):
            raise InputError(
                "the range of values must be finite with low < high,"
                f" got {shown(value_low)} to {shown(value_high)}"
            )
        return (self.initial_value - low) / (high - low)


def as_shift(value: "float | Mapping[str, Any] | Shift") -> Shift:
    """A `Shift` from a bias or from its dict in a JSON file; refused if it has arrays."""
    if isinstance(value, Shift):
        numbers = (value.bias, value.scale, value.gamma)
        if not all(number is None or isinstance(number, float) for number in numbers):
            raise InputError(f"shift must have one bias, one scale and one gamma, got {value}")
        return value
    if isinstance(value, Mapping):
        unknown = set(value) - set(Shift.__dataclass_fields__)
        if unknown or "bias" not in value:
            raise InputError(
                "a shift as a dict needs 'bias' and may have 'scale', 'gamma' and 'terminal',"
                f" got {dict(value)!r}"
            )
        return Shift(**value)
    if isinstance(value, int | float | np.number):
        return Shift(value)
    raise InputError(f"expected a number, a dict or a Shift, got {shown(value)}")


def as_single_shift(value: "float | Mapping[str, Any] | Shift") -> Shift:
    """A `Shift` as from `as_shift`; refused if it lacks a discount it needs."""
    shift = as_shift(value)
    shift.need_discount()
    return shift


def _number(
    name: str,
    value: Any,
    requirement: str,
    holds: Callable[[np.ndarray], Any] = np.isfinite,
) -> Any:
    """A Python or NumPy scalar as a Python float, which changes no array's dtype; or the array.

    Refuses a concrete number that is not finite or does not meet the requirement.
    """
    if isinstance(value, list | tuple | bool | np.bool_):
        raise InputError(f"{name} must be a number or an array of numbers, got {shown(value)}")
    given = as_numbers(name, value)
    number = float(given) if isinstance(given, numbers.Real) else given
    try:
        array = as_numpy(number)
    except (TypeError, RuntimeError):  # an array without numbers: traced, vmapped, meta
        return number
    if not (np.all(np.isfinite(array)) and np.all(holds(array))):
        raise InputError(f"{name} must be {requirement}, got {number!r}")
    return number


def _check_goals(primal: Any, ended: Any, credit: Any, bias: Any) -> None:
    """Refuses concrete rewards of ends that a goal and another end can have.

    Args:
        primal: The rewards, with the credit of an end in those that got it.
        ended: Whether each of them ended an episode.
        credit: The credit of an end that is no goal, on the primal scale.
        bias: The bias on the primal scale, which `primal` lost: its rounding is still in there.
    """
    try:
        values, ends, most = as_numpy(primal), as_numpy(ended).astype(bool), as_numpy(credit)
        most = np.where(most > 0, most + ROUNDING * (most + as_numpy(bias)), most)
    except (TypeError, RuntimeError):  # arrays without numbers
        return
    if (ends & (values > 0) & (values <= most)).any():
        raise InputError(
            "terminal='goal' with a bias above 0 shifts the rewards of goals and of other ends to"
            " the same numbers, so primal rewards are unknown"
        )


def _add(bias: float, reward: Any, _: Any) -> Any:
    return reward + bias


@cache
def register_pytree() -> None:
    """Makes `Shift` a JAX pytree: `bias`, `scale` and `gamma` are leaves, `terminal` is static.

    Call it if a `Shift` is an argument or a result of a JAX transformation and JAX is imported
    after rewardshift. `import rewardshift` calls it if JAX is already loaded;
    `import rewardshift.agents` always does. Further calls do nothing.
    """
    with needs("agents"):
        from jax.tree_util import GetAttrKey, register_pytree_with_keys  # noqa: PLC0415
    register_pytree_with_keys(
        Shift,
        lambda shift: (
            [(GetAttrKey(name), getattr(shift, name)) for name in _LEAVES],
            shift.terminal,
        ),
        _unflatten,
    )


def _unflatten(terminal: Terminal, leaves: Any) -> Shift:
    # Bypasses __init__, because JAX puts tracers, axes and placeholders into the leaves.
    shift = object.__new__(Shift)
    for name, value in zip(_LEAVES, leaves, strict=True):
        object.__setattr__(shift, name, value)
    object.__setattr__(shift, "terminal", terminal)
    return shift


if sys.modules.get("jax"):
    register_pytree()
