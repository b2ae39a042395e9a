"""The summary of a data set, in numbers and as its README.md."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rewardshift.data.dataset import Dataset


class Summary(NamedTuple):
    """A data set in a few numbers; the triples are the lowest, the mean and the highest.

    `unfinished` episodes are neither terminated nor truncated: the data end within them.
    """

    transitions: int
    episodes: int
    terminated: int
    truncated: int
    unfinished: int
    returns: tuple[float, float, float]
    lengths: tuple[float, float, float]
    rewards: tuple[float, float, float]

    def lines(self) -> dict[str, str]:
        """The numbers as text, by name."""
        ends = f"{self.terminated} terminated, {self.truncated} truncated"
        return {
            "transitions": str(self.transitions),
            "episodes": f"{self.episodes}: {ends}"
            + (f", {self.unfinished} unfinished" if self.unfinished else ""),
            "return": _spread(self.returns),
            "episode length": _spread(self.lengths),
            "reward": _spread(self.rewards),
        }


def summarise(dataset: Dataset) -> Summary:
    """The numbers of a data set."""
    ends = np.array([rows.stop - 1 for rows in dataset.episodes])
    terminated = dataset.terminated[ends]
    truncated = dataset.truncated[ends] & ~terminated
    return Summary(
        transitions=len(dataset),
        episodes=len(ends),
        terminated=int(terminated.sum()),
        truncated=int(truncated.sum()),
        unfinished=int((~terminated & ~truncated).sum()),
        returns=_three(dataset.returns),
        lengths=_three(np.array([rows.stop - rows.start for rows in dataset.episodes])),
        rewards=_three(dataset.reward.astype(np.float64)),
    )


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
    rows = {"environment": dataset.env or "not known", **summarise(dataset).lines()}
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


def _three(values: np.ndarray) -> tuple[float, float, float]:
    return float(values.min()), float(values.mean()), float(values.max())


def _spread(values: tuple[float, float, float]) -> str:
    low, mean, high = values
    return f"mean {mean:.6g}, from {low:.6g} to {high:.6g}"
