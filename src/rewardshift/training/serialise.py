"""Configurations as JSON and trees of arrays as npz files, without pickles.

A part of ours is stored by its name. A part from another package is stored as module and name, and
is found again only if its module is already imported: a file never causes an import. An
array is stored under its path in its tree, and checked by path, shape and type when it is read.
"""

import dataclasses
import inspect
import io
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

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
from rewardshift.files import read_arrays
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
    name = body.get("type")
    if not isinstance(name, str):
        raise InputError(f"a part must name its type, got {shown(body)}")
    return build(find_part(name), {key: body[key] for key in body if key != "type"})


def build(kind: Any, body: Any) -> Any:
    """The dataclass from its fields in JSON; raises InputError if it has other fields."""
    if not isinstance(body, dict):
        raise InputError(f"{kind.__name__} needs its settings by name, got {shown(body)}")
    fields = {name: part_from_json(value) for name, value in body.items()}
    try:
        inspect.signature(kind).bind(**fields)
    except TypeError as error:
        raise InputError(f"{kind.__name__} has other settings: {error}") from error
    return kind(**fields)


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


def npz_bytes(tree: Any) -> bytes:
    """A tree of arrays as an npz file, with each array under its path."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **_leaves(tree))
    return buffer.getvalue()


def read_npz(content: bytes, template: Any) -> Any:
    """A tree like the template, from the result of `npz_bytes`."""
    return fill(template, read_arrays(content))


def leaf_name(key: str) -> str:
    """The name of a dictionary's entry in a file."""
    return f"[{key!r}]"


def _leaves(tree: Any) -> dict[str, np.ndarray]:
    return {
        jax.tree_util.keystr(path): np.asarray(leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }


def fill(template: Any, leaves: dict[str, np.ndarray]) -> Any:
    """The template's tree with these leaves; raises ValueError if one does not fit."""
    wanted = _leaves(template)
    if set(wanted) != set(leaves):
        odd = sorted(set(wanted) ^ set(leaves))[0]
        raise ValueError(f"the array {odd!r} is {'missing' if odd in wanted else 'unexpected'}")
    for path, leaf in leaves.items():
        if (leaf.shape, leaf.dtype) != (wanted[path].shape, wanted[path].dtype):
            raise ValueError(
                f"the array {path!r} is {leaf.dtype}{leaf.shape},"
                f" not {wanted[path].dtype}{wanted[path].shape}"
            )
    return jax.tree_util.tree_map_with_path(
        lambda path, like: _like(leaves[jax.tree_util.keystr(path)], like), template
    )


def _like(leaf: np.ndarray, like: Any) -> Any:
    """The leaf, on the device if the template's leaf is there, else on the host."""
    return jnp.asarray(leaf) if isinstance(like, jax.Array) else leaf
