"""Arithmetic on floats and on arrays of NumPy, JAX and torch, which keeps their kind."""

import math
import numbers
from typing import Any

import numpy as np

from rewardshift.errors import InputError, shown


def like(number: Any, value: Any) -> Any:
    """`number` in the floating dtype of `value`, so that adding it changes no dtype."""
    if type(number) in (bool, int, float):  # not isinstance: a np.float64 would widen float32
        return number
    if _is_torch(value):
        floating = value if value.is_floating_point() else value.float()
        return number.to(floating) if _is_torch(number) else floating.new_tensor(number)
    if _is_torch(number) and value is not None and hasattr(value, "dtype"):
        number = as_numpy(number)
    dtype = getattr(value, "dtype", None)
    # NumPy does not know the kind of types such as bfloat16.
    floating = dtype is not None and (dtype.kind == "f" or "float" in dtype.name)
    return number.astype(dtype) if floating else number


# Arrays are told apart by their attributes, because the core imports neither JAX nor torch.
def _is_torch(value: Any) -> bool:
    return hasattr(value, "new_tensor")


def _namespace(value: Any) -> Any:
    """`jax.numpy` for JAX arrays, NumPy for everything else."""
    return value.__array_namespace__() if hasattr(value, "__array_namespace__") else np


def as_numpy(value: Any) -> np.ndarray:
    """Any array as a NumPy array; torch tensors in double precision."""
    return np.asarray(value.detach().double().cpu()) if _is_torch(value) else np.asarray(value)


def where(mask: np.ndarray, this: Any, other: Any) -> Any:
    """`numpy.where` for two arrays of NumPy, JAX or torch, which keeps their kind."""
    if _is_torch(this):
        return this.where(this.new_tensor(mask).bool(), other)
    return _namespace(this).where(mask, this, other)


def as_numbers(name: str, values: Any) -> Any:
    """A number, a list as an array, or an array of any kind; raises InputError for all else."""
    if type(values) is float:
        return values
    try:
        given = np.asarray(values) if isinstance(values, list | tuple) else values
        if hasattr(given, "dtype"):
            if getattr(given.dtype, "kind", "f") not in "USMmc":  # texts, times, complex numbers
                return given
        elif isinstance(given, numbers.Real):
            return float(given)
    except (OverflowError, ValueError):  # a whole number that no float holds; a ragged list
        pass
    raise InputError(f"{name} must be a number or an array of numbers, got {shown(values)}")


def log(gamma: Any) -> Any:
    """The logarithm, with minus infinity at 0."""
    if isinstance(gamma, float):
        return math.log(gamma) if gamma > 0 else -math.inf
    if _is_torch(gamma):
        return gamma.log()
    with np.errstate(divide="ignore"):  # log(0)
        return _namespace(gamma).log(gamma)


def expm1(value: Any) -> Any:
    """`exp(value) - 1`, exact for small values."""
    return value.expm1() if _is_torch(value) else _namespace(value).expm1(value)


def check_shape(name: str, value: Any, of: str, rewards: Any) -> None:
    """Refuses a value, called `name`, that would broadcast the rewards, called `of`."""
    shape, given = tuple(np.shape(rewards)), tuple(np.shape(value))
    try:
        fits = np.broadcast_shapes(shape, given) == shape
    except ValueError:
        fits = False
    if not fits:
        raise InputError(
            f"{name} must have the shape of {of}, {shape}, or be one value, got the shape {given}"
        )
