"""Files that a crash never leaves half written, whose damage is noticed, and that stay in place.

The files of a run are opened by `opened`, which follows no link out of the run's folder.
"""

import contextlib
import errno
import fcntl
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

from rewardshift.errors import InputError

# What a damaged file makes json, NumPy, h5py and zipfile raise, or whoever takes its contents for
# what they should be.
DAMAGE = (
    *(OSError, ValueError, TypeError, LookupError, AttributeError, EOFError, RuntimeError),
    *(MemoryError, OverflowError, zipfile.BadZipFile, zlib.error),
)


LEFTOVER = ".half"  # what a file is called that is not all there yet ends in this
NO_FILE = "a pipe, a device or a folder"
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
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Brings the names in a folder to the disk: without it, a power cut may undo a rename."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system without it
            raise
    finally:
        os.close(handle)


def opened(path: Path, mode: Literal["rb", "ab", "a+b"]) -> BinaryIO:
    """Opens a file of a folder of ours; refuses a link, a pipe or a device in its place.

    A link could lead to a file that is not ours, and a pipe would be waited for.
    """
    return open(path, mode, opener=_open_regular)


def read_own(path: Path) -> bytes:
    """The contents of a file of a folder of ours; see `opened`."""
    with opened(path, "rb") as file:
        return file.read()


def _open_regular(name: str, flags: int) -> int:
    try:
        handle = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if Path(name).is_symlink():
            raise _refusal(name, "a symbolic link") from error
        if Path(name).is_fifo():  # with nobody at its other end
            raise _refusal(name, NO_FILE) from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _refusal(name, NO_FILE)
    return handle


def own_folder(path: Path) -> Path:
    """A folder within a folder of ours, made where it is missing; refuses links."""
    refuse_links(path)
    path.mkdir(exist_ok=True)
    return path


def refuse_links(folder: Path) -> None:
    """Refuses a folder that is a link or holds one; there need not be a folder."""
    inside = folder.iterdir() if folder.is_dir() and not folder.is_symlink() else ()
    for path in (folder, *inside):
        if path.is_symlink():
            raise _refusal(path, "a symbolic link")


def _refusal(path: Path | str, kind: str) -> InputError:
    return InputError(
        f"{str(path)!r} is {kind}, and is left alone: put the file itself there, or delete it"
    )


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
    body = json.loads(read_own(path))
    if body["format"] != version:
        raise ValueError(f"its format is {body['format']!r}, this version reads {version}")
    if body.pop("checksum") != _checksum(body):
        raise ValueError("its checksum does not match")
    return body


def _checksum(body: dict[str, Any]) -> str:
    return sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def arrays_in(file: IO[bytes]) -> Iterator[Any]:
    """The arrays of an npz file, which is closed in any case: NumPy leaves a damaged one open."""
    with file:
        if not zipfile.is_zipfile(file):  # NumPy would take it for a pickle
            raise ValueError("it is no npz file, or cut off; write it with numpy.savez")
        file.seek(0)
        with np.load(file, allow_pickle=False) as arrays:
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
    with opened(folder / LOCK, "a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read().decode(errors="replace") or "before"
            raise InputError(
                f"the folder {str(folder)!r} is in use by the process {holder}:"
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
