"""Requirements of settings: one way to declare them, and one way to check them.

A configuration is a frozen dataclass. Its fields declare their requirements, for example
`learning_rate: Positive = 1e-3`, and it extends `Settings`, which checks them.
"""

import contextlib
import math
import types
from collections.abc import Callable
from dataclasses import fields
from numbers import Integral, Real
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from rewardshift.errors import InputError, shown

# The largest count that JAX, NumPy and files can all hold.
LARGEST = 2**31 - 1


class Must(NamedTuple):
    """A requirement of a setting, as the metadata of an `Annotated` type.

    Args:
        words: The requirement, as it follows "must be" in a message.
        holds: Whether a value meets it.
    """

    words: str
    holds: Callable[[Any], bool]


Finite = Annotated[float, Must("finite", math.isfinite)]
Positive = Annotated[float, Must("finite and above 0", lambda value: 0 < value < math.inf)]
NonNegative = Annotated[float, Must("finite and 0 or more", lambda value: 0 <= value < math.inf)]
Share = Annotated[float, Must("in [0, 1]", lambda value: 0 <= value <= 1)]
Rate = Annotated[float, Must("in (0, 1]", lambda value: 0 < value <= 1)]
Discount = Annotated[float, Must("in [0, 1)", lambda value: 0 <= value < 1)]
Count = Annotated[int, Must("a whole number of 1 or more, below 2^31", lambda value: value >= 1)]
Natural = Annotated[int, Must("a whole number of 0 or more, below 2^31", lambda value: value >= 0)]
Counts = Annotated[
    tuple[Count, ...],
    Must("up to 100 whole numbers of 1 or more, below 2^31", lambda widths: len(widths) <= 100),
]
Range = Annotated[
    tuple[Finite, Finite],
    Must("two finite numbers, the lower one first", lambda pair: pair[0] <= pair[1]),
]


def check(config: Any) -> None:
    """Converts every field to its declared type; raises with the name and value of a bad one.

    Lists become tuples, whole numbers become floats where floats are declared, and NumPy scalars
    become Python numbers. So equal settings are equal values, with the same JSON.
    """
    hints = get_type_hints(type(config), include_extras=True)
    for field in fields(config):
        value = checked(field.name, hints[field.name], getattr(config, field.name))
        object.__setattr__(config, field.name, value)


class Settings:
    """The base class of a configuration: a dataclass whose fields are checked when it is made."""

    __post_init__ = check


def checked(name: str, kind: Any, value: Any) -> Any:
    """The value, converted to the type; raises InputError with its name if it does not fit."""
    try:
        return convert(kind, value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be {_words(kind)}, got {shown(value)}") from None


def convert(kind: Any, value: Any) -> Any:
    """The value, converted to the type; raises TypeError or ValueError if it does not fit."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        value = convert(parts[0], value)
        if not all(must.holds(value) for must in parts[1:] if isinstance(must, Must)):
            raise ValueError
        return value
    if origin in (Union, types.UnionType):
        for part in parts:  # the first that fits
            with contextlib.suppress(TypeError, ValueError, OverflowError):
                return convert(part, value)
    elif origin is tuple and isinstance(value, tuple | list | np.ndarray):
        each = [parts[0]] * len(value) if parts[-1] is Ellipsis else parts
        return tuple(convert(part, item) for part, item in zip(each, value, strict=True))
    elif _fits(kind, origin, parts, value):
        return kind(value) if kind in (bool, int, float) else value
    raise TypeError


def _fits(kind: Any, origin: Any, parts: tuple[Any, ...], value: Any) -> bool:
    """Whether a value fits a Literal, a plain type, a class or a protocol."""
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if kind is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    if kind is int:
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        return whole and abs(value) <= LARGEST
    # A class has the methods of a protocol, too.
    is_class = getattr(kind, "_is_protocol", False) and isinstance(value, type)
    return isinstance(value, origin or kind) and not is_class


def _words(kind: Any) -> str:
    """A type in words."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        said = [must.words for must in parts[1:] if isinstance(must, Must)]
        return " and ".join(said) if said else _words(parts[0])
    if origin in (Union, types.UnionType):
        return " or ".join(map(_words, parts))
    if origin is Literal:
        return " or ".join(map(repr, parts))
    if origin is tuple:
        if parts[-1] is Ellipsis:
            return f"a tuple, each {_words(parts[0])}"
        each = f", each {_words(parts[0])}" if get_origin(parts[0]) is Annotated else ""
        return f"a tuple of {len(parts)} numbers{each}"
    plain = {
        bool: "True or False",
        int: "a whole number below 2^31",
        float: "a number",
        str: "a text",
        types.NoneType: "None",
    }
    name = (origin or kind).__name__
    return plain.get(kind) or f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
