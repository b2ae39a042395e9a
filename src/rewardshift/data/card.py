"""The summary of a data set, in numbers and as its README.md."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from rewardshift.data.dataset import Dataset


def summarise(dataset: Dataset) -> dict[str, str]:
    """The numbers of a data set as text, by name.

    An unfinished episode is neither terminated nor truncated: the data end within it.
    """
    ends = np.array([rows.stop - 1 for rows in dataset.episodes])
    terminated = dataset.terminated[ends]
    truncated = dataset.truncated[ends] & ~terminated
    unfinished = len(ends) - terminated.sum() - truncated.sum()
    return {
        "transitions": str(len(dataset)),
        "episodes": f"{len(ends)}: {terminated.sum()} terminated, {truncated.sum()} truncated"
        + (f", {unfinished} unfinished" if unfinished else ""),
        "return": _spread(dataset.returns),
        "episode length": _spread(np.array([rows.stop - rows.start for rows in dataset.episodes])),
        "reward": _spread(dataset.reward.astype(np.float64)),
    }


def data_card(
    dataset: Dataset, dataset_id: str, description: str, recipe: Mapping[str, Any]
) -> str:
    """The README.md of a data set.

    Args:
        dataset: The data set.
        dataset_id: Its id.
        description: A description in one line.
        recipe: The record of how it was made.
    """
    rows = {"environment": dataset.env or "not known", **summarise(dataset)}
    table = [f"| {name} | {text} |" for name, text in rows.items()]
    return "\n".join(
        [
            f"# {dataset_id}",
            "",
            description,
            "",
            "| | |",
            "| --- | --- |",
            *table,
            f"| digest | {dataset.digest} |",
            "",
            "Rewards are primal. Actions are on the environment's own scale.",
            "",
            "## How it was made",
            "",
            "```json",
            json.dumps(recipe, indent=2),
            "```",
            "",
        ]
    )


def _spread(values: np.ndarray) -> str:
    return f"mean {values.mean():.6g}, from {values.min():.6g} to {values.max():.6g}"
