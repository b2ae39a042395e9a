"""The command `doctor`."""

import importlib.util
import json
from pathlib import Path
from typing import Annotated

import tyro

from rewardshift.errors import InputError
from rewardshift.files import writable_folder, write_atomic
from rewardshift.training.doctor import doctor


def examine(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    *,
    run_seed: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
    episodes: int = 10,
    seed: int = 0,
    out: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None,
) -> None:
    """Say what is wrong with the values of a trained run.

    Compares the agent's estimates with the returns that follow, and tried actions with untried
    ones. Prints the numbers and what they mean, writes both to doctor.json, and draws doctor.png
    if matplotlib is installed. The run does not change.

    Args:
        folder: The run's folder.
        run_seed: The run's seed to examine; by default its first.
        episodes: The number of greedy episodes.
        seed: The seed of the episodes.
        out: The folder to write to; by default the run's.
    """
    if out is not None and out.is_file():
        raise InputError(f"--out must be a folder, got the file {str(out)!r}")
    found = doctor(folder, run_seed, episodes=episodes, seed=seed)
    print(found)
    path = writable_folder(folder if out is None else out)
    written = [path / "doctor.json"]
    write_atomic(written[0], json.dumps(found.to_json(), indent=2) + "\n")
    if importlib.util.find_spec("matplotlib") is not None:
        from rewardshift.doctor.picture import draw  # noqa: PLC0415  an extra

        written.append(path / "doctor.png")
        write_atomic(written[1], draw(found, title=folder.name))
    print(f"\nwritten: {', '.join(map(str, written))}")
