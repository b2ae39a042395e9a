"""Observations of any space as flat arrays, and the structure of a space in a form for JSON.

A policy acts without its environment. The spec of its task therefore keeps the structure of the
observation space; bounds are left out, because flattening does not need them.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from rewardshift.errors import InputError

Structure = tuple[Any, ...]
# The parts of a goal task's observations, in the order of a flat observation.
GOAL_KEYS = ("observation", "achieved_goal", "desired_goal")


def structure_of(space: gym.Space[Any]) -> Structure:
    """The structure of a space: its kind and what flattening needs, as nested tuples."""
    match space:
        case gym.spaces.Box() | gym.spaces.MultiBinary():  # or a subclass, which has another name
            return ("Box" if isinstance(space, gym.spaces.Box) else "MultiBinary", space.shape)
        case gym.spaces.Discrete():
            return ("Discrete", int(space.n), int(space.start))
        case gym.spaces.MultiDiscrete():
            return ("MultiDiscrete", frozen(space.nvec.tolist()), frozen(space.start.tolist()))
        case gym.spaces.Dict(spaces=spaces) if all(isinstance(key, str) for key in spaces):
            return ("Dict", tuple((key, structure_of(part)) for key, part in spaces.items()))
        case gym.spaces.Tuple(spaces=spaces):
            return ("Tuple", tuple(map(structure_of, spaces)))
    raise InputError(
        f"observations of the space {space} cannot be flattened into a fixed number of numbers:"
        " use a Box, Discrete, MultiBinary or MultiDiscrete, or a Dict (with texts as keys) or"
        " Tuple of these"
    )


def goal_structure(shapes: Sequence[tuple[int, ...]]) -> Structure:
    """The structure of a goal task's observations, from the shapes of its parts."""
    boxes = [("Box", shape) for shape in shapes]
    return ("Dict", tuple(zip(GOAL_KEYS, boxes, strict=True)))


def flat_size(structure: Structure) -> int:
    """The length of a flat observation; raises ValueError if the structure is damaged."""
    match structure:
        case ("Box" | "MultiBinary", tuple(shape)):
            return math.prod(shape)
        case ("Discrete", int(count), _):
            return count
        case ("MultiDiscrete", counts, _):
            return int(np.sum(counts))
        case ("Dict", tuple(parts)):
            return sum(flat_size(part) for _, part in parts)
        case ("Tuple", tuple(parts)):
            return sum(map(flat_size, parts))
    raise ValueError(f"no space has the structure {structure}")


def space_of(structure: Structure) -> gym.Space[Any]:
    """A space of that structure; raises ValueError if the structure is damaged."""
    try:
        match structure:
            case ("Box" | "MultiBinary" as kind, shape):
                box = gym.spaces.Box(-math.inf, math.inf, shape)
                return box if kind == "Box" else gym.spaces.MultiBinary(shape)
            case ("Discrete", count, start):
                return gym.spaces.Discrete(count, start=start)
            case ("MultiDiscrete", counts, starts):
                return gym.spaces.MultiDiscrete(np.array(counts), start=np.array(starts))
            case ("Dict", parts):  # pairs, because Gymnasium would sort the keys of a dict
                return gym.spaces.Dict([(key, space_of(part)) for key, part in parts])
            case ("Tuple", parts):
                return gym.spaces.Tuple(map(space_of, parts))
    except (TypeError, ValueError, AssertionError) as error:
        raise ValueError(f"no space has the structure {structure}") from error
    raise ValueError(f"no space has the structure {structure}")


def frozen(body: Any) -> Any:
    """JSON lists as tuples, recursively."""
    return tuple(map(frozen, body)) if isinstance(body, list) else body


def flat_rows(space: gym.Space[Any], observation: Any) -> tuple[np.ndarray, bool] | None:
    """Flat observations, `[row, number]`, and whether a single one was given; None if none fit.

    Args:
        space: The space of one observation. Its bounds are not checked.
        observation: An observation, or a batch as of a vector environment: every array has a
            leading axis over the rows, and a Dict or Tuple holds such arrays.
    """
    match space:
        case gym.spaces.Dict(spaces=spaces):
            if not (isinstance(observation, Mapping) and set(observation) >= set(spaces)):
                return None
            parts = [flat_rows(part, observation[key]) for key, part in spaces.items()]
        case gym.spaces.Tuple(spaces=spaces):
            if not (isinstance(observation, tuple | list) and len(observation) == len(spaces)):
                return None
            parts = [flat_rows(*pair) for pair in zip(spaces, observation, strict=True)]
        case _:
            return _flat_numbers(space, observation)
    found = [part for part in parts if part is not None]
    if len(found) < len(parts) or len({(len(rows), single) for rows, single in found}) != 1:
        return None
    return np.concatenate([rows for rows, _ in found], axis=1), found[0][1]


def number_array(value: Any) -> np.ndarray | None:
    """The value as an array of numbers; None if it is not one."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):  # of lists that are no array
        return None
    return array if array.dtype.kind in "biuf" else None


def _flat_numbers(space: gym.Space[Any], observation: Any) -> tuple[np.ndarray, bool] | None:
    array, shape = number_array(observation), space.shape or ()
    if array is None or shape not in (array.shape, array.shape[1:]):
        return None
    single = array.shape == shape
    rows = array[None] if single else array
    if isinstance(space, gym.spaces.Box):
        return rows.reshape(len(rows), math.prod(shape)), single
    whole = array.dtype.kind in "iu" or isinstance(space, gym.spaces.MultiBinary)
    if not (whole and all(map(space.contains, rows))):
        return None
    flat = [np.asarray(gym.spaces.flatten(space, row)) for row in rows]
    return np.reshape(flat, (len(rows), gym.spaces.flatdim(space))), single
