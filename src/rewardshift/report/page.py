"""One self-contained page: every claim with its verdict, every figure with its curves.

The HTML is in `templates/`, which escape every text that comes from a file.
"""

import base64
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any

from rewardshift.errors import needs
from rewardshift.files import read_own
from rewardshift.lab.figure import SCENARIOS, Curve, Figure, Panel, duration, rounded
from rewardshift.lab.sweep.declaration import SWEEP, read_sweep
from rewardshift.report.plots import in_words, shown_curves
from rewardshift.report.reading import (
    TITLES,
    Claims,
    Judged,
    Report,
    differences,
    read_reading,
    treatments,
)
from rewardshift.report.response import HEADS, response_of
from rewardshift.report.verdicts import (
    METRICS,
    SOURCES,
    SYMBOLS,
    effect,
    evidence,
    reason,
    verdict_words,
)

with needs("paper"):
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

TEMPLATES = Path(__file__).with_name("templates")
DASHES = {"-": "", "--": "6 3", "-.": "7 3 1.5 3", ":": "1.5 3"}


def render_page(report: Report) -> str:
    """The page about a folder of results."""
    figures = report.figures
    rows = {
        name: [_row(figures[name], claim) for claim in claims]
        for name, claims in report.claims.items()
    }
    every = [row for of in rows.values() for row in of]
    effects = [row["detectable"] for row in every if row["detectable"]]
    style, script = ((TEMPLATES / name).read_text() for name in ("page.css", "page.js"))
    return (
        _environment()
        .get_template("page.html")
        .render(
            style=Markup(style),
            style_hash=_hash(style),
            script=Markup(script),
            script_hash=_hash(script),
            is_sweep=SWEEP in figures,
            summary=report.summary,
            detectable=median(effects) if effects else None,
            scenarios=_scenarios(report, rows),
            rows={source: [row for row in every if row["source"] == source] for source in SOURCES},
            unrun=[figure for name, figure in figures.items() if name not in report.judged],
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.filters |= {"duration": duration, "rounded": rounded}
    environment.globals |= {"SYMBOLS": SYMBOLS, "TITLES": TITLES, "HEADS": HEADS}
    return environment


def _hash(text: str) -> str:
    """The hash by which the page's policy allows its script and its style, and no others."""
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}"


def _scenarios(report: Report, rows: Claims) -> list[dict[str, Any]]:
    """The scenarios, known ones first: the question, the verdicts, the answers and the figures."""
    names = {figure.scenario for figure in report.figures.values()}
    known = [name for name in SCENARIOS if name in names]
    scenarios = []
    for number, scenario in enumerate([*known, *sorted(names - set(known))]):
        mine = [name for name, figure in report.figures.items() if figure.scenario == scenario]
        found = [row for name in mine for row in rows[name]]
        scenarios.append(
            {
                "id": f"question-{number}",
                "name": scenario,
                "question": SCENARIOS.get(scenario, scenario),
                "verdicts": {
                    source: [row["verdict"] for row in found if row["source"] == source]
                    for source in SOURCES
                },
                "sections": [
                    _section(report.judged[name], rows[name])
                    for name in mine
                    if name in report.judged
                ],
            }
        )
    return scenarios


def _row(figure: Figure, claim: dict[str, Any]) -> dict[str, Any]:
    """A claim with the texts of its cells."""
    titles = {panel.name: panel.title for panel in figure.panels}
    task = titles.get(claim["panel"], claim["panel"])
    source = "the paper's claim" if claim["source"] == "paper" else "our claim"
    until = "" if claim["until"] is None else f" to step {claim['until']:,}"
    return claim | {
        "figure": figure.name,
        "scenario": figure.scenario,
        "task": task,
        "compared": f"{task}, by {METRICS[claim['metric']]}{until}; {source}",
        "verdict_words": verdict_words(claim),
        "why": reason(claim, {method.name: method.label for method in figure.methods}),
        "numbers": "-" if claim["seeds"] is None else evidence(claim),
        "effect": "-" if claim["seeds"] is None else effect(claim),
        "bar": _bar(claim),
    }


def _bar(claim: dict[str, Any]) -> dict[str, Any] | None:
    """The places of an interval: of the wins from 0 to 1, or of a difference within two margins."""
    if claim["low"] is None or claim["margin"] == 0:
        return None
    if claim["margin"] is None:
        places = [100 * claim[key] for key in ("low", "probability", "high")]
    else:
        wide = 4 * claim["margin"]
        places = [50 + 100 * claim[key] / wide for key in ("low", "difference", "high")]
    low, middle, high = (f"{min(100, max(0, place)):.1f}" for place in places)
    return {
        "low": low,
        "middle": middle if 0 <= places[1] <= 100 else None,
        "high": high,
        "margin": claim["margin"] is not None,
        "left": places[0] < 0,
        "right": places[2] > 100,  # it leaves the axis
    }


def _section(judged: Judged, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A figure with its words, its picture, its curves, its claims and its provenance."""
    folder, figure, provenance, curves, _ = judged
    answer = response = None
    if folder.name == SWEEP:
        answer = response_of(read_sweep(folder), curves, rows, folder.parent / "report.html")
        response = _picture(folder, "response")
    return {
        "figure": figure,
        "provenance": provenance,
        "origin": {key: _as_text(value) for key, value in provenance.items()},
        "answer": answer,
        "response": response,
        "reading": read_reading(folder),
        "treatments": treatments(figure, provenance["terminal"]),
        "differences": differences(figure, provenance),
        "words": in_words(figure, curves),
        "picture": _picture(folder, "figure"),
        "curves": _curves(figure, curves),
        "rows": rows,
    }


def _as_text(value: Any) -> str:
    if isinstance(value, dict):
        value = [f"{name} {version}" for name, version in value.items()]
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _picture(folder: Path, name: str) -> str:
    """The source of a picture within the page."""
    data = base64.b64encode(read_own(folder / f"{name}.svg")).decode()
    return f"data:image/svg+xml;base64,{data}"


def _curves(figure: Figure, curves: Sequence[Curve]) -> dict[str, Any]:
    """Every seed of every curve that the figure shows, for the page's script."""
    return {
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
        "columns": min(figure.columns, len(figure.panels)),
    }


def _panel(figure: Figure, panel: Panel, curves: Sequence[Curve]) -> dict[str, Any]:
    shown = {
        method.name: found
        for method in figure.methods
        if (found := shown_curves(panel, method.name, curves))
    }
    return {
        "title": panel.title,
        "y": panel.y_label,
        "range": panel.y_range,
        "steps": next((list(found[0].steps) for found in shown.values()), []),
        "seeds": {
            name: [[float(f"{value:.4g}") for value in curve.values] for curve in found]
            for name, found in shown.items()
        },
    }
