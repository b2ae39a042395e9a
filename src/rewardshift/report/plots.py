"""The picture of a figure: learning curves, or one number for each, in the form it declares."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rewardshift.errors import needs, plain
from rewardshift.lab.figure import Curve, Figure, Panel, Style
from rewardshift.pictures import BLUE, GREEN, WIDTH, as_file, drawing
from rewardshift.report.statistics import Interval, mean_interval
from rewardshift.report.verdicts import METRICS, score, short

with needs("paper"):
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from matplotlib.ticker import EngFormatter

MOST_BANDS = 4  # more of them hide each other
HEIGHTS = (2.6, 2.1, 1.9)  # of a plot in inches, by the number of plots side by side
LINES = (Style(BLUE, "-"), Style(GREEN, "--"))


def draw(figure: Figure, curves: Sequence[Curve], caption: str) -> dict[str, bytes]:
    """The figure as the bytes of a PNG and an SVG; the same curves give the same bytes."""
    with drawing(figure.name):
        canvas = as_canvas(figure, curves, caption)
        return {kind: as_file(canvas, kind) for kind in ("png", "svg")}


def as_canvas(figure: Figure, curves: Sequence[Curve], caption: str) -> Canvas:
    """The figure as Matplotlib's."""
    if figure.form == "table":
        canvas, (axis,) = new_canvas(1, 1, 0.8 + 0.24 * len(figure.panels))
        _draw_table(axis, figure, curves)
    else:
        plots = _plots(figure)
        canvas, axes = new_canvas(len(plots), figure.columns)
        columns = min(figure.columns, len(plots))
        for number, (axis, (title, panels)) in enumerate(zip(axes, plots, strict=True)):
            if figure.form == "curves":
                _draw_curves(axis, figure, panels[0], curves)
            else:
                _draw_constants(axis, figure, panels, curves)
            axis.set_title(textwrap.fill(title, 75 // columns))
            # Plots that stand in a row or in a column name their axes once.
            if number + columns >= len(plots):
                axis.set_xlabel(figure.x_label if figure.form == "curves" else figure.constants)
            if number % columns == 0 or panels[0].y_label != plots[number - 1][1][0].y_label:
                axis.set_ylabel(textwrap.fill(panels[0].y_label, 18))
    finish(canvas, figure.title, caption)
    return canvas


def _plots(figure: Figure) -> list[tuple[str, list[Panel]]]:
    """The plots with their titles: one for each panel, or shared by the panels that say so."""
    plots: dict[str, list[Panel]] = {}
    for panel in figure.panels:
        plots.setdefault(panel.plot or panel.name, []).append(panel)
    return [(found[0].plot or found[0].title, found) for found in plots.values()]


def new_canvas(plots: int, columns: int, height: float = 0.0) -> tuple[Canvas, list[Axes]]:
    """A canvas with this many plots, which finds room for the texts around them.

    Args:
        plots: The number of plots.
        columns: The most that are side by side.
        height: The height of a plot in inches; by default from the number side by side.
    """
    columns = min(plots, columns)
    rows = -(-plots // columns)
    height = height or HEIGHTS[min(columns, len(HEIGHTS)) - 1]
    canvas = Canvas(figsize=(WIDTH, height * rows + 1.0), layout="constrained")
    axes = canvas.subplots(rows, columns, squeeze=False).flatten()
    for axis in axes[plots:]:
        axis.set_axis_off()
    return canvas, list(axes[:plots])


def finish(canvas: Canvas, title: str, caption: str) -> None:
    """Writes the title above the plots, and the caption and the legend below."""
    canvas.suptitle(textwrap.fill(plain(title), 84))
    lines = {str(line.get_label()): line for axis in canvas.axes for line in axis.lines}
    shown = {label: line for label, line in lines.items() if not label.startswith("_")}
    longest = max(map(len, shown), default=0)
    in_one = len(shown) if sum(len(label) + 8 for label in shown) < 100 else 0
    canvas.legend(
        list(shown.values()),
        list(shown),
        loc="outside lower center",
        ncols=in_one or max(1, 110 // (longest + 8)),
        title=textwrap.fill(plain(caption), 100),
    )


def in_caption(figure: Figure) -> str:
    """What the picture shows of the seeds."""
    if figure.form == "curves":
        shown = [[panel.shows(method.name) for method in figure.methods] for panel in figure.panels]
        crowded = [sum(methods) > MOST_BANDS for methods in shown]
        where = "as bars at the end" if all(crowded) else "as bands, or bars at the end"
        return f"mean, and 25-75% of the seeds {where if any(crowded) else 'as bands'}"
    claim = figure.claims[0]
    measured = METRICS[claim.metric]
    if claim.metric == "final":
        measured += f" (its last {claim.end:.0%})"
    interval = ", with the 95% interval" if figure.form == "constants" else ""
    return f"{measured}, averaged over the seeds{interval}"


def shown_curves(panel: Panel, method: str, curves: Sequence[Curve]) -> list[Curve]:
    """The curves of a method in a panel; none if the panel does not show the method."""
    if not panel.shows(method):
        return []
    return [curve for curve in curves if (curve.panel, curve.method) == (panel.name, method)]


def in_words(figure: Figure, curves: Sequence[Curve]) -> str:
    """A text alternative of the picture: where the mean of every curve ends, or its number."""
    ends = figure.form == "curves"
    measured = "at the end" if ends else METRICS[figure.claims[0].metric]
    sentences = [f"{'Learning curves. ' * ends}{figure.title.rstrip('?')}."]
    for panel in figure.panels:
        said = []
        for method in figure.methods:
            if found := shown_curves(panel, method.name, curves):
                values = [c.values[-1] for c in found] if ends else _scores(figure, found)
                said.append(f"{method.label} {short(float(np.mean(values)))}")
        sentences.append(f"{panel.title}, {panel.y_label}, {measured}: {'; '.join(said)}.")
    return " ".join(sentences)


def _scores(figure: Figure, curves: Sequence[Curve]) -> np.ndarray:
    """The number of each curve by which the figure's claims compare."""
    claim = figure.claims[0]
    return np.array([score(curve, claim.metric, claim.until, claim.end) for curve in curves])


# Learning curves.


def _draw_curves(axis: Axes, figure: Figure, panel: Panel, curves: Sequence[Curve]) -> None:
    shown = [
        (method, found)
        for method in figure.methods
        if (found := shown_curves(panel, method.name, curves))
    ]
    for place, (method, found) in enumerate(shown):
        style = figure.style(method)
        steps, values = np.array(found[0].steps), np.array([curve.values for curve in found])
        low, high = np.quantile(values, (0.25, 0.75), axis=0)
        mean = values.mean(axis=0)
        axis.plot(steps, mean, style.line, color=style.color, label=method.label, linewidth=1.6)
        if len(shown) <= MOST_BANDS:
            axis.fill_between(steps, low, high, color=style.color, alpha=0.18, linewidth=0)
        else:
            beside = steps[-1] + (0.04 + 0.025 * place) * (steps[-1] - steps[0])
            axis.vlines(beside, low[-1], high[-1], color=style.color, linewidth=1.2)
            axis.plot(beside, mean[-1], "o", color=style.color, markersize=2.5)
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    if panel.y_range is not None:
        room = 0.03 * (panel.y_range[1] - panel.y_range[0])
        low, high = axis.get_ylim()  # a curve may leave the range
        axis.set_ylim(min(low, panel.y_range[0] - room), max(high, panel.y_range[1] + room))


# One number for each curve.


class Points(NamedTuple):
    """A line in a plot against constants, with the place of each of its points."""

    label: str
    style: Style
    found: Mapping[float, Interval]


def draw_points(axis: Axes, ticks: Sequence[str], lines: Sequence[Points]) -> None:
    """Draws means with their intervals against constants, which are equally far apart."""
    for label, (color, line), found in lines:
        means = [one.mean for one in found.values()]
        axis.plot(list(found), means, "o", linestyle=line, color=color, label=label, markersize=4)
        for place, one in found.items():
            if one.low is not None and one.high is not None:
                axis.vlines(place, one.low, one.high, color=color, linewidth=1.4)
    axis.set_xticks(range(len(ticks)), ticks)
    letters = max(len(row) for tick in ticks for row in tick.splitlines())
    if letters * len(ticks) > 30:
        axis.tick_params(axis="x", rotation=45)


def _draw_constants(
    axis: Axes, figure: Figure, panels: Sequence[Panel], curves: Sequence[Curve]
) -> None:
    lines = []
    for number, (panel, style) in enumerate(zip(panels, LINES, strict=False)):
        aside = 0.12 * (number - (len(panels) - 1) / 2)  # else they hide each other
        found = {
            place + aside: mean_interval(_scores(figure, mine))
            for place, method in enumerate(figure.methods)
            if (mine := shown_curves(panel, method.name, curves))
        }
        lines.append(Points(panel.line or "_", style, found))
    draw_points(axis, [f"{method.constant:g}" for method in figure.methods], lines)


def _draw_table(axis: Axes, figure: Figure, curves: Sequence[Curve]) -> None:
    means = np.full((len(figure.panels), len(figure.methods)), np.nan)
    shares = means.copy()
    for row, panel in enumerate(figure.panels):
        for column, method in enumerate(figure.methods):
            if found := shown_curves(panel, method.name, curves):
                means[row, column] = _scores(figure, found).mean()
        low, high = panel.y_range or (np.nanmin(means[row]), np.nanmax(means[row]))
        shares[row] = (means[row] - low) / ((high - low) or 1)
    axis.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (row, column), mean in np.ndenumerate(means):
        dark = shares[row, column] > 0.6
        text = "" if np.isnan(mean) else f"{mean:.2f}"
        axis.text(column, row, text, ha="center", va="center", color="white" if dark else "black")
    labels = [method.label for method in figure.methods]
    axis.set_xticks(range(len(labels)), labels, rotation=45, ha="left", rotation_mode="anchor")
    axis.set_yticks(range(len(figure.panels)), [panel.title for panel in figure.panels])
    axis.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)
