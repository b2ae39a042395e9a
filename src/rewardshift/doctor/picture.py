"""The picture of a diagnosis: estimates against returns, and seen against unseen actions."""

import numpy as np

from rewardshift.doctor.diagnosis import Diagnosis
from rewardshift.errors import needs, plain
from rewardshift.pictures import BLUE, GREEN, ORANGE, WIDTH, as_file, drawing

with needs("paper"):
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import StrMethodFormatter

# The label and the colour of each kind of actions.
KINDS = {
    "seen": ("in the data", BLUE),
    "policy": ("the policy's", GREEN),
    "unseen": ("others", ORANGE),
}


def draw(found: Diagnosis, title: str = "") -> bytes:
    """The diagnosis as a PNG, with a title."""
    with drawing():
        canvas = Figure(figsize=(WIDTH, 3.2), layout="constrained")
        left, right = canvas.subplots(1, 2)
        _estimates(left, found)
        _bars(right, found)
        for axis in (left, right):
            axis.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        canvas.suptitle(plain(title))
        return as_file(canvas)


def _estimates(axis: Axes, found: Diagnosis) -> None:
    axis.set_title("estimate against return, state by state")
    axis.set_xlabel("return that followed")
    axis.set_ylabel("estimate")
    if found.belief is None:
        _say(axis, "no returns to compare with")
        return
    estimate, followed = np.array(found.belief.points).T
    axis.scatter(followed, estimate, s=9, alpha=0.5, color=BLUE, linewidth=0)
    # Each axis has the range of its own numbers: estimates may be a thousand times the returns.
    low, high = axis.get_xlim()
    axis.plot([low, high], [low, high], color="black", linewidth=1, linestyle="--", label="equal")
    axis.set_xlim(low, high)
    axis.legend(loc="best")


def _bars(axis: Axes, found: Diagnosis) -> None:
    axis.set_title("values of actions, in states of the data")
    axis.set_ylabel("mean value")
    values = {name: getattr(found.untried, name, None) for name in KINDS}
    known = {name: value for name, value in values.items() if value is not None}
    if not known:
        _say(axis, "no data to compare with")
        return
    labels, colors = zip(*(KINDS[name] for name in known), strict=True)
    axis.bar(labels, list(known.values()), color=colors)
    axis.axhline(0, color="black", linewidth=0.8)


def _say(axis: Axes, words: str) -> None:
    axis.text(0.5, 0.5, words, ha="center", va="center", transform=axis.transAxes)
