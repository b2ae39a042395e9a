"""Converts the parts of a configuration to JSON and back, without imports that a file names.

A part of ours is stored by its name. A part from another package is stored as module and name, and
is found again only if its module is already imported: a file never causes an import.
"""

import dataclasses
import sys
from typing import Any

from rewardshift.agents.bcq import BCQ
from rewardshift.agents.cql import CQL
from rewardshift.agents.dqn import DQN
from rewardshift.agents.intrinsic import RND
from rewardshift.agents.networks import MLP, Convolution
from rewardshift.agents.sac import SAC
from rewardshift.agents.selection import SELECTIONS
from rewardshift.agents.td3 import TD3
from rewardshift.auto import Auto
from rewardshift.data.dataset import Subset
from rewardshift.errors import InputError, shown
from rewardshift.shift import Shift
from rewardshift.training.hindsight import Hindsight

OURS: dict[str, type] = {
    part.__name__: part
    for part in (
        *(DQN, TD3, SAC, BCQ, CQL, Shift, Auto, RND),
        *(Hindsight, Subset, MLP, Convolution),
        *SELECTIONS.values(),
    )
}
PLAIN = (bool, int, float, str, type(None))


def part_to_json(part: Any) -> Any:
    """A dataclass as its type and its fields, recursively."""
    if isinstance(part, tuple):
        return [part_to_json(item) for item in part]
    if not dataclasses.is_dataclass(part):
        return part
    fields = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
    return {"type": _name(type(part)), **{name: part_to_json(fields[name]) for name in fields}}


def part_from_json(body: Any) -> Any:
    """The part from the result of `part_to_json`."""
    if isinstance(body, list):
        return tuple(part_from_json(item) for item in body)
    if not isinstance(body, dict):
        return body
    fields = {name: part_from_json(value) for name, value in body.items()}
    return find_part(fields.pop("type"))(**fields)


def check_restorable(part: Any) -> None:
    """Raises if a part could not be restored from a run's folder."""
    if isinstance(part, tuple):
        for item in part:
            check_restorable(item)
    elif dataclasses.is_dataclass(part):
        kind = type(part)
        if _look_up(_name(kind)) is not kind:
            raise InputError(
                "a run in a folder needs parts that can be found again: define"
                f" {kind.__qualname__} at the top of a module, got {shown(part)}"
            )
        for field in dataclasses.fields(part):
            check_restorable(getattr(part, field.name))
    elif not isinstance(part, PLAIN):
        raise InputError(
            "a run in a folder needs settings that a file can keep: numbers, texts and frozen"
            f" dataclasses of these, got {shown(part)}"
        )


def foreign_modules(body: Any) -> set[str]:
    """The modules of the parts that are not ours, in the result of `part_to_json`."""
    if isinstance(body, list):
        return set().union(*map(foreign_modules, body))
    if not isinstance(body, dict):
        return set()
    module, colon, _ = body["type"].partition(":")
    return foreign_modules(list(body.values())) | ({module} if colon else set())


def _name(kind: type) -> str:
    if OURS.get(kind.__name__) is kind:
        return kind.__name__
    return f"{kind.__module__}:{kind.__qualname__}"


def _look_up(name: str) -> Any:
    """The class of that name, among ours or in an imported module; None if there is none."""
    if name in OURS:
        return OURS[name]
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for step in path.split("."):
        found = getattr(found, step, None)
    return found


def find_part(name: str) -> Any:
    """The class of a part that a file names."""
    found = _look_up(name)
    if isinstance(found, type) and dataclasses.is_dataclass(found):
        return found
    module, _, path = name.partition(":")
    if not path:
        raise InputError(f"there is no part called {name!r}")
    if module not in sys.modules:
        raise InputError(
            f"{path} is from the module {module!r}, which is not imported: import it first, or on"
            f" the command line: rewardshift --import {module} ..."
        )
    raise InputError(f"the module {module!r} has no dataclass {path!r}")
