"""The command line.

`rewardshift train | resume | evaluate | play | collect | data | sweep | list | reproduce | report |
suggest | doctor`.
"""

import contextlib
import errno
import io
import os
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NoReturn

import rewardshift
from rewardshift.cli.suggest import suggest
from rewardshift.envs.tasks import import_foreign
from rewardshift.errors import (
    ForeignError,
    InputError,
    TrainingError,
    needs,
    one_line,
    stop_requests,
)

# Errors of a path, which the user can correct; all others are errors of the disk.
PATH_ERRORS = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP),
    *(errno.EACCES, errno.EPERM, errno.EROFS),
)
# The function of each command. Its module is imported only when the command is named, or for the
# list of all of them.
COMMANDS = {
    "train": "rewardshift.cli.train:train",
    "resume": "rewardshift.cli.train:resume_run",
    "evaluate": "rewardshift.cli.evaluate:evaluate",
    "play": "rewardshift.cli.play:play",
    "collect": "rewardshift.cli.collect:collect_data",
    "data": "rewardshift.cli.data:data",
    "sweep": "rewardshift.cli.sweeps:sweep",
    "list": "rewardshift.cli.figures:list_figures",
    "reproduce": "rewardshift.cli.reproduce:reproduce",
    "report": "rewardshift.cli.report:report",
    "suggest": "rewardshift.cli.suggest:suggest",
    "doctor": "rewardshift.cli.doctor:examine",
}
# The commands with flags of agents, and tyro's rules for these flags. Their functions return the
# command, because its flags depend on the next word, which may name an agent or a trial of the
# user's own. They also take the whole line as it was typed.
BY_AGENT = {"train": "rewardshift.cli.parts:FLAGS", "sweep": "rewardshift.cli.sweeps:FLAGS"}
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
        typed = shlex.join(("rewardshift", *arguments))
        arguments = _import_modules(arguments)
        _run(arguments, typed)
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
        name = "".join(arguments[1:2])
        if not all(part.isidentifier() for part in name.split(".")):
            raise InputError(f"--import needs the name of a module, got {name!r}")
        try:
            import_foreign(name)
        except ImportError as error:
            raise InputError(f"--import {name!r}: {one_line(error)}") from error
        arguments = arguments[2:]
    return arguments


def _run(arguments: Sequence[str], typed: str) -> None:
    """Parses the arguments and runs their command.

    Args:
        arguments: The name of the command, and its arguments.
        typed: The whole command line.
    """
    if arguments[:1] == ["suggest"]:  # works without the extras
        suggest(arguments[1:])
        return
    name = "".join(arguments[:1])
    # A module that is interrupted while it is imported may fail in another way.
    with stop_requests(), needs("agents"):
        import tyro  # noqa: PLC0415  an extra

        commands: dict[str, Callable[..., None]] = {}
        for known in [name] if name in COMMANDS else COMMANDS:
            found = resolve_name(COMMANDS[known])
            subject = "".join(arguments[1:2]) if name in COMMANDS else ""
            commands[known] = found(subject, typed) if known in BY_AGENT else found
        flags = resolve_name(BY_AGENT[name]) if name in BY_AGENT else contextlib.nullcontext()
    markers = (tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes)
    if name in COMMANDS:
        with flags:
            tyro.cli(commands[name], prog=f"rewardshift {name}", args=arguments[1:], config=markers)
        return
    tyro.extras.subcommand_cli_from_dict(  # the list of all of them
        {known: _without_flags(command) for known, command in commands.items()},
        prog="rewardshift",
        description="Reward shifting for value-based agents, r' = k r + b. Agents, parts and"
        " environments of your own are found with: rewardshift --import MODULE COMMAND ...",
        args=arguments,
    )


def _without_flags(command: Callable[..., None]) -> Callable[[], None]:
    """A command that has nothing but its help."""

    def listed() -> None:
        raise AssertionError

    listed.__doc__ = command.__doc__
    return listed


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
