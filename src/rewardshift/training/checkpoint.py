"""Checkpoints: everything that a run needs to continue as if it had never stopped.

There are three kinds of files, none of them a pickle. `state-STEP.npz` holds the arrays,
`segment-FROM-TO.npy` the transitions collected between two checkpoints, and
`checkpoint-STEP.json`, written last, names the others with their checksums: without it, or
with one of them damaged, there is no checkpoint. No transition is written twice, so a
checkpoint writes only the new ones. The last two checkpoints are kept.

An array is stored under its path in its tree, and checked by path, shape and type when it is read.
"""

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rewardshift.checks import Natural, checked
from rewardshift.errors import InputError, one_line, shown
from rewardshift.files import (
    DAMAGE,
    arrays_in,
    as_object,
    own_folder,
    read_array,
    read_arrays,
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
    """The contents of a checkpoint.

    Args:
        step: The number of steps done.
        config: The digest of the run's configuration.
        arrays: A tree of arrays.
        notes: The part that is stored as JSON: the rows of the metrics.
        records: The transitions in the replay, oldest first, by row; None for a run without a
            replay.
        segments: The files that hold the transitions, with their checksums.
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
        checkpoint: The checkpoint; its `records` are ignored.
        new_records: The transitions since the previous checkpoint, if the run has a replay.
        capacity: The capacity of the replay: segments that have left it are deleted.

    Returns:
        The segments that hold the replay now.
    """
    own_folder(folder)
    step = checkpoint.step
    segments = {s: d for s, d in checkpoint.segments.items() if _stop(s) > step - capacity}
    if new_records is not None:
        name = f"segment-{step - new_records.shape[1]:012d}-{step:012d}.npy"
        buffer = io.BytesIO()
        np.save(buffer, np.ascontiguousarray(new_records).view(np.uint8), allow_pickle=False)
        segments[name] = _write(folder / name, buffer.getvalue())
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


def kept_checkpoints(folder: Path) -> list[Path]:
    """The manifests of the checkpoints in a folder, oldest first."""
    return sorted(folder.glob("checkpoint-*.json"))


def load_checkpoint(
    folder: Path, configs: tuple[str, ...], template: Any, record: np.dtype[np.void] | None
) -> Checkpoint | None:
    """The newest checkpoint, with all checksums verified, or None if there is none.

    Args:
        folder: The folder of the run's checkpoints.
        configs: The digests of the configurations that the checkpoint may have.
        template: A tree of arrays with the paths, shapes and dtypes that the checkpoint must have.
        record: The layout of a transition, if the run has a replay.
    """
    refuse_links(folder)
    manifests = kept_checkpoints(folder)
    if not manifests:
        return None
    *before, path = manifests
    try:
        return _read(path, configs, template, record)
    except DAMAGE as error:
        whole = before and _is_whole(before[-1], configs, template, record)
        hint = (
            f"; the one before it is whole: to go on from there, move {path.name} out of the folder"
        )
        raise _refusal(path, error, hint if whole else "") from error


def read_agents(folder: Path, configs: tuple[str, ...], template: Any) -> list[tuple[int, Any]]:
    """The agent's states in all kept checkpoints, each with its step, oldest first.

    Args:
        folder: The folder of the run's checkpoints.
        configs: The digests of the configurations that a checkpoint may have.
        template: A state of the agent, with a leading axis over the seeds.
    """
    refuse_links(folder)
    found = []
    for path in kept_checkpoints(folder):
        try:
            body = _manifest(path, configs)
            content = _read_whole(folder / _state(body["step"]), body["state"])
            with arrays_in(io.BytesIO(content)) as arrays:
                mine = [name for name in arrays.files if name.startswith(leaf_name("agent"))]
                leaves = {name: arrays[name] for name in mine}
            found.append((body["step"], fill({"agent": template}, leaves)["agent"]))
        except DAMAGE as error:
            raise _refusal(path, error) from error
    return found


def read_segments(
    folder: Path, configs: tuple[str, ...], record: np.dtype[np.void], rows: int
) -> Iterator[np.ndarray]:
    """The transitions in the newest checkpoint, part by part, oldest first, by row.

    Args:
        folder: The folder of the run's checkpoints.
        configs: The digests of the configurations that the checkpoint may have.
        record: The layout of a transition.
        rows: The number of rows, one for each seed.
    """
    refuse_links(folder)
    for path in kept_checkpoints(folder)[-1:]:
        try:
            for segment, digest in _segments(folder, _manifest(path, configs)).items():
                part = read_array(_read_whole(segment, digest))
                if part.ndim != 2 or len(part) != rows:
                    raise ValueError(f"{segment.name} has the shape {part.shape}")
                yield part.view(record)
        except DAMAGE as error:
            raise _refusal(path, error) from error


def _refusal(path: Path, error: Exception, hint: str = "") -> InputError:
    return InputError(f"the checkpoint {str(path)!r} cannot be used: {one_line(error)}{hint}")


def _manifest(path: Path, configs: tuple[str, ...]) -> dict[str, Any]:
    body = read_sealed(path, version=FORMAT)
    if body["config"] not in configs:
        raise ValueError("it belongs to a run with another configuration")
    checked("step", Natural, body["step"])
    return body


def _segments(folder: Path, body: dict[str, Any]) -> dict[Path, str]:
    """The files of the transitions, with their checksums."""
    segments = as_object(body["segments"])
    for name in segments:
        if not re.fullmatch(r"segment-\d+-\d+\.npy", name):
            raise ValueError(f"it names a file of another folder or kind, {shown(name)}")
    return {folder / name: digest for name, digest in segments.items()}


def _read(
    path: Path, configs: tuple[str, ...], template: Any, record: np.dtype[np.void] | None
) -> Checkpoint:
    folder, body = path.parent, _manifest(path, configs)
    state = folder / _state(body["step"])
    arrays = fill(template, read_arrays(_read_whole(state, body["state"])))
    parts = [
        read_array(_read_whole(segment, digest))
        for segment, digest in _segments(folder, body).items()
    ]
    records = None if record is None else np.concatenate(parts, axis=1).view(record)
    notes = as_object(body["notes"])
    return Checkpoint(body["step"], body["config"], arrays, notes, records, body["segments"])


def _read_whole(path: Path, digest: str) -> bytes:
    """The contents of a file; ValueError if they have another checksum."""
    content = read_own(path)
    if sha256(content).hexdigest() != digest:
        raise ValueError(f"{path.name} has another checksum")
    return content


def _is_whole(
    path: Path, configs: tuple[str, ...], template: Any, record: np.dtype[np.void] | None
) -> bool:
    try:
        _read(path, configs, template, record)
    except DAMAGE:
        return False
    return True


def _state(step: int) -> str:
    return f"state-{step:012d}.npz"


def _stop(segment: str) -> int:
    return int(segment.removesuffix(".npy").rsplit("-", 1)[1])


def _delete_old(folder: Path) -> None:
    """Deletes old checkpoints and every file that no kept checkpoint names."""
    manifests = kept_checkpoints(folder)
    for path in manifests[:-KEPT]:
        path.unlink()
    kept = [json.loads(read_own(path)) for path in manifests[-KEPT:]]
    needed = {name for body in kept for name in (_state(body["step"]), *body["segments"])}
    for path in (*folder.glob("state-*.npz"), *folder.glob("segment-*.npy")):
        if path.name not in needed:
            path.unlink()


def _write(path: Path, content: bytes) -> str:
    """Writes a file and returns its checksum."""
    write_atomic(path, content)
    return sha256(content).hexdigest()


def npz_bytes(tree: Any) -> bytes:
    """A tree of arrays as an npz file, with each array under its path."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **_leaves(tree))
    return buffer.getvalue()


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
