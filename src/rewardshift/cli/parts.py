"""Parts and shifts as texts on the command line.

A part is written as its name, with settings if they are not the defaults: `uniform`,
`rnd(shift=-1, width=64)`. Your own part is written as `mymodule:Mine(beta=2)`. Such a text never
imports a module; `rewardshift --import mymodule` does.
"""

import ast
import inspect
import re
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import partial
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin

from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
)

from rewardshift.agents.intrinsic import RND, Intrinsic
from rewardshift.agents.networks import MLP, Convolution, Network
from rewardshift.agents.selection import SELECTIONS, Drawing
from rewardshift.auto import AUTO, Auto, Cautious, Rule
from rewardshift.errors import InputError, one_line, shown
from rewardshift.shift import Shift
from rewardshift.training.config import find_part
from rewardshift.training.hindsight import Hindsight

TEXT = re.compile(r"(?P<name>[\w.:-]+)\s*(\((?P<settings>.*)\))?", re.DOTALL)
NONE = "none"
OWN = "MODULE:CLASS(...)"

Makers = dict[str, Callable[..., Any]]


class Slot(NamedTuple):
    """A kind of setting whose value is a part.

    Args:
        name: The name of the slot in messages.
        makers: The functions that make its parts, by name.
        optional: Whether it may be empty.
    """

    name: str
    makers: Makers
    optional: bool

    @property
    def metavar(self) -> str:
        """All choices, each with its settings and their defaults."""
        known = [_call(name, _defaults(make)) for name, make in self.makers.items()]
        return " | ".join([*([NONE] if self.optional else []), *known, OWN])


# The slots by type. A slot of any other type takes users' own parts only.
SLOTS: dict[Any, tuple[str, Makers]] = {
    Intrinsic: ("intrinsic", {"rnd": RND}),
    Drawing: ("selection", dict(SELECTIONS)),
    Network: ("network", {"mlp": MLP, "convolution": Convolution}),
    Hindsight: (
        "hindsight",
        {name: partial(Hindsight, name) for name in ("future", "final", "episode")},
    ),
}
CHOOSING = Slot("shift", {AUTO: Auto}, optional=False)
REGISTRY = ConstructorRegistry()


class PartError(Exception):
    """A text that describes no part. It is not a `ValueError`, which tyro would show as its own."""


def slot_of(kind: Any) -> Slot | None:
    """The slot of a type; None if its values are no parts."""
    kinds = get_args(kind) or (kind,)
    parts = [one for one in kinds if one is not NoneType]
    nested = is_dataclass(kind) and kind not in SLOTS  # tyro makes flags of its fields
    are_parts = all(is_dataclass(one) or getattr(one, "_is_protocol", False) for one in parts)
    if nested or not parts or Shift in parts or not are_parts:
        return None
    name, makers = next((SLOTS[one] for one in parts if one in SLOTS), ("a part", {}))
    return Slot(name, makers, NoneType in kinds)


@REGISTRY.primitive_rule
def slot_rule(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """The rule by which tyro reads a part."""
    kinds, slot = get_args(info.type) or (info.type,), slot_of(info.type)
    if slot is None:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=slot.metavar,
        instance_from_str=lambda texts: _part_or_error(texts[0], slot),
        is_instance=lambda value: isinstance(value, kinds),
        str_from_instance=lambda part: [part_to_text(part, slot)],
    )


@REGISTRY.primitive_rule
def shift_rule(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """The rule by which tyro reads the shift of an agent: numbers, one for each member, or auto."""
    kinds = get_args(info.type)
    if Shift not in kinds:
        return None
    several = any(get_origin(kind) is tuple for kind in kinds)
    rule = Cautious in kinds
    single = f"FLOAT | {AUTO}" if rule else "FLOAT"
    return PrimitiveConstructorSpec(
        nargs="*",
        metavar=f"FLOAT [FLOAT ...] | {CHOOSING.metavar}" if several else single,
        instance_from_str=lambda texts: _shift_from_texts(texts, several, rule),
        is_instance=lambda value: isinstance(value, float | Shift | tuple | Rule | Cautious),
        str_from_instance=_shift_to_texts,
    )


def part_from_text(text: str, slot: Slot) -> Any:
    """The part that a text describes."""
    found = TEXT.fullmatch(text.strip())
    if found is None:
        raise InputError(f"{slot.name} must be {slot.metavar}, got {shown(text)}")
    name, settings = found["name"], found["settings"]
    if slot.optional and name == NONE and settings is None:
        return None
    if ":" in name:
        make = find_part(name)
    elif name in slot.makers:
        make = slot.makers[name]
    else:
        names = ", ".join([*([NONE] if slot.optional else []), *slot.makers, OWN])
        raise InputError(f"{slot.name} must be one of {names}, got {shown(name)}")
    values = _literals(settings or "", f"{slot.name} {name}")
    known = inspect.signature(make)
    try:
        known.bind(**values)
    except TypeError as error:
        settings = ", ".join(known.parameters) or "none"
        raise InputError(f"{slot.name} {name} {error}; its settings are: {settings}") from error
    return make(**values)


def part_to_text(part: Any, slot: Slot) -> str:
    """The text that describes a part."""
    if part is None:
        return NONE
    for name, make in slot.makers.items():
        if type(make()) is type(part):
            defaults = _defaults(make)
            values = {key: getattr(part, key) for key in defaults}
            if make(**values) == part:
                changed = {key: value for key, value in values.items() if value != defaults[key]}
                return _call(name, changed)
    return f"{type(part).__module__}:{part!r}"


def _part_or_error(text: str, slot: Slot) -> Any:
    try:
        return part_from_text(text, slot)
    except ValueError as error:
        raise PartError(one_line(error)) from error


def _defaults(make: Callable[..., Any]) -> dict[str, Any]:
    """The settings of a part of ours and their defaults."""
    return {name: one.default for name, one in inspect.signature(make).parameters.items()}


def _call(name: str, settings: dict[str, Any]) -> str:
    said = ", ".join(f"{key}={value!r}" for key, value in settings.items())
    return f"{name}({said})" if said else name


def _literals(text: str, what: str) -> dict[str, Any]:
    """The values of `name=value, ...`, each a Python literal."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)) or call.args:
            raise ValueError
        values = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
        if "None" in values or len(values) < len(call.keywords):  # `**settings`, or a name twice
            raise ValueError
        return values
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise InputError(
            f"the settings of {what} must be like (name=value, ...), with numbers, texts in quotes,"
            f" tuples, True, False or None, got {shown(text)}"
        ) from error


def _shift_from_texts(texts: list[str], several: bool, rule: bool) -> Any:
    """The shift of these words.

    Args:
        texts: The words.
        several: Whether the agent takes several numbers, or a rule that follows its steps.
        rule: Whether it takes the rule for a data set.
    """
    try:
        biases = tuple(map(float, texts))
    except ValueError:
        if several and len(texts) == 1:
            return _part_or_error(texts[0], CHOOSING)
        if rule and texts == [AUTO]:
            return Cautious()
        biases = ()
    if several and biases:
        return biases
    if len(biases) == 1:
        return biases[0]
    choice = f" or {AUTO}" if rule else ""
    more = ", or one for each member" if several else f"{choice} on a data set"
    raise PartError(f"--shift must be a number{more}, got {' '.join(texts) or 'none'}")


def _shift_to_texts(shift: Any) -> list[str]:
    if isinstance(shift, Cautious):
        return [AUTO]
    if isinstance(shift, Rule):
        return [part_to_text(shift, CHOOSING)]
    members = shift if isinstance(shift, tuple) else (shift,)
    return [str(one.bias if isinstance(one, Shift) else one) for one in members]
