"""The command `play`."""

from pathlib import Path
from typing import Annotated

import tyro

from rewardshift.training.film import record_episode
from rewardshift.training.run_folder import load


def play(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    *,
    film: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None,
    run_seed: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
    episode: int = 0,
) -> None:
    """Record an episode of a run as a GIF.

    Args:
        folder: The run's folder.
        film: The GIF to write; by default episode.gif in the run's folder.
        run_seed: The run's seed whose policy acts; by default its first.
        episode: The number of the episode; each number has another start.
    """
    policy = load(folder, run_seed)
    path = film or folder / "episode.gif"
    total = record_episode(policy, path, episode)
    print(f"return {total:g}: {path}")
