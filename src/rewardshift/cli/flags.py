"""Settings as the flags of a command line: the inverse of the parser."""

import shlex
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

from rewardshift.cli.parts import part_to_text, slot_of
from rewardshift.shift import Shift


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
    usual = Shift(0.0)
    settings: Mapping[str, Any] = {"scale": shift.scale, "terminal": shift.terminal}
    return [
        word
        for name, value in settings.items()
        if value != getattr(usual, name)
        for word in (f"--{name}", str(value))
    ]


def _flag(name: str, value: Any, kind: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    slot = slot_of(kind)
    if slot is not None:
        return [f"--{name}", part_to_text(value, slot)]
    each = value if isinstance(value, tuple) else (value,)
    # The constants of members are one word.
    words = [",".join(map(str, one)) if isinstance(one, tuple) else str(one) for one in each]
    return [f"--{name}", *words]
