"""The folder of a run: its owner and its configuration."""

import json
import shlex
from pathlib import Path

from rewardshift.errors import InputError, one_line
from rewardshift.files import DAMAGE, LEFTOVER, LOCK, read_own, write_atomic
from rewardshift.training.checkpoint import kept_checkpoints
from rewardshift.training.config import FORMAT, RunConfig
from rewardshift.training.logs import time_spent
from rewardshift.training.serialise import check_restorable


def check_folder(folder: Path, config: RunConfig) -> None:
    """Refuses a run that no folder can hold, and a folder that is neither new nor this run's."""
    if "<" in config.env:  # as in "<lambda>", "<locals>" and "<... object at 0x...>"
        raise InputError(
            "a run in a folder needs an environment that can be made again: a registered name, a"
            " function or class of a module, or functools.partial of one; got the"
            f" {config.env}"
        )
    check_restorable(config.agent)
    _check_contents(folder, config)


def _check_contents(folder: Path, config: RunConfig) -> None:
    if (folder / "config.json").exists():
        kept = read_config(folder)
        if config.digest in kept.digests[1:]:
            raise InputError(
                f"the run in {str(folder)!r} was extended from {config.budget.steps} to"
                f" {kept.budget.steps} steps; to go on with it: {how_to_resume(folder)}"
            )
        if kept.digest not in config.digests:
            raise InputError(
                f"the folder {str(folder)!r} holds a run with another configuration;"
                f" choose another folder, or go on with that run: {how_to_resume(folder)}"
            )
        if time_spent(folder) > 0 and not any(kept_checkpoints(folder / "checkpoints")):
            raise InputError(
                f"the run in {str(folder)!r} has results but no checkpoint to go on from; restore"
                " its folder checkpoints, or train into another folder"
            )
    elif folder.exists() and any(map(_is_foreign, folder.iterdir())):
        raise InputError(f"the folder {str(folder)!r} is not empty and holds no run")


def how_to_resume(folder: Path) -> str:
    """The command that goes on with the run in a folder."""
    return f"rewardshift resume {shlex.quote(str(folder))}"


def _is_foreign(path: Path) -> bool:
    """Whether a file is not one of those that a run killed at its start leaves."""
    return path.suffix != LEFTOVER and path.name != LOCK


def claim_folder(folder: Path, config: RunConfig) -> None:
    """Writes the run's configuration to its folder, which this process must hold."""
    _check_contents(folder, config)  # another process may have written before this one held it
    if not (folder / "config.json").exists() or read_config(folder) != config:
        write_atomic(folder / "config.json", json.dumps(config.to_json(), indent=2) + "\n")


def read_config(folder: Path) -> RunConfig:
    """The configuration of the run in a folder."""
    path = folder / "config.json"
    try:
        body = json.loads(read_own(path))
        if body["format"] != FORMAT:
            raise ValueError(f"its format is {body['format']!r}, this version reads {FORMAT}")
        return RunConfig.from_json(body)
    except DAMAGE as error:
        raise InputError(f"no run in {str(folder)!r}: {path.name}: {one_line(error)}") from error
