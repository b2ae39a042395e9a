"""The command line.

`rewardshift train | resume | play | collect | data | list | reproduce | report | suggest`.
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

# What is wrong with a path, and so the user's to mend; everything else is the disk's.
PATH_ERRORS = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP),
    *(errno.EACCES, errno.EPERM, errno.EROFS),
)
RESUMABLE = ("train", "resume", "reproduce")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Returns:
        The exit code: 0, 1 for a training that broke down or a disk that did, 2 for bad
        input, 130 for an interrupted run.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if list(arguments) == ["--version"]:
        print(f"rewardshift {rewardshift.__version__}")
        return 0
    try:
        if any("\0" in argument for argument in arguments):
            raise InputError("an argument holds a NUL character, which no name has")
        sys.path.append(str(Path.cwd()))  # last: a file here stands in for no installed module
        arguments = _import_modules(arguments)
        with needs("agents"):
            from rewardshift.cli import commands  # noqa: PLC0415  an extra
        commands.run(arguments)
    except BrokenPipeError:  # nobody to tell
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
    """Imports the modules that the user names first, and returns the other arguments."""
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

    signal.signal(signal.SIGTERM, stop)  # ends the workers, as Ctrl-C does
    for stream in (sys.stdout, sys.stderr):  # a name may hold what their encoding does not
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = main()
        sys.stdout.flush()
    except SystemExit as end:  # the parser's: help, or what does not parse
        code = int(end.code or 0)
    except BrokenPipeError:  # as in `rewardshift list | head -1`
        code = 0
    # Without the interpreter's own end: XLA's threads may still be at an interrupted
    # computation, and do not survive it.
    os._exit(code)
