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
from inspect import signature
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from rewardshift.agents.intrinsic import RND, Intrinsic
from rewardshift.agents.networks import MLP, Network
from rewardshift.agents.selection import SELECTIONS, Drawing
from rewardshift.auto import AUTO, Auto, Cautious, Rule
from rewardshift.errors import InputError, shown
from rewardshift.shift import Shift
from rewardshift.training.config import find_part
from rewardshift.training.hindsight import Hindsight

TEXT = re.compile(r"(?P<name>[\w.:-]+)\s*(\((?P<settings>.*)\))?", re.DOTALL)


class Slot(NamedTuple):
    """A kind of setting whose value is a part.

    Args:
        name: The name of the slot in messages.
        makers: The functions that make its parts, by name.
    """

    name: str
    makers: dict[str, Callable[..., Any]]

    @property
    def choices(self) -> str:
        """All choices, each with its settings and their defaults."""
        known = [
            _call(name, {key: one.default for key, one in signature(make).parameters.items()})
            for name, make in self.makers.items()
        ]
        return " | ".join([*known, "MODULE:CLASS(...)"])


# The slots by type. A slot of any other type takes users' own parts only.
SLOTS: dict[Any, Slot] = {
    Intrinsic: Slot("intrinsic", {"rnd": RND}),
    Drawing: Slot("selection", dict(SELECTIONS)),
    Network: Slot("network", {"mlp": MLP}),
    Hindsight: Slot("hindsight", {"future": Hindsight}),
}
EMPTY: dict[str, Callable[..., Any]] = {"none": lambda: None}
FLAGS = ConstructorRegistry()


@FLAGS.primitive_rule
def flag(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """How tyro reads and shows a setting that is a shift or a part; it knows the others."""
    union = get_origin(info.type) in (Union, UnionType)
    kinds = get_args(info.type) if union else (info.type,)
    if Shift in kinds:
        return _shift_flag(any(get_origin(one) is tuple for one in kinds), Cautious in kinds)
    parts = [one for one in kinds if one is not NoneType]
    are_parts = all(is_dataclass(one) or getattr(one, "_is_protocol", False) for one in parts)
    nested = is_dataclass(info.type) and info.type not in SLOTS  # tyro makes flags of its fields
    if nested or not parts or not are_parts:
        return None
    name, makers = next((SLOTS[one] for one in parts if one in SLOTS), Slot("a part", {}))
    slot = Slot(name, EMPTY | makers if NoneType in kinds else makers)
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=slot.choices,
        instance_from_str=lambda texts: part_from_text(texts[0], slot),
        is_instance=lambda _: True,
        str_from_instance=lambda part: [part_to_text(part, slot)],
    )


def _shift_flag(several: bool, cautious: bool) -> PrimitiveConstructorSpec[Any]:
    """The flag of a shift.

    Args:
        several: Whether the agent takes several numbers, or a rule that follows its steps.
        cautious: Whether the agent takes `Cautious`, the rule for a data set.
    """
    slot = Slot("a shift that is no number", {AUTO: Auto} if several else {AUTO: Cautious})
    choices = "FLOAT [FLOAT ...]" if several else "FLOAT"
    if several or cautious:
        choices += f" | {slot.choices}"

    def read(texts: list[str]) -> Any:
        with contextlib.suppress(ValueError):
            biases = tuple(map(float, texts))
            if len(biases) == 1 or (several and biases):
                return biases if several else biases[0]
        is_rule = len(texts) == 1 and (":" in texts[0] or texts[0].startswith(AUTO))
        if is_rule and (several or cautious):
            return part_from_text(texts[0], slot)
        raise InputError(f"shift must be {choices}, got {' '.join(texts) or 'none'}")

    def shown_as(shift: Any) -> list[str]:
        if isinstance(shift, Rule | Cautious):
            return [part_to_text(shift, slot)]
        members = shift if isinstance(shift, tuple) else (shift,)
        return [str(one.bias if isinstance(one, Shift) else one) for one in members]

    return PrimitiveConstructorSpec("*", choices, read, lambda _: True, shown_as)


def part_from_text(text: str, slot: Slot) -> Any:
    """The part that a text describes."""
    found = TEXT.fullmatch(text.strip())
    name, settings = (found["name"], found["settings"] or "") if found else ("", "")
    make = find_part(name) if ":" in name else slot.makers.get(name)
    if make is None:
        raise InputError(f"{slot.name} must be {slot.choices}, got {shown(text)}")
    values = _literals(settings, f"{slot.name} {name}")
    known = signature(make)
    try:
        known.bind(**values)
    except TypeError as error:
        names = ", ".join(known.parameters) or "none"
        raise InputError(f"{slot.name} {name} {error}; its settings are: {names}") from error
    return make(**values)


def part_to_text(part: Any, slot: Slot) -> str:
    """The text that describes a part."""
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


def command(*words: str) -> str:
    """A command line."""
    return shlex.join(("rewardshift", *words))
