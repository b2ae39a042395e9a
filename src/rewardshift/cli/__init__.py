"""The command line.

`rewardshift train | resume | play | collect | data | list | reproduce | report | suggest`.
"""

import importlib.metadata
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import tyro

from rewardshift.cli.data import collect_data, data
from rewardshift.cli.figures import list_figures, report, reproduce
from rewardshift.cli.suggest import suggest
from rewardshift.cli.training import play, resume_run, train_agent
from rewardshift.errors import InputError
from rewardshift.training.common import TrainingError


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Returns:
        The exit code: 0, 1 for a training that broke down or a disk that did, 2 for bad
        input, 130 for an interrupted run.
    """
    commands: dict[str, Callable[..., None]] = {
        "train": train_agent,
        "resume": resume_run,
        "play": play,
        "collect": collect_data,
        "data": data,
        "list": list_figures,
        "reproduce": reproduce,
        "report": report,
        "suggest": suggest,
    }
    arguments = sys.argv[1:] if arguments is None else arguments
    if list(arguments) == ["--version"]:
        print(f"rewardshift {importlib.metadata.version('rewardshift')}")
        return 0
    try:
        tyro.extras.subcommand_cli_from_dict(
            commands,
            prog="rewardshift",
            description="Reward shifting for value-based agents, r' = k r + b.",
            args=arguments,
        )
    except InputError as error:
        print(f"rewardshift: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # nobody to tell
        raise
    except (TrainingError, OSError) as error:
        print(f"rewardshift: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("rewardshift: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def console() -> NoReturn:
    """The installed command."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)  # ends the workers, as Ctrl-C does
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
