"""The picture of a figure: mean curves with the band between the quartiles of the seeds."""

import io
import re
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from rewardshift.data.picture import plain_texts
from rewardshift.errors import needs, plain
from rewardshift.lab.figure import Curve, Figure, Method, Panel

with needs("paper"):
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from matplotlib.ticker import EngFormatter

PANELS_PER_ROW = 3


def draw(figure: Figure, curves: Sequence[Curve], caption: str) -> dict[str, bytes]:
    """The figure as the bytes of a PNG and an SVG; the same curves give the same bytes."""
    # The fixed salt makes an SVG's ids reproducible; without a date, so are its bytes.
    salted = matplotlib.rc_context({"svg.hashsalt": figure.name, "font.size": 9})
    with salted, plain_texts():
        canvas = as_canvas(figure, curves, caption)
        return {"png": render(canvas, "png"), "svg": render(canvas, "svg")}


def as_canvas(figure: Figure, curves: Sequence[Curve], caption: str) -> Canvas:
    """The figure as Matplotlib's."""
    columns = min(len(figure.panels), PANELS_PER_ROW)
    rows = -(-len(figure.panels) // columns)
    canvas = Canvas(figsize=(3.6 * columns, 2.9 * rows + 0.9), layout="constrained")
    axes = canvas.subplots(rows, columns, squeeze=False).flatten()
    for axis, panel in zip(axes, figure.panels, strict=False):
        _draw_panel(axis, figure, panel, curves)
    for axis in axes[len(figure.panels) :]:
        axis.set_axis_off()
    title = "\n".join(textwrap.wrap(figure.title, 38 * columns))
    canvas.suptitle(title, fontweight="bold")
    lines = {line.get_label(): line for axis in axes for line in axis.lines}
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
    return canvas


def shown_curves(panel: Panel, method: str, curves: Sequence[Curve]) -> list[Curve]:
    """The curves of a method in a panel; none if the panel does not show the method."""
    if not panel.shows(method):
        return []
    return [curve for curve in curves if (curve.panel, curve.method) == (panel.name, method)]


def in_words(figure: Figure, curves: Sequence[Curve]) -> str:
    """A text alternative of the picture: where the mean of every curve ends."""
    sentences = [f"Learning curves. {figure.title}."]
    for panel in figure.panels:
        ends = [
            f"{method.label} {np.mean([curve.values[-1] for curve in found]):.3g}"
            for method in figure.methods
            if (found := shown_curves(panel, method.name, curves))
        ]
        sentences.append(f"{panel.title}, {panel.y_label} at the end: {'; '.join(ends)}.")
    return " ".join(sentences)


def _draw_panel(axis: Axes, figure: Figure, panel: Panel, curves: Sequence[Curve]) -> None:
    for method in figure.methods:
        if mine := shown_curves(panel, method.name, curves):
            _draw_method(axis, figure, method, mine)
    axis.set_title(panel.title)
    axis.set_xlabel(figure.x_label)
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    axis.set_ylabel(panel.y_label)
    if panel.y_range is not None:
        low, high = panel.y_range
        room = 0.03 * (high - low)
        axis.set_ylim(low - room, high + room)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


def _draw_method(axis: Axes, figure: Figure, method: Method, curves: Sequence[Curve]) -> None:
    style = figure.style(method)
    values = np.array([curve.values for curve in curves])
    steps = np.array(curves[0].steps)
    low, high = np.quantile(values, (0.25, 0.75), axis=0)
    axis.plot(
        steps, values.mean(axis=0), style.line, color=style.color, label=method.label, linewidth=1.6
    )
    axis.fill_between(steps, low, high, color=style.color, alpha=0.18, linewidth=0)


def render(canvas: Canvas, kind: str) -> bytes:
    """A picture as a file of this kind, without a date, so that its bytes are reproducible."""
    buffer = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
    canvas.savefig(buffer, format=kind, dpi=150, metadata=metadata)
    return _compact(buffer.getvalue()) if kind == "svg" else buffer.getvalue()


def _compact(svg: bytes) -> bytes:
    """An SVG with paths rounded to a tenth of a point, and without indents: a quarter smaller."""
    path, number = re.compile(rb'<path[^>]* d="[^"]*"'), re.compile(rb"-?\d+\.\d+")

    def rounded(found: re.Match[bytes]) -> bytes:
        return f"{float(found[0]):.1f}".removesuffix(".0").encode()

    return re.sub(rb"\n +", b"\n", path.sub(lambda found: number.sub(rounded, found[0]), svg))
