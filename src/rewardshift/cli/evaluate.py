"""The command `evaluate`."""

from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from rewardshift.training.run_folder import load


def evaluate(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    *,
    episodes: int = 10,
    run_seed: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
    seed: int = 0,
) -> None:
    """Run greedy episodes of a trained policy and print their returns.

    Args:
        folder: The run's folder.
        episodes: The number of episodes.
        run_seed: The run's seed whose policy acts; by default its first.
        seed: The seed of the episodes.
    """
    policy = load(folder, run_seed)
    found = policy.evaluate(episodes, seed=seed)
    returns = found.returns
    print(f"mean return {returns.mean():.6g}, from {returns.min():.6g} to {returns.max():.6g}")
    print(f"mean length {found.lengths.mean():.6g}, {episodes} episodes, step {policy.step}")
    if not np.isnan(found.success).any():
        print(f"success rate {found.success.mean():.2f}")
