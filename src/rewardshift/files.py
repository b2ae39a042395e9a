"""Atomic writes, checksums and locks for files.

The files of a run are opened by `opened`, which follows no link out of the run's folder.
"""

import contextlib
import csv
import errno
import fcntl
import io
import json
import os
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal

import numpy as np

from rewardshift.errors import InputError, shown

# What the readers of JSON, CSV and npz files raise for a damaged or a missing file. Neither errors
# of the disk and of a lack of memory, nor those that a mistake of ours would cause.
DAMAGE = (
    *(FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError),
    *(ValueError, KeyError, EOFError, RecursionError, csv.Error),
    *(zipfile.BadZipFile, NotImplementedError, zlib.error),  # the second is zipfile's, too
)
LEFTOVER = ".half"  # suffix of partially written files
NO_FILE = "a pipe, a device or a folder"
LOCK = ".lock"  # name of the file whose lock holds a folder


def as_path(name: str, path: Any) -> Path:
    """The path; raises InputError with its name if it is not a text or a path."""
    if isinstance(path, str | Path) and "\0" not in str(path):
        return Path(path)
    raise InputError(f"{name} must be a path, got {shown(path)}")


def write_atomic(path: Path, content: bytes | str) -> None:
    """Replaces the contents of a file, completely or not at all."""
    data = content.encode() if isinstance(content, str) else content
    with naming(path):
        handle, name = tempfile.mkstemp(LEFTOVER, f".{path.name}.", path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.umask(mask := os.umask(0))
            os.chmod(name, 0o666 & ~mask)  # mkstemp's files are for the owner alone
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            raise
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Writes the names in a folder to the disk: without it, a power cut may undo a rename."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # not supported by the file system
            raise
    finally:
        os.close(handle)


def opened(path: Path, mode: Literal["rb", "ab", "a+b"]) -> BinaryIO:
    """Opens a file in one of our folders; refuses a link, a pipe or a device in its place.

    A link could lead to a foreign file, and opening a pipe could block.
    """
    return open(path, mode, opener=_open_regular)


def read_own(path: Path) -> bytes:
    """The contents of a file in one of our folders; see `opened`."""
    with opened(path, "rb") as file:
        return file.read()


def _open_regular(name: str, flags: int) -> int:
    try:
        handle = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if Path(name).is_symlink():
            raise _refusal(Path(name), "a symbolic link") from error
        if Path(name).is_fifo():  # with no process at its other end
            raise _refusal(Path(name), NO_FILE) from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _refusal(Path(name), NO_FILE)
    return handle


def own_folder(path: Path) -> Path:
    """A folder within one of our folders, created if it is missing; refuses links."""
    refuse_links(path)
    path.mkdir(exist_ok=True)
    return path


def refuse_links(folder: Path) -> None:
    """Refuses a folder that is a link or holds one; accepts a missing folder."""
    inside = folder.iterdir() if folder.is_dir() and not folder.is_symlink() else ()
    for path in (folder, *inside):
        if path.is_symlink():
            raise _refusal(path, "a symbolic link")


def _refusal(path: Path, kind: str) -> InputError:
    return InputError(
        f"{str(path)!r} is {kind}, and is left alone: put the file itself there, or delete it"
    )


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Adds the path to errors of the operating system; the error of a full disk lacks it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_sealed(path: Path, body: dict[str, Any]) -> None:
    """Writes JSON with a checksum over all of it."""
    write_atomic(path, json.dumps({**body, "checksum": _checksum(body)}))


def read_sealed(path: Path, *, version: int) -> dict[str, Any]:
    """The body that `write_sealed` wrote, of this "format"; ValueError if it is damaged."""
    body = read_json(path, version=version)
    if body.pop("checksum") != _checksum(body):
        raise ValueError("its checksum does not match")
    return body


def read_json(path: Path, *, version: int | None = None) -> dict[str, Any]:
    """The object in a JSON file of ours; ValueError if it is another value or of another format."""
    body = as_object(json.loads(read_own(path)))
    if version is not None and body["format"] != version:
        raise ValueError(f"its format is {shown(body['format'])}, this version reads {version}")
    return body


def as_object(body: Any) -> dict[str, Any]:
    """The JSON value; raises ValueError if it is not an object."""
    if not isinstance(body, dict):
        raise ValueError(f"it must hold a JSON object, got {shown(body)}")
    return body


def _checksum(body: dict[str, Any]) -> str:
    return sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def arrays_in(file: IO[bytes]) -> Iterator[Any]:
    """The arrays of an npz file. It always closes the file; NumPy leaves a damaged one open."""
    with file:
        if not zipfile.is_zipfile(file):  # NumPy would take it for a pickle
            raise ValueError("it is no npz file, or cut off; write it with numpy.savez")
        # Checked first: NumPy would reserve the memory that a damaged header asks for.
        with zipfile.ZipFile(file) as archive:
            try:
                damaged = archive.testzip()
            except RuntimeError as error:  # it is encrypted
                raise ValueError(str(error)) from error
        if damaged is not None:
            raise ValueError(f"{shown(damaged)} is damaged")
        file.seek(0)
        with np.load(file, allow_pickle=False) as arrays:
            yield arrays


def read_array(content: bytes) -> np.ndarray:
    """The array of an npy file in memory."""
    return np.asarray(np.load(io.BytesIO(content), allow_pickle=False))


def read_arrays(content: bytes) -> dict[str, np.ndarray]:
    """All arrays of an npz file in memory."""
    with arrays_in(io.BytesIO(content)) as arrays:
        return dict(arrays)


def writable_folder(path: Path) -> Path:
    """The folder, created if it is missing; refused if it is not writable."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise InputError(f"cannot write to the folder {str(path)!r}: {error.strerror}") from error
    return path


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Holds a folder for this process; refused while another living process holds it.

    It removes the partially written files of dead processes.
    """
    with opened(folder / LOCK, "a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read().decode(errors="replace")
            who = f"the process {holder}" if holder else "another process"
            raise InputError(
                f"the folder {str(folder)!r} is in use by {who}:"
                " wait until it ends, or choose another folder"
            ) from error
        with naming(folder / LOCK):
            file.truncate(0)
            os.write(file.fileno(), str(os.getpid()).encode())
        for path in folder.rglob(f".*{LEFTOVER}"):
            path.unlink()
        try:
            yield
        finally:
            file.truncate(0)
