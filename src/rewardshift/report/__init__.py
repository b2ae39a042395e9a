"""Verdicts, pictures and the page, all made from the results on disk."""

import json
import shlex
from pathlib import Path
from typing import Any

from rewardshift.errors import InputError
from rewardshift.files import write_atomic
from rewardshift.lab.figure import Curve
from rewardshift.lab.results import command_again, read_provenance, read_results
from rewardshift.lab.sweep.declaration import SWEEP, figures_in, read_sweep
from rewardshift.report.page import render_page
from rewardshift.report.plots import draw, in_caption
from rewardshift.report.reading import (
    Summary,
    count_all,
    read_claims,
    treatments,
)
from rewardshift.report.response import as_csv, draw_response, points_of
from rewardshift.report.verdicts import judge


def write_figure(folder: Path) -> list[dict[str, Any]]:
    """Writes `claims.json`, `figure.png` and `figure.svg` from a folder's results.

    Returns:
        The claims with their verdicts.
    """
    whole = figures_in(folder.parent)[folder.name]
    provenance = read_provenance(folder)
    figure = whole.at(provenance["preset"])
    curves = read_results(folder)
    missing = {
        (panel.name, method.name)
        for panel in figure.panels
        for method in figure.methods
        if panel.shows(method.name)
    } - {(curve.panel, curve.method) for curve in curves}
    if missing and "missing" not in provenance:
        panel, method = min(missing)
        raise InputError(
            f"{str(folder / 'results.csv')!r} has no rows of method {method!r} in panel {panel!r};"
            f" run {command_again(folder)} again"
        )
    claims = judge(whole, curves, provenance["preset"])
    preset = f"preset {provenance['preset']}, " if len(whole.presets) > 1 else ""
    caption = f"{preset}{provenance['seeds']} seeds, {in_caption(figure)}"
    if whole.takes_terminal:
        caption += f", {treatments(figure, provenance['terminal'])}"
    if provenance["note"]:
        caption += f"; {provenance['note']}"
    if "missing" in provenance:
        caption += f"; MISSING: {'; '.join(provenance['missing'])}"
    for kind, content in draw(figure, curves, caption).items():
        write_atomic(folder / f"figure.{kind}", content)
    if folder.name == SWEEP:
        _write_response(folder, curves, claims)
    write_atomic(folder / "claims.json", json.dumps(claims, indent=2) + "\n")  # written last
    return claims


def _write_response(folder: Path, curves: list[Curve], claims: list[dict[str, Any]]) -> None:
    """Writes a sweep's `response.csv`, `response.png` and `response.svg`."""
    sweep = read_sweep(folder)
    points = points_of(sweep, curves, claims)
    treated = treatments(sweep.figure(), sweep.subject.terminal)
    caption = f"mean of the seeds and its 95% interval, {treated}; dashed: none"
    for kind, content in draw_response(points, sweep.figure().title, caption).items():
        write_atomic(folder / f"response.{kind}", content)
    write_atomic(folder / "response.csv", as_csv(points))


def write_page(out: Path, page: Path | None = None) -> Path:
    """Writes the page about every figure in `out`, by default to `out/report.html`."""
    page = page or out / "report.html"
    write_atomic(page, render_page(judged_folders(out), figures_in(out)))
    return page


def write_report(out: Path) -> Path:
    """Writes the verdicts, the pictures and the page again from the results in `out`."""
    folders = _figure_folders(out)
    if not folders:
        raise InputError(
            f"no results in {str(out)!r}; run 'rewardshift reproduce FIGURE --out"
            f" {shlex.quote(str(out))}' first"
        )
    for folder in folders:
        write_figure(folder)
    return write_page(out)


def summary(out: Path) -> Summary:
    """Counts the verdicts on the claims of every figure, from the results in `out`."""
    figures = figures_in(out)
    return count_all(read_claims(judged_folders(out), figures), figures)


def _figure_folders(out: Path) -> list[Path]:
    return [out / name for name in figures_in(out) if (out / name / "results.csv").exists()]


def judged_folders(out: Path) -> list[Path]:
    """The folders of the figures in `out` that have results and verdicts."""
    return [folder for folder in _figure_folders(out) if (folder / "claims.json").exists()]
