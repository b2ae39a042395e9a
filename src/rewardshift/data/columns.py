"""The columns of a data set's file, converted to our types and checked row by row.

Every function takes the place of the values and their name there, for error messages. Bad values
are found here, while the row numbers are still those of the file.
"""

import numpy as np
from jaxtyping import Bool, Float32, Num

from rewardshift.errors import InputError


def observation_column(values: np.ndarray, where: str, key: str) -> Num[np.ndarray, "n features"]:
    """Observations: bytes stay bytes, everything else becomes float32."""
    _check(values, where, key, axes=2)
    if values.shape[1] == 0:
        raise InputError(f"{where}: {key!r} has rows without a number in them")
    return values if values.dtype == np.uint8 else _as_float32(values, where, key)


def action_column(values: np.ndarray, where: str, key: str) -> Num[np.ndarray, "n *size"]:
    """Actions: whole numbers become int32 and have one axis, others float32 and have two."""
    if values.dtype.kind == "f":
        _check(values, where, key, axes=2)
        return _as_float32(values, where, key)
    _check(values, where, key, axes=1)
    odd = np.flatnonzero((values < 0) | (values > np.iinfo(np.int32).max))
    if odd.size:
        raise InputError(
            f"{where}: {key!r} has {values[odd[0]]} in row {odd[0]}; discrete actions are numbered"
            " from 0 on"
        )
    return values.astype(np.int32)


def reward_column(values: np.ndarray, where: str, key: str) -> Float32[np.ndarray, " n"]:
    """Rewards, one for each row."""
    return _as_float32(_single(values, where, key), where, key)


def flag_column(values: np.ndarray, where: str, key: str) -> Bool[np.ndarray, " n"]:
    """Flags, True or False, or 1 or 0, for each row."""
    flags = _single(values, where, key)
    odd = np.flatnonzero((flags != 0) & (flags != 1))
    if odd.size:
        raise InputError(f"{where}: {key!r} has {flags[odd[0]]} in row {odd[0]}, not 0 or 1")
    return flags.astype(bool)


def _single(values: np.ndarray, where: str, key: str) -> np.ndarray:
    """One number for each row; some D4RL files hold them with a second axis of length 1."""
    column = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    _check(column, where, key, axes=1)
    return column


def _check(values: np.ndarray, where: str, key: str, axes: int) -> None:
    if values.dtype.kind not in "biuf":
        raise InputError(f"{where}: {key!r} holds {values.dtype} values, not numbers")
    if values.ndim != axes:
        wanted = "one number" if axes == 1 else "one list of numbers"
        raise InputError(
            f"{where}: {key!r} has the shape {values.shape}, but needs {wanted} for each row"
        )


def _as_float32(values: np.ndarray, where: str, key: str) -> np.ndarray:
    with np.errstate(over="ignore"):  # values that are too large become infinite, and are refused
        floats = values.astype(np.float32)
    odd = np.argwhere(~np.isfinite(floats))
    if odd.size:
        raise InputError(
            f"{where}: {key!r} has {values[tuple(odd[0])]} in row {odd[0][0]}, which is not a"
            " finite 32-bit number"
        )
    return floats
