"""Settings as texts on the command line, and back.

A part is written as its name, with settings if they are not the defaults: `uniform`,
`rnd(shift=-1, width=64)`. Your own part is written as `mymodule:Mine(beta=2)`. Such a text never
imports a module; `rewardshift --import mymodule` does.
"""

import ast
import contextlib
import re
import shlex
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import partial
from inspect import signature
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from rewardshift.agents.intrinsic import RND, Intrinsic
from rewardshift.agents.networks import MLP, Convolution, Network
from rewardshift.agents.selection import SELECTIONS, Drawing
from rewardshift.auto import AUTO, Auto, Cautious, Rule
from rewardshift.errors import InputError, shown
from rewardshift.shift import Shift
from rewardshift.training.config import find_part
from rewardshift.training.hindsight import Hindsight

TEXT = re.compile(r"(?P<name>[\w.:-]+)\s*(\((?P<settings>.*)\))?", re.DOTALL)
NONE = "none"
OWN = "MODULE:CLASS(...)"


class Slot(NamedTuple):
    """A kind of setting whose value is a part.

    Args:
        name: The name of the slot in messages.
        makers: The functions that make its parts, by name.
        optional: Whether it may be empty.
    """

    name: str
    makers: dict[str, Callable[..., Any]]
    optional: bool

    @property
    def metavar(self) -> str:
        """All choices, each with its settings and their defaults."""
        known = [
            _call(name, {key: one.default for key, one in signature(make).parameters.items()})
            for name, make in self.makers.items()
        ]
        return " | ".join([*([NONE] if self.optional else []), *known, OWN])


# The slots by type. A slot of any other type takes users' own parts only.
SLOTS: dict[Any, tuple[str, dict[str, Callable[..., Any]]]] = {
    Intrinsic: ("intrinsic", {"rnd": RND}),
    Drawing: ("selection", dict(SELECTIONS)),
    Network: ("network", {"mlp": MLP, "convolution": Convolution}),
    Hindsight: (
        "hindsight",
        {name: partial(Hindsight, name) for name in ("future", "final", "episode")},
    ),
}
CHOOSING = Slot("shift", {AUTO: Auto}, optional=False)
FLAGS = ConstructorRegistry()


@FLAGS.primitive_rule
def flag(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """How tyro reads and shows a setting that is a shift or a part; it knows the others."""
    union = get_origin(info.type) in (Union, UnionType)
    kinds = get_args(info.type) if union else (info.type,)
    if Shift in kinds:
        several, rule = any(get_origin(one) is tuple for one in kinds), Cautious in kinds
        single = f"FLOAT | {AUTO}" if rule else "FLOAT"
        return PrimitiveConstructorSpec(
            nargs="*",
            metavar=f"FLOAT [FLOAT ...] | {CHOOSING.metavar}" if several else single,
            instance_from_str=lambda texts: _shift_from_texts(texts, several, rule),
            is_instance=lambda _: True,
            str_from_instance=_shift_to_texts,
        )
    parts = [one for one in kinds if one is not NoneType]
    are_parts = all(is_dataclass(one) or getattr(one, "_is_protocol", False) for one in parts)
    nested = is_dataclass(info.type) and info.type not in SLOTS  # tyro makes flags of its fields
    if nested or not parts or not are_parts:
        return None
    name, makers = next((SLOTS[one] for one in parts if one in SLOTS), ("a part", {}))
    slot = Slot(name, makers, NoneType in kinds)
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=slot.metavar,
        instance_from_str=lambda texts: part_from_text(texts[0], slot),
        is_instance=lambda _: True,
        str_from_instance=lambda part: [part_to_text(part, slot)],
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
    known = signature(make)
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
        usual = make()
        if type(usual) is not type(part):
            continue
        settings = {key: getattr(part, key) for key in signature(make).parameters}
        if make(**settings) == part:
            return _call(
                name, {key: one for key, one in settings.items() if one != getattr(usual, key)}
            )
    return f"{type(part).__module__}:{part!r}"


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
    with contextlib.suppress(ValueError):
        biases = tuple(map(float, texts))
        if len(biases) == 1 or (several and biases):
            return biases if several else biases[0]
    if several and len(texts) == 1:
        return part_from_text(texts[0], CHOOSING)
    if rule and texts == [AUTO]:
        return Cautious()
    choice = f" or {AUTO}" if rule else ""
    more = ", or one for each member" if several else f"{choice} on a data set"
    raise InputError(f"--shift must be a number{more}, got {' '.join(texts) or 'none'}")


def _shift_to_texts(shift: Any) -> list[str]:
    if isinstance(shift, Cautious):
        return [AUTO]
    if isinstance(shift, Rule):
        return [part_to_text(shift, CHOOSING)]
    members = shift if isinstance(shift, tuple) else (shift,)
    return [str(one.bias if isinstance(one, Shift) else one) for one in members]


def command(*words: str) -> str:
    """A command line."""
    return shlex.join(("rewardshift", *words))
