"""Requirements of settings: one way to declare them, and one way to check them.

A configuration is a frozen dataclass. Its fields declare their requirements, for example
`learning_rate: Positive = 1e-3`, and its `__post_init__` calls `check`.
"""

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
        holds: Whether a finite value meets it.
    """

    words: str
    holds: Callable[[Any], bool] = lambda _: True


Finite = Annotated[float, Must("finite")]
Positive = Annotated[float, Must("finite and above 0", lambda value: value > 0)]
NonNegative = Annotated[float, Must("finite and 0 or more", lambda value: value >= 0)]
Share = Annotated[float, Must("in [0, 1]", lambda value: 0 <= value <= 1)]
Rate = Annotated[float, Must("in (0, 1]", lambda value: 0 < value <= 1)]
Discount = Annotated[float, Must("in [0, 1)", lambda value: 0 <= value < 1)]
Count = Annotated[int, Must("a whole number of 1 or more, below 2^31", lambda value: value >= 1)]
Natural = Annotated[int, Must("a whole number of 0 or more, below 2^31", lambda value: value >= 0)]
Widths = tuple[Count, ...]


def check(config: Any) -> None:
    """Converts every field to its declared type; raises with the name and value of a bad one.

    Lists become tuples, whole numbers become floats where floats are declared, and NumPy scalars
    become Python numbers. So equal settings are equal values, with the same JSON.
    """
    hints = get_type_hints(type(config), include_extras=True)
    for field in fields(config):
        value = checked(field.name, hints[field.name], getattr(config, field.name))
        object.__setattr__(config, field.name, value)


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
        return _required(convert(parts[0], value), parts[1:])
    if origin in (Union, types.UnionType):
        return _first(parts, value)
    if origin is Literal:
        fits = isinstance(value, str) and value in parts
    elif origin is tuple:
        return _as_tuple(parts, value)
    elif kind is bool:
        fits = isinstance(value, bool | np.bool_)
    elif kind in (int, float):
        fits = isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
        fits = fits and (kind is float or abs(value) <= LARGEST)
    else:
        fits = isinstance(value, origin or kind)
        if getattr(kind, "_is_protocol", False):
            fits = fits and not isinstance(value, type)  # a class has the methods too
    if not fits:
        raise TypeError
    return kind(value) if kind in (bool, int, float) else value


def _required(value: Any, metadata: tuple[Any, ...]) -> Any:
    """The value, if every requirement among the metadata holds."""
    for must in metadata:
        if isinstance(must, Must) and not (math.isfinite(value) and must.holds(value)):
            raise ValueError
    return value


def _first(kinds: tuple[Any, ...], value: Any) -> Any:
    """The value, converted to the first of several types that it fits."""
    for kind in kinds:
        try:
            return convert(kind, value)
        except (TypeError, ValueError, OverflowError):
            continue
    raise TypeError


def _as_tuple(kinds: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list | np.ndarray):
        raise TypeError
    items = list(value)
    each = [kinds[0]] * len(items) if kinds[-1] is Ellipsis else kinds
    return tuple(convert(kind, item) for kind, item in zip(each, items, strict=True))


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
