"""A picture of a data set."""

import contextlib
import io
import warnings
from collections.abc import Iterator

import numpy as np

from rewardshift.data.dataset import Dataset
from rewardshift.errors import needs, plain

with needs("paper"):
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

MOST_BARS = 40


def draw_dataset(dataset: Dataset) -> bytes:
    """Histograms of the episodes' returns and of the rewards, as a PNG."""
    picture = io.BytesIO()
    with plain_texts():
        canvas = Figure(figsize=(8, 3.2), layout="constrained")
        left, right = canvas.subplots(1, 2)
        _histogram(left, dataset.returns, "return of an episode", "episodes", "#08519c")
        _histogram(right, dataset.reward, "reward of a transition", "transitions", "#d94801")
        canvas.suptitle(plain(dataset.name), fontweight="bold")
        canvas.savefig(picture, format="png", dpi=150, metadata={"Software": None})
    return picture.getvalue()


@contextlib.contextmanager
def plain_texts() -> Iterator[None]:
    """Draws names literally: a dollar starts no formula, and a missing glyph causes no warning."""
    with matplotlib.rc_context({"text.parse_math": False}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        yield


def _histogram(axis: Axes, values: np.ndarray, of: str, counted: str, color: str) -> None:
    numbers = values.astype(np.float64)
    bars = int(np.clip(2 * np.sqrt(len(numbers)), 5, MOST_BARS))
    if np.ptp(numbers) < 1e-9 * max(1.0, np.abs(numbers).max()):
        bars = 1  # practically one value: there is nothing to divide
    axis.hist(numbers, bars, color=color, edgecolor="white", linewidth=0.5)
    mean = numbers.mean()
    axis.axvline(mean, color="black", linestyle="--", linewidth=1)
    axis.set_title(f"mean {mean:.5g} (dashed)", fontsize=9)
    axis.set_xlabel(of)
    axis.set_ylabel(counted)
    axis.yaxis.set_major_locator(MaxNLocator(integer=True))
    axis.spines[["top", "right"]].set_visible(False)
