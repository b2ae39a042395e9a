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
from dataclasses import MISSING, fields, is_dataclass
from inspect import signature
from types import NoneType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from tyro.constructors import PrimitiveConstructorSpec

from rewardshift.agents.intrinsic import RND, Intrinsic
from rewardshift.agents.networks import MLP, Network
from rewardshift.agents.selection import SELECTIONS, Drawing
from rewardshift.auto import AUTO, Auto, Cautious, Rule
from rewardshift.cli import FlagError
from rewardshift.errors import InputError, one_line, shown
from rewardshift.lab.sweep.constants import Constant, Members
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
        known = [
            _call(name, {key: one.default for key, one in signature(make).parameters.items()})
            for name, make in self.makers.items()
        ]
        return " | ".join([*([NONE] if self.optional else []), *known, OWN])


# The slots by type. A slot of any other type takes users' own parts only.
SLOTS: dict[Any, tuple[str, Makers]] = {
    Intrinsic: ("intrinsic", {"rnd": RND}),
    Drawing: ("selection", dict(SELECTIONS)),
    Network: ("network", {"mlp": MLP}),
    Hindsight: ("hindsight", {"future": Hindsight}),
}
CHOOSING = Slot("shift", {AUTO: Auto}, optional=False)


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


def flag_type(kind: Any) -> Any:
    """The type of a setting for tyro, which reads parts and shifts as texts."""
    kinds, slot = get_args(kind) or (kind,), slot_of(kind)
    if Shift in kinds:
        several, rule = any(get_origin(one) is tuple for one in kinds), Cautious in kinds
        single = f"FLOAT | {AUTO}" if rule else "FLOAT"
        spec = _texts(
            f"FLOAT [FLOAT ...] | {CHOOSING.metavar}" if several else single,
            lambda texts: _shift_from_texts(texts, several, rule),
            _shift_to_texts,
            number="*",
        )
    elif slot is not None:
        spec = _texts(
            slot.metavar,
            lambda texts: part_from_text(texts[0], slot),
            lambda part: [part_to_text(part, slot)],
        )
    elif any(Members in get_args(one) for one in kinds):
        spec = _texts(f"FLOAT|{AUTO}|FLOAT,FLOAT,...", lambda texts: _constant(texts[0]), _as_texts)
        return tuple[Annotated[kinds[0], spec], ...]  # type: ignore[valid-type]
    else:
        return kind
    return Annotated[kind, spec]


def _texts(
    metavar: str,
    read: Callable[[list[str]], Any],
    write: Callable[[Any], list[str]],
    number: Any = 1,
) -> PrimitiveConstructorSpec[Any]:
    """A setting that tyro reads and shows as texts."""

    def instance(texts: list[str]) -> Any:
        try:
            return read(texts)
        except ValueError as error:
            raise FlagError(one_line(error)) from error

    return PrimitiveConstructorSpec(number, metavar, instance, lambda _: True, write)


def _constant(text: str) -> Constant:
    """A constant of a sweep: a number, auto, or the numbers of members with commas between them."""
    if text == AUTO:
        return "auto"
    biases = tuple(map(float, text.split(",")))
    return biases[0] if len(biases) == 1 else biases


def _as_texts(constant: Constant) -> list[str]:
    return [",".join(map(str, constant)) if isinstance(constant, tuple) else str(constant)]


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


def flags(config: Any, usual: Any = None, without: tuple[str, ...] = ()) -> list[str]:
    """The flags of the settings that differ from their defaults.

    Args:
        config: A dataclass whose fields are flags.
        usual: The same dataclass with the defaults; by default those of its fields.
        without: Fields to leave out.
    """
    hints = get_type_hints(type(config))
    words: list[str] = []
    for field in fields(config):
        value = getattr(config, field.name)
        default = field.default if usual is None else getattr(usual, field.name)
        if default is MISSING and field.default_factory is not MISSING:
            default = field.default_factory()
        if field.init and field.name not in without and value != default:
            words += _flag(field.name.replace("_", "-"), value, hints[field.name])
    return words


def shift_flags(shift: Shift) -> list[str]:
    """The flags of a shift's settings beside its bias."""
    changed = [
        name for name in ("scale", "terminal") if getattr(shift, name) != getattr(Shift, name)
    ]
    return [word for name in changed for word in (f"--{name}", str(getattr(shift, name)))]


def _flag(name: str, value: Any, kind: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    slot = slot_of(kind)
    if slot is not None:
        return [f"--{name}", part_to_text(value, slot)]
    each = value if isinstance(value, tuple) else (value,)
    # The constants of members are one word.
    return [f"--{name}", *(word for one in each for word in _as_texts(one))]
