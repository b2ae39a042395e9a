"""Commands in processes of their own that are killed, or run out of disk, where it hurts.

The processes are forks of one that has imported everything and computed nothing: JAX takes longer
to import than these runs last, and once it has computed it does not survive a fork.
"""

import io
import itertools
import multiprocessing
import os
import resource
import select
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, NamedTuple

FORKS = multiprocessing.get_context("forkserver")
LIBRARIES = ("pytest", "tensorboardX", "minari", "hypothesis")
OURS = ("cli", "training.runs", "training.offline", "lab", "paper", "report")
FORKS.set_forkserver_preload([*LIBRARIES, *(f"rewardshift.{name}" for name in OURS)])

KILLED = -signal.SIGKILL
PATIENCE = 200  # seconds; where a process says nothing for so long, it hangs
ROOM = 20  # bytes that a file may have where the disk is full: a process id fits, nothing else


@dataclass(frozen=True)
class Fault:
    """What happens to a process at one of its files.

    Args:
        moment: SIGKILL when a file is half written, when it is all there but for its name, when it
            has just got that, or when it has just been deleted. Or "full": no room on the disk
            for another one.
        number: Of that file, the first being 1. A disk may be full from file 0 on.
    """

    moment: Literal["half", "written", "renamed", "deleted", "full"]
    number: int

    def arm(self) -> None:
        """Lies in wait, in the process that it shall happen to."""
        library: Any = os
        match self.moment:
            case "half":
                library.fdopen = self._once(Half, os.fdopen)
            case "written":
                library.replace = self._once(_die, os.replace)
            case "renamed":
                library.replace = self._once(_both(os.replace, _die), os.replace)
            case "deleted":
                library.unlink = self._once(_both(os.unlink, _die), os.unlink)
            case "full" if self.number == 0:
                _fill()
            case "full":
                library.replace = self._once(_both(os.replace, _fill), os.replace)

    def _once(self, this: Callable[..., Any], usual: Callable[..., Any]) -> Callable[..., Any]:
        count = itertools.count(1)

        def call(*given: Any) -> Any:
            return (this if next(count) == self.number else usual)(*given)

        return call


class Half(io.BufferedWriter):
    """A file of which half is written when the process dies."""

    def __init__(self, handle: int, mode: str) -> None:
        super().__init__(io.FileIO(handle, mode))

    def write(self, data: Any) -> int:
        super().write(data[: len(data) // 2])
        self.flush()
        _die()
        return 0


def _both(first: Callable[..., Any], then: Callable[..., Any]) -> Callable[..., Any]:
    def call(*given: Any) -> None:
        first(*given)
        then(*given)

    return call


def _die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _fill(*_: Any) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, resource.RLIM_INFINITY))


class End(NamedTuple):
    """How a process ended: its exit code, negative for a signal, and what it said."""

    code: int
    said: str


class Victim:
    """A function in a process, and a process group, of its own.

    Args:
        function: One that can be imported.
        arguments: Of the function.
        fault: What happens to it.
    """

    def __init__(
        self, function: Callable[..., Any], *arguments: Any, fault: Fault | None = None
    ) -> None:
        reading, writing = FORKS.Pipe(duplex=False)
        self.process = FORKS.Process(target=_suffer, args=(writing, fault, function, *arguments))
        self.process.start()
        writing.close()
        self.says = io.FileIO(os.dup(reading.fileno()))
        reading.close()

    def end(self) -> End:
        """Waits for its end, and for that of the processes that it has started itself."""
        said = b""
        with self.says:
            while True:
                ready, _, _ = select.select([self.says], [], [], PATIENCE)
                assert ready, f"nothing more from a process for {PATIENCE} s; it said {said!r}"
                if not (part := self.says.read(1 << 16)):
                    break
                said += part
        self.process.join()
        code = self.process.exitcode
        self.process.close()
        assert code is not None
        return End(code, said.decode())


def call(function: Callable[..., Any], *arguments: Any, fault: Fault | None = None) -> End:
    """Calls a function in a process of its own."""
    return Victim(function, *arguments, fault=fault).end()


def command(arguments: tuple[Any, ...]) -> None:
    """The installed command."""
    from rewardshift.cli import console  # noqa: PLC0415  which the process has imported already

    sys.argv = ["rewardshift", *map(str, arguments)]
    console()


def _suffer(writing: Connection, fault: Fault | None, function: Any, *arguments: Any) -> None:
    os.setpgrp()
    # A pipe: a disk that is full would be so for what is said, too.
    os.dup2(writing.fileno(), 1)
    os.dup2(writing.fileno(), 2)
    writing.close()
    sys.stdout, sys.stderr = (open(number, "w", 1, closefd=False) for number in (1, 2))  # noqa: SIM115
    if fault is not None:
        fault.arm()
    function(*arguments)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file that tells nothing of time, also those that should not be there."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in (".lock", "timing.csv") and "events" not in path.name
    }
