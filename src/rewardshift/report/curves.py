"""The curves of a figure on the page: numbers for its script, words for its picture."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from rewardshift.lab.figure import Curve, Figure, Panel

DASHES = {"-": "", "--": "6 3", "-.": "7 3 1.5 3", ":": "1.5 3"}


def as_json(figure: Figure, curves: Sequence[Curve]) -> str:
    """Every seed of every curve that the figure shows, safe within a script element."""
    data = {
        "x": figure.x_label,
        "methods": [
            {
                "name": method.name,
                "label": method.label,
                "color": figure.style(method).color,
                "dash": DASHES.get(figure.style(method).line, ""),
            }
            for method in figure.methods
        ],
        "panels": [_panel(figure, panel, curves) for panel in figure.panels],
    }
    # Within a script element only "<" can end it; in JSON it stands in strings alone.
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _panel(figure: Figure, panel: Panel, curves: Sequence[Curve]) -> dict[str, Any]:
    seeds = {
        method.name: [curve for curve in curves if _is_of(curve, panel, method.name)]
        for method in figure.methods
    }
    return {
        "title": panel.title,
        "y": panel.y_label,
        "range": panel.y_range,
        # While a figure is at work, some curves are shorter than others.
        "steps": max(
            (list(curve.steps) for mine in seeds.values() for curve in mine), key=len, default=[]
        ),
        "seeds": {
            name: [[float(f"{value:.4g}") for value in curve.values] for curve in mine]
            for name, mine in seeds.items()
            if mine
        },
    }


def _is_of(curve: Curve, panel: Panel, method: str) -> bool:
    return panel.shows(method) and (curve.panel, curve.method) == (panel.name, method)


def in_words(figure: Figure, curves: Sequence[Curve]) -> str:
    """A text alternative of the picture: where the mean of every curve ends."""
    sentences = [f"Learning curves. {figure.title}."]
    for panel in figure.panels:
        ends = []
        for method in figure.methods:
            mine = [curve for curve in curves if _is_of(curve, panel, method.name)]
            last = [curve.values[-1] for curve in mine if curve.values]
            if last:
                ends.append(f"{method.label} {np.mean(last):.3g}")
        sentences.append(f"{panel.title}, {panel.y_label} at the end: {'; '.join(ends)}.")
    return " ".join(sentences)
