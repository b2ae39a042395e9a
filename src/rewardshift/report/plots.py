"""The picture of a figure: mean curves with the band between the quartiles of the seeds."""

import io
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rewardshift.data.picture import plain_texts
from rewardshift.errors import plain
from rewardshift.experiments.figure import Curve, Figure, Method, Panel
from rewardshift.extras import needs

with needs("paper"):
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


class Style(NamedTuple):
    """How a method is drawn, in every figure of the project."""

    color: str
    line: str


# Those of one figure are distinct in colour, and without it by their dashes.
STYLES = {
    "epsilon-greedy": Style("#7f7f7f", "--"),
    "count": Style("#e69f00", "-."),
    "count-evaluated-first": Style("#8c6d31", ":"),
    "shift": Style("#08306b", "-"),
    "count+shift": Style("#cc5f9e", ":"),
    "dqn": Style("#525252", "--"),
    "dqn-0.5": Style("#2171b5", "-"),
    "dqn+1": Style("#cb181d", ":"),
    "dqn-scaled": Style("#969696", ":"),
    "dqn-0.5-scaled": Style("#6baed6", "--"),
    "rnd": Style("#d94801", "-."),
    "rnd-piled": Style("#fd8d3c", "-"),
    "rnd-1-piled": Style("#74c476", "--"),
    "rnd-1.5-piled": Style("#005a32", "-"),
    "rnd-0.05": Style("#fdae6b", "--"),
    "rnd-0.15": Style("#c7a76c", "-."),
    "rnd-1": Style("#74c476", "-."),
    "rnd-1-stored": Style("#ae017e", "--"),
    "rnd-1.5": Style("#005a32", "-"),
    "rnd-2": Style("#41ab9d", "--"),
    "rnd-2.5": Style("#1d6996", ":"),
    "rnd-5": Style("#807dba", "-"),
    "rnd-10": Style("#3f007d", ":"),
    "td3": Style("#525252", "--"),
    "ensemble-td3": Style("#e69f00", "-."),
    "bootstrapped-td3": Style("#cc5f9e", ":"),
    "rrs-3": Style("#08519c", "-"),
    "rrs-3-1.0": Style("#6baed6", "--"),
    "rrs-7": Style("#005a32", "-."),
    "rrs-7-1.0": Style("#74c476", ":"),
    "rrs-3-step": Style("#d94801", "--"),
    "rrs-3-ten": Style("#807dba", "-."),
    "td3-0.5": Style("#2171b5", "-"),
    "td3+0.5": Style("#d94801", "-."),
    "td3-5": Style("#2171b5", "-"),
    "td3+5": Style("#d94801", "-."),
    "fetch+0": Style("#525252", "--"),
    "fetch+1": Style("#d94801", "-."),
    "fetch-1": Style("#2171b5", "-"),
    "unshifted": Style("#525252", "--"),
    "positive": Style("#005a32", "-"),
    "negative": Style("#d94801", "-."),
    "positive-absorbing": Style("#74c476", ":"),
    "+1": Style("#a1d99b", "-"),
    "+8": Style("#41ab5d", "-."),
    "+20": Style("#238b8b", ":"),
    "+50": Style("#00441b", "-"),
    "optimism-5": Style("#00441b", "-"),
    "optimism-2": Style("#238b45", "-."),
    "optimism-1": Style("#74c476", "--"),
    "optimism+0": Style("#525252", ":"),
    "optimism+1": Style("#2171b5", "--"),
    "optimism+2": Style("#6a51a3", "-"),
}

PANELS_PER_ROW = 3


def draw(figure: Figure, curves: Sequence[Curve], caption: str) -> dict[str, bytes]:
    """The figure as the bytes of a PNG and an SVG; the same curves give the same bytes."""
    columns = min(len(figure.panels), PANELS_PER_ROW)
    rows = -(-len(figure.panels) // columns)
    # The salt makes an SVG's ids, and leaving out the date its bytes, the same every time.
    salted = matplotlib.rc_context({"svg.hashsalt": figure.name, "font.size": 9})
    with salted, plain_texts():
        canvas = Canvas(figsize=(3.6 * columns, 2.9 * rows + 0.9), layout="constrained")
        axes = canvas.subplots(rows, columns, squeeze=False).flatten()
        for axis, panel in zip(axes, figure.panels, strict=False):
            _draw_panel(axis, figure, panel, curves)
        for axis in axes[len(figure.panels) :]:
            axis.set_axis_off()
        title = "\n".join(textwrap.wrap(figure.title, 38 * columns))
        canvas.suptitle(title, fontweight="bold")
        lines = {label: line for axis in axes for line, label in _legend(axis)}
        labels = [method.label for method in figure.methods if method.label in lines]
        canvas.legend(
            [lines[label] for label in labels],
            labels,
            loc="outside lower center",
            ncols=min(4, 2 * columns),
            frameon=False,
            title="\n".join(textwrap.wrap(plain(caption), 50 * columns)),
            title_fontsize=7,
        )
        return {"png": _render(canvas, "png"), "svg": _render(canvas, "svg")}


def _legend(axis: Axes) -> list[tuple[Any, str]]:
    return list(zip(*axis.get_legend_handles_labels(), strict=True))


def _draw_panel(axis: Axes, figure: Figure, panel: Panel, curves: Sequence[Curve]) -> None:
    for method in figure.methods:
        mine = [c for c in curves if (c.panel, c.method) == (panel.name, method.name)]
        if mine and panel.shows(method.name):
            _draw_method(axis, method, mine)
    axis.set_title(panel.title)
    axis.set_xlabel(figure.x_label)
    axis.set_ylabel(panel.y_label)
    if panel.y_range is not None:
        low, high = panel.y_range
        room = 0.03 * (high - low)
        axis.set_ylim(low - room, high + room)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


def _draw_method(axis: Axes, method: Method, curves: Sequence[Curve]) -> None:
    style = STYLES[method.name]
    values = np.array([curve.values for curve in curves])
    steps = np.array(curves[0].steps)
    low, high = np.quantile(values, (0.25, 0.75), axis=0)
    axis.plot(
        steps, values.mean(axis=0), style.line, color=style.color, label=method.label, linewidth=1.6
    )
    axis.fill_between(steps, low, high, color=style.color, alpha=0.18, linewidth=0)


def _render(canvas: Canvas, kind: str) -> bytes:
    buffer = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
    canvas.savefig(buffer, format=kind, dpi=150, metadata=metadata)
    return buffer.getvalue()
