"""The answer of a sweep: the return against the constant, the best one, and what follows."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rewardshift.lab.figure import Curve, Metric, Style
from rewardshift.lab.sweep.constants import METRICS, NONE, Constant, in_words, method_name
from rewardshift.lab.sweep.declaration import Sweep
from rewardshift.pictures import BLUE, GREY, ORANGE, as_file, drawing
from rewardshift.report.plots import Points, draw_points, finish, new_canvas
from rewardshift.report.statistics import MIN_SEEDS, Interval, mean_interval
from rewardshift.report.verdicts import reason, score

HEADS = ("constant", "whole training", "its end", "better than none, whole", "and at the end?")
COLUMNS = ("constant", "metric", "seeds", "mean", "low", "high", "verdict")


class Point(NamedTuple):
    """One constant's returns, by metric.

    Args:
        method: The name of its method.
        label: The constant in words.
        constant: The constant, `"auto"`, or those of members.
        seeds: The number of seeds.
        returns: The mean of the seeds with its 95% interval, for each of `METRICS`.
        verdicts: The verdict on "better than none" for each of `METRICS`; empty for none itself.
    """

    method: str
    label: str
    constant: Constant
    seeds: int
    returns: Mapping[Metric, Interval]
    verdicts: Mapping[Metric, str]


class Finding(NamedTuple):
    """The best constant by one metric.

    Args:
        metric: The metric.
        best: The constant with the highest mean.
        words: What was found, in a few sentences.
    """

    metric: Metric
    best: Point
    words: str


class Response(NamedTuple):
    """The answer of a sweep.

    Args:
        points: The constants with their returns, from the least to the most optimistic.
        findings: The best constant over the whole training, and at its end.
        page: The report.
    """

    points: list[Point]
    findings: list[Finding]
    page: Path

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """A table with a row for each constant; its head is `HEADS`."""
        return [
            (
                point.label,
                *(_said(point.returns[metric]) for metric in METRICS),
                *(point.verdicts.get(metric, "-") for metric in METRICS),
            )
            for point in self.points
        ]

    @property
    def advice(self) -> str:
        """A sentence about a confirmation, if a constant is best; otherwise an empty text."""
        if all(one.best.method == NONE for one in self.findings):
            return ""
        most = max(point.seeds for point in self.points)
        first = max(100, most)
        return (
            "The best of several is partly luck: to confirm it, train with it and with none on"
            f" seeds that the sweep has not seen: --first-seed {first}, or in Python"
            f" seeds=range({first}, {first + most})."
        )

    @property
    def warning(self) -> str:
        """A sentence about seeds, if there are too few for a verdict; otherwise an empty text."""
        least = min(point.seeds for point in self.points)
        if least >= MIN_SEEDS:
            return ""
        return (
            f"{least} seed{'s' * (least > 1)}: too few for a verdict, which needs {MIN_SEEDS}. The"
            f" same sweep with {MIN_SEEDS} seeds goes on from here."
        )


def response_of(
    sweep: Sweep, curves: Sequence[Curve], claims: Sequence[Mapping[str, Any]], page: Path
) -> Response:
    """The answer of a sweep with these results and judged claims."""
    points = points_of(sweep, curves, claims)
    return Response(points, [_finding(points, claims, metric) for metric in METRICS], page)


def points_of(
    sweep: Sweep, curves: Sequence[Curve], claims: Sequence[Mapping[str, Any]]
) -> list[Point]:
    """The constants with results: numbers from the least to the most optimistic, then others."""

    def place(constant: Constant) -> float:
        return -constant if isinstance(constant, float) else np.inf

    verdicts = {(claim["better"], claim["metric"]): str(claim["verdict"]) for claim in claims}
    points = []
    for constant in sorted(sweep.constants, key=place):
        name = method_name(constant)
        mine = [curve for curve in curves if curve.method == name]
        if mine:
            scores = {m: np.array([score(curve, m) for curve in mine]) for m in METRICS}
            points.append(
                Point(
                    name,
                    in_words(constant),
                    constant,
                    len(mine),
                    {metric: mean_interval(values) for metric, values in scores.items()},
                    {m: verdicts[name, m] for m in METRICS if (name, m) in verdicts},
                )
            )
    return points


def _finding(
    points: Sequence[Point], claims: Sequence[Mapping[str, Any]], metric: Metric
) -> Finding:
    means = {point.method: point.returns[metric].mean for point in points}
    best = max(points, key=lambda point: (means[point.method], point.method == NONE))
    none = next((point for point in points if point.method == NONE), None)
    when = METRICS[metric]
    words = f"Best {when}: {best.label}, mean return {_said(best.returns[metric])}"
    if none is not None and np.ptp(list(means.values())) == 0 and len(points) > 1:
        words = f"No best constant {when}: the mean return of each is {means[NONE]:.4g}."
    elif best.method == NONE:
        words += ". No constant has a higher mean than none."
    elif none is not None:
        (claim,) = [c for c in claims if (c["better"], c["metric"]) == (best.method, metric)]
        labels = {point.method: point.label for point in points}
        words += (
            f"; none {_said(none.returns[metric])}."
            f" Better than none? {str(claim['verdict']).capitalize()}:"
            f" {reason(dict(claim), labels)}"
        )
    return Finding(metric, best, words)


def _said(interval: Interval) -> str:
    if interval.low is None:
        return f"{interval.mean:.4g}"
    return f"{interval.mean:.4g} [{interval.low:.4g}, {interval.high:.4g}]"


def as_csv(points: Iterable[Point]) -> str:
    """The contents of `response.csv`: one row for each constant and metric."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for point in points:
        for metric in METRICS:
            numbers = ("" if n is None else f"{n:.7g}" for n in point.returns[metric])
            bias = point.constant
            constant = f"{bias:.7g}" if isinstance(bias, float) else point.method
            verdict = point.verdicts.get(metric, "")
            writer.writerow((constant, metric, point.seeds, *numbers, verdict))
    return text.getvalue()


def draw_response(points: Sequence[Point], title: str, caption: str) -> dict[str, bytes]:
    """The picture as the bytes of a PNG and an SVG; the same points give the same bytes."""
    ticks = [point.method for point in points]
    with drawing("response"):
        canvas, axes = new_canvas(len(METRICS), 2)
        axes[1].sharey(axes[0])
        for axis, (metric, when) in zip(axes, METRICS.items(), strict=True):
            line: dict[float, Interval] = {}
            others: dict[float, Interval] = {}
            for place, point in enumerate(points):
                chosen = line if isinstance(point.constant, float) else others
                chosen[place] = point.returns[metric]
            lines = [Points("_", Style(BLUE, "-"), line), Points("_", Style(ORANGE, ""), others)]
            draw_points(axis, ticks, lines)
            axis.set_title(when)
            axis.set_xlabel("constant b")
            for point in points:
                if point.method == NONE:
                    level = point.returns[metric].mean
                    axis.axhline(level, color=GREY, linestyle="--", linewidth=1)
        axes[0].set_ylabel("return")
        finish(canvas, title, caption)
        return {kind: as_file(canvas, kind) for kind in ("png", "svg")}
