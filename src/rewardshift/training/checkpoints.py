"""Checkpoints: everything a run needs to go on as if nothing had happened.

Three kinds of files, none of them a pickle. `state-STEP.npz` holds the arrays,
`segment-FROM-TO.npy` the transitions collected between two checkpoints, and
`checkpoint-STEP.json`, written last, names the others with their checksums: without it, or
with one of them damaged, there is no checkpoint. The transitions are never written twice, so
a checkpoint costs what is new. The last two checkpoints are kept.
"""

import io
import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import jax
import jax.numpy as jnp
import numpy as np

from rewardshift.errors import InputError, one_line
from rewardshift.files import (
    DAMAGE,
    arrays_in,
    own_folder,
    read_own,
    read_sealed,
    refuse_links,
    write_atomic,
    write_sealed,
)

FORMAT = 3
KEPT = 2


@dataclass(frozen=True)
class Checkpoint:
    """What is kept of a run.

    Args:
        step: How far the run is.
        config: The digest of the run's configuration.
        arrays: A tree of arrays.
        notes: What fits into JSON: the rows of the metrics.
        records: The transitions that are still in the replay, oldest first, by row; None for a
            run without one.
        segments: The files that hold them, with their checksums.
    """

    step: int
    config: str
    arrays: Any
    notes: dict[str, Any]
    records: np.ndarray | None
    segments: dict[str, str]


def save_checkpoint(
    folder: Path, checkpoint: Checkpoint, new_records: np.ndarray | None, capacity: int
) -> dict[str, str]:
    """Writes a checkpoint.

    Args:
        folder: The folder of the run's checkpoints.
        checkpoint: Its `records` are not looked at.
        new_records: The transitions since the one before, if the run has a replay.
        capacity: The capacity of the replay: segments that have left it are deleted.

    Returns:
        The segments that hold the replay now.
    """
    own_folder(folder)
    step = checkpoint.step
    segments = {s: d for s, d in checkpoint.segments.items() if _stop(s) > step - capacity}
    if new_records is not None:
        name = f"segment-{step - new_records.shape[1]:012d}-{step:012d}.npy"
        content = np.ascontiguousarray(new_records).view(np.uint8)
        segments[name] = _write(folder / name, _npy(content))
    state = _write(folder / _state(step), npz_bytes(checkpoint.arrays))
    body = {
        "format": FORMAT,
        "step": step,
        "config": checkpoint.config,
        "notes": checkpoint.notes,
        "state": state,
        "segments": segments,
    }
    write_sealed(folder / f"checkpoint-{step:012d}.json", body)
    _delete_old(folder)
    return segments


def load_checkpoint(
    folder: Path, config: str, template: Any, record: np.dtype[np.void] | None
) -> Checkpoint | None:
    """The newest checkpoint, checked to the last byte, or None if there is none.

    Args:
        folder: The folder of the run's checkpoints.
        config: The digest of the configuration that it must be of.
        template: A tree of arrays: the checkpoint's must have these paths, shapes and dtypes.
        record: The layout of a transition, if the run has a replay.
    """
    refuse_links(folder)
    manifests = sorted(folder.glob("checkpoint-*.json"))
    if not manifests:
        return None
    *before, path = manifests
    try:
        return _read(path, config, template, record)
    except DAMAGE as error:
        problem = f"the checkpoint {str(path)!r} cannot be used: {one_line(error)}"
        if before and _is_whole(before[-1], config, template, record):
            problem += f"; the one before it is whole: delete {path.name} to go on from there"
        raise InputError(problem) from error


def _read(path: Path, config: str, template: Any, record: np.dtype[np.void] | None) -> Checkpoint:
    folder = path.parent
    body = read_sealed(path, version=FORMAT)
    if body["config"] != config:
        raise ValueError("it is of a run with another configuration")
    state = folder / _state(body["step"])
    arrays = read_npz(_read_whole(state, body["state"]), template)
    segments = {folder / name: digest for name, digest in body["segments"].items()}
    if any(path.parent != folder or path.name == ".." for path in segments):
        raise ValueError("it names a file of another folder")
    parts = [
        np.load(_read_whole(path, digest), allow_pickle=False) for path, digest in segments.items()
    ]
    records = None if record is None else np.concatenate(parts, axis=1).view(record)
    return Checkpoint(body["step"], config, arrays, body["notes"], records, body["segments"])


def _read_whole(path: Path, digest: str) -> io.BytesIO:
    """A file with that checksum."""
    content = read_own(path)
    if sha256(content).hexdigest() != digest:
        raise ValueError(f"{path.name} has another checksum")
    return io.BytesIO(content)


def _is_whole(path: Path, config: str, template: Any, record: np.dtype[np.void] | None) -> bool:
    try:
        _read(path, config, template, record)
    except DAMAGE:
        return False
    return True


def npz_bytes(tree: Any) -> bytes:
    """A tree of arrays as an npz file, each under its path."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **_leaves(tree))
    return buffer.getvalue()


def read_npz(file: IO[bytes], template: Any) -> Any:
    """A tree like the template, from a file of `npz_bytes`."""
    with arrays_in(file) as arrays:
        return _fill(template, dict(arrays))


def _leaves(tree: Any) -> dict[str, np.ndarray]:
    return {
        jax.tree_util.keystr(path): np.asarray(leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }


def _fill(template: Any, leaves: dict[str, np.ndarray]) -> Any:
    """The template's tree with these leaves, after a check of every one."""
    wanted = _leaves(template)
    if set(wanted) != set(leaves):
        odd = sorted(set(wanted) ^ set(leaves))[0]
        raise ValueError(f"the array {odd!r} is only on one side")
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
    """On the device where the template's leaf is on it, else on the host."""
    return jnp.asarray(leaf) if isinstance(like, jax.Array) else leaf


def _state(step: int) -> str:
    return f"state-{step:012d}.npz"


def _stop(segment: str) -> int:
    return int(segment.removesuffix(".npy").rsplit("-", 1)[1])


def _delete_old(folder: Path) -> None:
    """Keeps the last checkpoints and what they name; also what a killed run left goes."""
    manifests = sorted(folder.glob("checkpoint-*.json"))
    for path in manifests[:-KEPT]:
        path.unlink()
    kept = [json.loads(read_own(path)) for path in manifests[-KEPT:]]
    needed = {name for body in kept for name in (_state(body["step"]), *body["segments"])}
    for path in (*folder.glob("state-*.npz"), *folder.glob("segment-*.npy")):
        if path.name not in needed:
            path.unlink()


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _write(path: Path, content: bytes) -> str:
    """Writes a file; its checksum."""
    write_atomic(path, content)
    return sha256(content).hexdigest()
