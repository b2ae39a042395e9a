"""Writing files so that a crash never leaves half of one behind, and damage is noticed."""

import contextlib
import fcntl
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from rewardshift.errors import InputError

# What a damaged file makes json, NumPy, h5py and zipfile raise, or whoever takes its contents for
# what they should be.
DAMAGE = (
    *(OSError, ValueError, TypeError, LookupError, AttributeError, EOFError, RuntimeError),
    *(MemoryError, OverflowError, zipfile.BadZipFile, zlib.error),
)


LEFTOVER = ".half"  # what a file is called that is not all there yet ends in this
LOCK = ".lock"  # the file by which a folder is held


def write_atomic(path: Path, content: bytes | str) -> None:
    """Replaces `path` by `content`, or leaves it as it was."""
    data = content.encode() if isinstance(content, str) else content
    with naming(path):
        handle, name = tempfile.mkstemp(LEFTOVER, f".{path.name}.", path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())  # mkstemp's files are for the owner alone
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            raise


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Makes errors of the operating system say what they are about: a full disk does not."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_sealed(path: Path, body: dict[str, Any]) -> None:
    """Writes JSON with a checksum over all of it."""
    write_atomic(path, json.dumps({**body, "checksum": _checksum(body)}))


def read_sealed(path: Path, *, version: int) -> dict[str, Any]:
    """What `write_sealed` wrote, with that number as its "format"; ValueError if it is damaged."""
    body = json.loads(path.read_text())
    if body["format"] != version:
        raise ValueError(f"its format is {body['format']!r}, this version reads {version}")
    if body.pop("checksum") != _checksum(body):
        raise ValueError("its checksum does not match")
    return body


def _checksum(body: dict[str, Any]) -> str:
    return sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def opened_npz(path: Path) -> Iterator[Any]:
    """The arrays of an npz file, which is closed in any case: NumPy leaves a damaged one open."""
    if not zipfile.is_zipfile(path):  # NumPy would take it for a pickle
        raise ValueError("it is no npz file, or cut off; write it with numpy.savez")
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        yield arrays


def writable_folder(path: Path) -> Path:
    """The folder, made where it is missing; refused where nothing can be written to it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise InputError(f"cannot write to the folder {str(path)!r}: {error.strerror}") from error
    return path


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Holds a folder for this process; refused while another one does, dead ones do not.

    What a dead one has left half written is cleared away.
    """
    with (folder / LOCK).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise InputError(
                f"the folder {str(folder)!r} is in use by the process {file.read() or 'before'}:"
                " wait until it ends, or choose another folder"
            ) from error
        with naming(folder / LOCK):
            file.truncate(0)
            os.write(file.fileno(), str(os.getpid()).encode())
        for path in folder.rglob(f".*{LEFTOVER}"):
            path.unlink()
        yield


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
