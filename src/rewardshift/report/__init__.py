"""Verdicts, pictures and the page, all made from the results on disk."""

import json
import shlex
from collections.abc import Iterable
from pathlib import Path

from rewardshift.errors import InputError
from rewardshift.files import write_atomic
from rewardshift.lab.results import RESULTS, command_again
from rewardshift.lab.sweep.declaration import SWEEP, figures_in, read_sweep
from rewardshift.report.page import render_page
from rewardshift.report.plots import draw, in_caption
from rewardshift.report.reading import (
    CLAIMS,
    Judged,
    Report,
    judge_folder,
    read_report,
    treatments,
)
from rewardshift.report.response import as_csv, draw_response, points_of


def write_figure(folder: Path) -> Judged:
    """Judges a folder's results, and writes `claims.json`, `figure.png` and `figure.svg`."""
    judged = judge_folder(folder)
    figure, provenance, curves = judged.figure, judged.provenance, judged.curves
    missing = {
        (panel.name, method.name)
        for panel in figure.panels
        for method in figure.methods
        if panel.shows(method.name)
    } - {(curve.panel, curve.method) for curve in curves}
    if missing and "missing" not in provenance:
        panel, method = min(missing)
        raise InputError(
            f"{str(folder / RESULTS)!r} has no rows of method {method!r} in panel {panel!r};"
            f" run {command_again(folder)} again"
        )
    preset = f"preset {provenance['preset']}, " if len(figure.presets) > 1 else ""
    caption = f"{preset}{provenance['seeds']} seeds, {in_caption(figure)}"
    if figure.takes_terminal:
        caption += f", {treatments(figure, provenance['terminal'])}"
    if provenance["note"]:
        caption += f"; {provenance['note']}"
    if "missing" in provenance:
        caption += f"; MISSING: {'; '.join(provenance['missing'])}"
    for kind, content in draw(figure, curves, caption).items():
        write_atomic(folder / f"figure.{kind}", content)
    if folder.name == SWEEP:
        _write_response(judged)
    write_atomic(folder / CLAIMS, json.dumps(judged.claims, indent=2) + "\n")  # written last
    return judged


def _write_response(judged: Judged) -> None:
    """Writes a sweep's `response.csv`, `response.png` and `response.svg`."""
    folder, figure = judged.folder, judged.figure
    sweep = read_sweep(folder)
    points = points_of(sweep, judged.curves, judged.claims)
    treated = treatments(figure, sweep.subject.terminal)
    caption = f"mean of the seeds and its 95% interval, {treated}; dashed: none"
    for kind, content in draw_response(points, figure.title, caption).items():
        write_atomic(folder / f"response.{kind}", content)
    write_atomic(folder / "response.csv", as_csv(points))


def write_page(out: Path, page: Path | None = None, known: Iterable[Judged] = ()) -> Path:
    """Writes the page about every figure in `out`, by default to `out/report.html`.

    Args:
        out: The folder of the figures' folders.
        page: The file to write.
        known: The figures in `out` that are judged already.
    """
    page = page or out / "report.html"
    write_atomic(page, render_page(read_report(out, known)))
    return page


def write_report(out: Path) -> Report:
    """Writes the verdicts, the pictures and the page again from the results in `out`."""
    folders = [out / name for name in figures_in(out) if (out / name / RESULTS).exists()]
    if not folders:
        raise InputError(
            f"no results in {str(out)!r}; run 'rewardshift reproduce FIGURE --out"
            f" {shlex.quote(str(out))}' first"
        )
    report = read_report(out, map(write_figure, folders))
    write_atomic(out / "report.html", render_page(report))
    return report
