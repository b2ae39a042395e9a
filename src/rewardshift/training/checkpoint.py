"""Checkpoints: everything that a run needs to continue as if it had never stopped.

There are three kinds of files, none of them a pickle. `state-STEP.npz` holds the arrays,
`segment-FROM-TO.npy` the transitions collected between two checkpoints, and
`checkpoint-STEP.json`, written last, names the others with their checksums: without it, or
with one of them damaged, there is no checkpoint. No transition is written twice, so a
checkpoint writes only the new ones. The last two checkpoints are kept.

An array is stored under its path in its tree, and checked by path, shape and type when it is read.
"""

import contextlib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rewardshift.errors import InputError, one_line, shown
from rewardshift.files import (
    DAMAGE,
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


class Snapshot(NamedTuple):
    """Everything that a training needs to go on from a step.

    `arrays` is a tree of arrays, with the same paths, shapes and dtypes at every checkpoint.
    `notes` can be stored as JSON: the rows of the metrics. `records` are transitions of the replay,
    oldest first, by row, if there is one: those since the previous checkpoint where a snapshot is
    saved, all of them where it is loaded.
    """

    step: int
    arrays: Any
    notes: dict[str, Any]
    records: np.ndarray | None = None


@dataclass
class Checkpoints:
    """The checkpoints of a run, in a folder of their own.

    Args:
        folder: The folder.
        configs: The digests of the configurations that a checkpoint may have; a new one has the
            first.
        record: The layout of a transition, if the run has a replay.
        rows: The number of rows of the replay.
        segments: The files that hold the replay now, with their checksums; `newest` reads them.
    """

    folder: Path
    configs: tuple[str, ...]
    record: np.dtype[np.void] | None = None
    rows: int = 0
    segments: dict[str, str] = field(default_factory=dict)

    def save(self, snapshot: Snapshot, capacity: int) -> None:
        """Writes a checkpoint.

        Args:
            snapshot: The training now.
            capacity: The capacity of the replay: segments that have left it are deleted.
        """
        own_folder(self.folder)
        step = snapshot.step
        segments = {s: d for s, d in self.segments.items() if _last_step(s) > step - capacity}
        if snapshot.records is not None:
            name = f"segment-{step - snapshot.records.shape[1]:012d}-{step:012d}.npy"
            buffer = io.BytesIO()
            words = np.ascontiguousarray(snapshot.records).view(np.uint8)
            np.save(buffer, words, allow_pickle=False)
            segments[name] = _write(self.folder / name, buffer.getvalue())
        state = _write(self.folder / _state_file(step), npz_bytes(snapshot.arrays))
        body = {
            "format": FORMAT,
            "step": step,
            "config": self.configs[0],
            "notes": snapshot.notes,
            "state": state,
            "segments": segments,
        }
        write_sealed(self.folder / f"checkpoint-{step:012d}.json", body)
        self.segments = segments
        self._delete_old()

    def _delete_old(self) -> None:
        """Deletes old checkpoints and every file that no kept checkpoint names."""
        manifests = kept_checkpoints(self.folder)
        for path in manifests[:-KEPT]:
            path.unlink()
        kept = [json.loads(read_own(path)) for path in manifests[-KEPT:]]
        needed = {name for body in kept for name in (_state_file(body["step"]), *body["segments"])}
        for path in (*self.folder.glob("state-*.npz"), *self.folder.glob("segment-*.npy")):
            if path.name not in needed:
                path.unlink()

    def newest(self, template: Any) -> Snapshot | None:
        """The newest checkpoint, with all checksums verified, or None if there is none.

        Args:
            template: A tree of arrays with the paths, shapes and dtypes of the checkpoint's.
        """
        manifests = kept_checkpoints(self.folder)
        if not manifests:
            return None
        *before, path = manifests
        hint = f"; to go on from the one before it, move {path.name} out of the folder"
        with _refusing(path, hint if before else ""):
            body = self._manifest(path)
            arrays, self.segments = fill(template, self._arrays(body)), body["segments"]
            parts = None if self.record is None else list(self._parts(body))
            records = None if parts is None else np.concatenate(parts, axis=1)
            return Snapshot(body["step"], arrays, body["notes"], records)

    def agents(self, template: Any) -> list[tuple[int, Any]]:
        """The agent's states in all kept checkpoints, each with its step, oldest first.

        Args:
            template: A state of the agent, with a leading axis over the seeds; only its shapes
                count.
        """
        found = []
        for path in kept_checkpoints(self.folder):
            with _refusing(path):
                body = self._manifest(path)
                arrays = self._arrays(body).items()
                mine = {name: leaf for name, leaf in arrays if name.startswith("['agent']")}
                found.append((body["step"], fill({"agent": template}, mine)["agent"]))
        return found

    def transitions(self) -> Iterator[np.ndarray]:
        """The transitions in the newest checkpoint, part by part, oldest first, by row."""
        for path in kept_checkpoints(self.folder)[-1:]:
            with _refusing(path):
                yield from self._parts(self._manifest(path))

    def _manifest(self, path: Path) -> dict[str, Any]:
        body = read_sealed(path, version=FORMAT)
        if body["config"] not in self.configs:
            raise ValueError("it belongs to a run with another configuration")
        for name in ("notes", "segments"):
            as_object(body[name])
        return body

    def _arrays(self, body: dict[str, Any]) -> dict[str, np.ndarray]:
        return read_arrays(self._read_whole(_state_file(body["step"]), body["state"]))

    def _parts(self, body: dict[str, Any]) -> Iterator[np.ndarray]:
        """The transitions of a checkpoint, as in `transitions`."""
        assert self.record is not None
        for name, digest in body["segments"].items():
            if not re.fullmatch(r"segment-\d+-\d+\.npy", name):
                raise ValueError(f"it names a file of another folder or kind, {shown(name)}")
            part = read_array(self._read_whole(name, digest))
            if part.ndim != 2 or len(part) != self.rows:
                raise ValueError(f"{name} has the shape {part.shape}")
            yield part.view(self.record)

    def _read_whole(self, name: str, digest: str) -> bytes:
        """The contents of a file; ValueError if they have another checksum."""
        content = read_own(self.folder / name)
        if sha256(content).hexdigest() != digest:
            raise ValueError(f"{name} has another checksum")
        return content


def kept_checkpoints(folder: Path) -> list[Path]:
    """The manifests of the checkpoints in a folder, oldest first; refuses links."""
    refuse_links(folder)
    return sorted(folder.glob("checkpoint-*.json"))


@contextlib.contextmanager
def _refusing(path: Path, hint: str = "") -> Iterator[None]:
    """Refuses a damaged checkpoint by its name."""
    try:
        yield
    except DAMAGE as error:
        raise InputError(
            f"the checkpoint {str(path)!r} cannot be used: {one_line(error)}{hint}"
        ) from error


def _state_file(step: int) -> str:
    return f"state-{step:012d}.npz"


def _last_step(segment: str) -> int:
    return int(segment.removesuffix(".npy").rsplit("-", 1)[1])


def _write(path: Path, content: bytes) -> str:
    """Writes a file and returns its checksum."""
    write_atomic(path, content)
    return sha256(content).hexdigest()


def npz_bytes(tree: Any) -> bytes:
    """A tree of arrays as an npz file, with each array under its path."""
    buffer = io.BytesIO()
    arrays = {path: np.asarray(leaf) for path, leaf in _leaves(tree).items()}
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _leaves(tree: Any) -> dict[str, Any]:
    return {
        jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }


def fill(template: Any, leaves: dict[str, np.ndarray]) -> Any:
    """The template's tree with these leaves; raises ValueError if one does not fit.

    Args:
        template: A tree of arrays, or of their shapes. Where it has an array on the device, the
            result has one, too; all others are on the host.
        leaves: The arrays by path.
    """
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
    filled = [
        jnp.asarray(leaves[path]) if isinstance(like, jax.Array) else leaves[path]
        for path, like in wanted.items()
    ]
    return jax.tree.unflatten(jax.tree.structure(template), filled)
