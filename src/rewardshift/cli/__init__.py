"""The command line.

`rewardshift train | resume | evaluate | play | collect | data | sweep | list | reproduce | report |
suggest | doctor`.
"""

import errno
import io
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import rewardshift
from rewardshift.envs.tasks import import_foreign
from rewardshift.errors import ForeignError, InputError, TrainingError, one_line
from rewardshift.extras import needs
from rewardshift.interrupts import stop_requests

# Errors of a path, which the user can correct; all others are errors of the disk.
PATH_ERRORS = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP),
    *(errno.EACCES, errno.EPERM, errno.EROFS),
)
RESUMABLE = ("train", "resume", "sweep", "reproduce")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Returns:
        The exit code: 0 for success, 1 for a failed training or disk, 2 for bad input, 130 for an
        interrupted run.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if list(arguments) == ["--version"]:
        print(f"rewardshift {rewardshift.__version__}")
        return 0
    try:
        if any("\0" in argument for argument in arguments):
            raise InputError("an argument contains a NUL character")
        if (here := str(Path.cwd())) not in sys.path:
            sys.path.append(here)  # last: no file here hides an installed module
        arguments = _import_modules(arguments)
        # A module that is interrupted while it is imported may fail in another way.
        with stop_requests(), needs("agents"):
            from rewardshift.cli import commands  # noqa: PLC0415  an extra
        commands.run(arguments)
    except BrokenPipeError:  # nobody reads the output
        raise
    except (InputError, TrainingError, OSError) as error:
        print(f"rewardshift: {one_line(error)}", file=sys.stderr)
        if isinstance(error, ForeignError):
            print(error.details, file=sys.stderr)
        given = isinstance(error, InputError) or getattr(error, "errno", None) in PATH_ERRORS
        return 2 if given else 1
    except KeyboardInterrupt:
        hint = "; the same command goes on from here" if arguments[0] in RESUMABLE else ""
        print(f"rewardshift: stopped{hint}", file=sys.stderr)
        return 130
    return 0


def _import_modules(arguments: Sequence[str]) -> Sequence[str]:
    """Imports the modules of leading `--import` arguments, and returns the other arguments."""
    while arguments and arguments[0] == "--import":
        if len(arguments) < 2:
            raise InputError("--import needs the name of a module")
        if not all(part.isidentifier() for part in arguments[1].split(".")):
            raise InputError(f"--import needs the name of a module, got {arguments[1]!r}")
        try:
            import_foreign(arguments[1])
        except ImportError as error:
            raise InputError(f"--import {arguments[1]!r}: {one_line(error)}") from error
        arguments = arguments[2:]
    return arguments


def console() -> NoReturn:
    """The installed command."""

    def stop(*_: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)  # ends the workers, like Ctrl-C
    for stream in (sys.stdout, sys.stderr):  # a name may not fit their encoding
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = main()
        sys.stdout.flush()
    except SystemExit as end:  # from the parser: help, or a parse error
        code = int(end.code or 0)
    except BrokenPipeError:  # as in `rewardshift list | head -1`
        code = 0
    # Skips the interpreter's own exit: XLA's threads may still run an interrupted computation,
    # and would crash during it.
    os._exit(code)
