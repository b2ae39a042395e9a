"""Arithmetic on floats, NumPy, JAX and torch alike: what comes in is what comes out."""

import math
from typing import Any

import numpy as np


def affine(scale: Any, offset: Any, value: Any) -> Any:
    """`scale * value + offset`, in the floating dtype of `value`."""
    return like(scale, value) * value + like(offset, value)


def like(number: Any, value: Any) -> Any:
    """`number` in the floating dtype of `value`, so that adding it changes no dtype."""
    if type(number) in (bool, int, float):  # exactly: a np.float64 is a float, but a wide one
        return number
    if _is_torch(value):
        floating = value if value.is_floating_point() else value.float()
        return number.to(floating) if _is_torch(number) else floating.new_tensor(number)
    if _is_torch(number) and value is not None and hasattr(value, "dtype"):
        number = as_numpy(number)
    dtype = getattr(value, "dtype", None)
    return number if dtype is None or not _is_floating(dtype) else number.astype(dtype)


# Arrays are told apart by what they can do, because the core imports neither JAX nor torch.
def _is_torch(value: Any) -> bool:
    return hasattr(value, "new_tensor")


def _namespace(value: Any) -> Any:
    """`jax.numpy` for JAX's arrays, NumPy for everything else."""
    return value.__array_namespace__() if hasattr(value, "__array_namespace__") else np


def _is_floating(dtype: Any) -> bool:
    # NumPy does not know the kind of bfloat16 and its like.
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)


def as_numpy(value: Any) -> np.ndarray:
    """Any array as NumPy's; torch's in double precision."""
    return np.asarray(value.detach().double().cpu()) if _is_torch(value) else np.asarray(value)


def where(mask: np.ndarray, this: Any, other: Any) -> Any:
    """As `numpy.where`, for two arrays that stay JAX's or torch's if they are."""
    if _is_torch(this):
        return this.where(this.new_tensor(mask).bool(), other)
    return _namespace(this).where(mask, this, other)


def from_list(values: Any) -> Any:
    """A list of numbers or flags as an array; everything else as it is."""
    return np.asarray(values) if isinstance(values, list | tuple) else values


def log(gamma: Any) -> Any:
    """The logarithm; that of 0 is minus infinity."""
    if isinstance(gamma, float):
        return math.log(gamma) if gamma > 0 else -math.inf
    if _is_torch(gamma):
        return gamma.log()
    with np.errstate(divide="ignore"):  # of 0
        return _namespace(gamma).log(gamma)


def expm1(value: Any) -> Any:
    """`exp(value) - 1`, exact where the value is small."""
    return value.expm1() if _is_torch(value) else _namespace(value).expm1(value)
