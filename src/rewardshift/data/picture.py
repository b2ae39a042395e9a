"""A picture of a data set."""

import numpy as np

from rewardshift.data.dataset import Dataset
from rewardshift.errors import needs, plain
from rewardshift.pictures import BLUE, ORANGE, WIDTH, as_file, drawing

with needs("paper"):
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

MOST_BARS = 40


def draw_dataset(dataset: Dataset) -> bytes:
    """Histograms of the episodes' returns and of the rewards, as a PNG."""
    with drawing():
        canvas = Figure(figsize=(WIDTH, 2.8), layout="constrained")
        left, right = canvas.subplots(1, 2)
        _histogram(left, dataset.returns, "return of an episode", "episodes", BLUE)
        _histogram(right, dataset.reward, "reward of a transition", "transitions", ORANGE)
        canvas.suptitle(plain(dataset.name))
        return as_file(canvas)


def _histogram(axis: Axes, values: np.ndarray, of: str, counted: str, color: str) -> None:
    numbers = values.astype(np.float64)
    bars = int(np.clip(2 * np.sqrt(len(numbers)), 5, MOST_BARS))
    if np.ptp(numbers) < 1e-9 * max(1.0, np.abs(numbers).max()):
        bars = 1  # practically one value: there is nothing to divide
    axis.hist(numbers, bars, color=color, edgecolor="white", linewidth=0.5)
    mean = numbers.mean()
    axis.axvline(mean, color="black", linestyle="--", linewidth=1)
    axis.set_title(f"mean {mean:.5g} (dashed)")
    axis.set_xlabel(of)
    axis.set_ylabel(counted)
    axis.yaxis.set_major_locator(MaxNLocator(integer=True))
