"""Trees of arrays in npz files: every leaf is stored under its path and checked when read."""

import io
from typing import IO, Any

import jax
import jax.numpy as jnp
import numpy as np

from rewardshift.files import arrays_in


def npz_bytes(tree: Any) -> bytes:
    """A tree of arrays as an npz file, with each array under its path."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **_leaves(tree))
    return buffer.getvalue()


def read_npz(file: IO[bytes], template: Any) -> Any:
    """A tree like the template, from a file of `npz_bytes`."""
    with arrays_in(file) as arrays:
        return fill(template, dict(arrays))


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
