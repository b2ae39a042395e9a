"""Verdicts, pictures and the page, made of results that are known."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift.cli import main
from rewardshift.errors import InputError
from rewardshift.lab import FIGURES
from rewardshift.lab.figure import Curve, Figure
from rewardshift.lab.results import write_provenance, write_results
from rewardshift.report import write_figure, write_page, write_report
from rewardshift.report.page import render_page
from rewardshift.report.plots import as_canvas, draw
from rewardshift.report.reading import read_report

FIGURE = FIGURES["figure1"]
VALUES = (0.0, 0.1, 0.2, 0.9, 1.0)
LEVELS = {
    "epsilon-greedy": 0.1,
    "count": 0.5,
    "count-evaluated-first": 0.5,
    "shift": 0.9,
    "count+shift": 0.5,
}


def known_curves(figure: Figure = FIGURE, seeds: int = 8) -> list[Curve]:
    """Methods that differ by their levels, everywhere, and seeds that differ a little."""
    return [
        Curve(panel.name, method.name, seed, [0, 10, 20], [LEVELS[method.name] + seed / 100] * 3)
        for panel in figure.panels
        for method in figure.methods
        if panel.shows(method.name)
        for seed in range(seeds)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A figure's folder with results, as `reproduce` leaves it before judging."""
    path = tmp_path / "figure1"
    path.mkdir()
    keep(path, known_curves())
    return path


def keep(folder: Path, curves: list[Curve], figure: Figure = FIGURE) -> None:
    """Writes results as `reproduce` does."""
    write_results(folder, figure, curves)
    words = {"note": "<b>cut</b>", "command": "rewardshift reproduce figure1"}
    write_provenance(folder, {"preset": "quick", "seeds": 8, "terminal": "zero", **words})


def test_claims_json_has_the_promised_keys(folder: Path) -> None:
    write_figure(folder)
    claims = json.loads((folder / "claims.json").read_text())
    promised = {
        *("id", "panel", "statement", "source", "better", "worse", "metric", "until", "end"),
        *("alike", "allowance", "bound", "edge", "margin", "preset", "verdict", "probability"),
        *("low", "high"),
        *("p_value", "p_corrected", "p_opposite", "p_opposite_corrected", "difference"),
        *("better_iqm", "worse_iqm", "seeds", "detectable", "lifetimes", "core_hours"),
    }
    for claim in claims:
        assert set(claim) == promised
        assert claim["verdict"] in ("supported", "contradicted", "inconclusive")
        assert (claim["seeds"], claim["preset"]) == (8, "quick")
        value = claim["probability"] if claim["bound"] is None else claim["difference"]
        assert 0 <= claim["low"] <= value <= claim["high"] <= 1
        assert 1 < claim["detectable"] < 3
        assert claim["core_hours"] is None


def test_a_panel_need_not_show_every_method(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    panel = replace(FIGURE.panels[1], methods=("shift", "epsilon-greedy"))
    figure = replace(FIGURE, panels=(FIGURE.panels[0], panel))
    monkeypatch.setitem(FIGURES, "figure1", figure)
    keep(folder, known_curves(figure), figure)
    assert len(write_figure(folder).claims) == len(figure.claims)
    _, axis = as_canvas(figure, known_curves(), "").axes  # the curves are of more methods
    assert [line.get_label() for line in axis.lines] == ["epsilon-greedy", "shift -0.02"]


def test_the_report_prints_its_summary(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder.parent)]) == 0
    said = capsys.readouterr().out
    assert "The paper's claims" in said
    assert "curiosity-ablation" in said
    assert re.search(r"figure1 +2 +2 +1 +0", said)
    page = (folder.parent / "report.html").read_text()
    assert page.index("The paper&#39;s claims") < page.index("Our claims") < page.index("<img")


def test_the_list_tells_lifetimes_and_tasks_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = FIGURES["maze-sizes"]
    quick = replace(sizes.presets["quick"], seconds=9000, left_out={"S20": 7.5, "S15": 1.0})
    monkeypatch.setitem(FIGURES, "maze-sizes", replace(sizes, presets={"quick": quick}))
    assert main(["list"]) == 0
    said = capsys.readouterr().out
    assert "trains for 0.98 to 40 lifetimes of a shift" in said  # auto
    assert "leaves out S20 (about 7.5 core-hours), S15 (about 1 core-hours)" in said
    assert "quick    8 seeds, 4 units of work, about 2 h\n" in said


def test_the_same_results_give_the_same_bytes(folder: Path) -> None:
    files = [folder / name for name in ("claims.json", "figure.png", "figure.svg")]
    files.append(folder.parent / "report.html")
    write_report(folder.parent)
    first = [path.read_bytes() for path in files]
    write_report(folder.parent)
    assert [path.read_bytes() for path in files] == first


@pytest.mark.parametrize("name", ["figure1", "maze-sizes"])
def test_a_picture_shows_every_method_in_its_colour(name: str, tmp_path: Path) -> None:
    figure = FIGURES[name]
    pictures = draw(figure, known_curves(figure), "a caption " * 30)
    (tmp_path / "figure.png").write_bytes(pictures["png"])
    for method in figure.methods:
        assert contains_colour(tmp_path / "figure.png", figure.style(method).color)
    svg = pictures["svg"].decode()
    assert "<dc:date>" not in svg
    paths = re.findall(r' d="([^"]*)"', svg)
    assert paths
    assert not any(re.search(r"\d\.\d\d", path) for path in paths)  # rounded
    assert "scale(0.015625)" in svg  # of a letter, which is not


def contains_colour(path: Path, color: str) -> bool:
    pixels = (matplotlib.image.imread(path)[..., :3] * 255).round().astype(int)
    wanted = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    return bool((np.abs(pixels - wanted).max(axis=-1) <= 2).sum() > 20)


class References(HTMLParser):
    """Everything in a page that would be fetched, and where its links lead."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("src", "href", "srcset")]
        assert tag not in ("link", "iframe")


def test_the_page_is_self_contained_and_escaped(folder: Path) -> None:
    write_report(folder.parent)
    text = (folder.parent / "report.html").read_text()
    references = References()
    references.feed(text)
    assert references.found
    outside = {found for found in references.found if not found.startswith(("data:image/", "#"))}
    assert outside == {"https://arxiv.org/abs/2209.07288"}  # a link
    assert text.count(outside.pop()) == text.count('<a href="https:') == 1
    assert "<b>cut</b>" not in text
    assert "&lt;b&gt;cut&lt;/b&gt;" in text
    for claim in FIGURE.claims:
        assert claim.statement in text


def test_a_half_drawn_figure_is_not_shown(folder: Path) -> None:
    write_figure(folder)
    (folder / "claims.json").unlink()  # written last: without it the figure is not complete
    assert '<section class="figure"' not in write_page(folder.parent).read_text()


def test_the_band_is_between_the_quartiles_and_the_line_is_the_mean() -> None:
    curves = [Curve("success", "shift", s, [0, 1], [float(v)] * 2) for s, v in enumerate(VALUES)]
    axis, _ = as_canvas(FIGURE, curves, "").axes
    line = np.asarray(axis.lines[0].get_ydata(), float)
    np.testing.assert_allclose(line, float(np.mean(VALUES)))
    heights = np.asarray(axis.collections[0].get_paths()[0].vertices)[:, 1]
    assert (heights.min(), heights.max()) == tuple(np.quantile(VALUES, (0.25, 0.75)))


def test_many_methods_have_bars_beside_their_curves_instead_of_bands() -> None:
    figure = FIGURES["curiosity-explained"]
    levels = [method.name for method in figure.methods]
    curves = [
        Curve("MultiRoom", name, seed, [0, 100], [0.0, levels.index(name) + value])
        for name in levels
        for seed, value in enumerate(VALUES)
    ]
    axis = as_canvas(figure, curves, "").axes[0]
    quartiles = np.quantile(VALUES, (0.25, 0.75))
    for level, bar in enumerate(axis.collections):
        ends = np.asarray(bar.get_paths()[0].vertices)
        assert (ends[:, 0] > 100).all()
        np.testing.assert_allclose(ends[:, 1], level + quartiles)
    assert len(axis.collections) == 7


def test_a_picture_against_constants_shows_what_the_claims_compare() -> None:
    figure = FIGURES["offline-mechanism"]
    curves = [
        Curve(panel.name, method.name, seed, [0, 1], [9.0, (method.constant or 0.0) + seed])
        for panel in figure.panels
        for method in figure.methods
        for seed in range(2)
    ]
    axes = as_canvas(figure, curves, "").axes
    titles = [axis.get_title() for axis in axes]
    assert len(titles) == 9  # panels of one data set share a plot
    words = [title.replace("\xa0", " ") for title in titles]
    assert words[0] == "CartPole, poor\n(no shift: 0)"
    assert words[-1].endswith("(no shift: 1)")
    zero, absorbing = axes[0].lines
    assert [zero.get_label(), absorbing.get_label()] == ["terminal zero", "terminal absorbing"]
    ticks = [tick.get_text() for tick in axes[0].get_xticklabels()]
    assert ticks == ["-5", "-2", "-1", "0", "1", "2"]
    ends = [float(tick) + 0.5 for tick in ticks]
    np.testing.assert_allclose(np.asarray(zero.get_ydata(), float), ends)


def test_a_table_has_a_row_for_each_task_and_a_column_for_each_method() -> None:
    figure = FIGURES["terminal-treatment"]
    curves = [
        Curve(panel.name, method.name, 0, [1, 2], [0.0, row / 10 + column / 100])
        for row, panel in enumerate(figure.panels)
        for column, method in enumerate(figure.methods)
    ]
    (axis,) = as_canvas(figure, curves, "").axes
    cells = [text.get_text() for text in axis.texts]
    assert len(cells) == 80
    assert (cells[0], cells[-1]) == ("0.00", "0.39")  # the mean of the curve
    assert [tick.get_text() for tick in axis.get_yticklabels()] == [
        panel.title for panel in figure.panels
    ]


def test_an_interval_is_told_in_its_own_digits_and_may_leave_its_axis(folder: Path) -> None:
    write_figure(folder)
    report = read_report(folder.parent)
    (claim,) = [claim for claim in report.claims["figure1"] if claim["bound"] is not None]
    claim |= {"difference": 0.00012, "low": -0.00051, "high": 0.7}
    text = render_page(report)
    assert "mean 0.00012 [-0.00051, 0.7]" in text
    assert text.count('d="M96 2L100 6L96 10"') == 2  # in the figure, and among all claims
    assert 'd="M4 2L0 6L4 10"' not in text


def test_results_of_a_preset_that_is_gone_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_figure(folder)
    presets = {"paper": FIGURE.presets["paper"]}
    monkeypatch.setitem(FIGURES, "figure1", replace(FIGURE, presets=presets))
    for show in (write_figure, lambda folder: write_page(folder.parent)):
        with pytest.raises(InputError, match="one of paper for figure1, got 'quick'"):
            show(folder)


def test_missing_rows_are_named(folder: Path) -> None:
    kept = [curve for curve in known_curves() if curve.method != "count"]
    keep(folder, kept)
    with pytest.raises(InputError, match="no rows of method 'count'"):
        write_figure(folder)


def test_results_that_were_changed_are_told_by_their_seal(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, provenance = folder / "results.csv", folder / "provenance.json"
    command = ["report", str(folder.parent)]
    assert main(command) == 0
    whole, said = results.read_text(), provenance.read_text()
    lines = whole.splitlines()
    lines[-1] = lines[-1].rpartition(",")[0] + ",9"
    results.write_text("\n".join(lines) + "\n")
    assert main(command) == 2
    assert "the seal of" in capsys.readouterr().err
    results.write_text(whole)
    provenance.write_text(said.replace('"note": "', '"note": "better '))
    assert main(command) == 2
    assert "was changed after it was written; 'rewardshift reproduce" in capsys.readouterr().err
    provenance.write_text(said)
    assert main(command) == 0
