"""Verdicts, pictures and the page, made of results that are known."""

import json
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas

from rewardshift.errors import InputError
from rewardshift.experiments import FIGURES
from rewardshift.experiments.figure import Claim, Curve, Figure
from rewardshift.experiments.results import write_results
from rewardshift.report import write_figure, write_page, write_report
from rewardshift.report.page import render_page
from rewardshift.report.plots import STYLES, _draw_method, draw
from rewardshift.report.verdicts import comparison, evidence, judge, score

FIGURE = FIGURES["figure1"]
VALUES = (0.0, 0.1, 0.2, 0.9, 1.0)
LEVELS = {"epsilon-greedy": 0.1, "count": 0.5, "shift": 0.9, "count+shift": 0.5}


def known_curves(figure: Figure = FIGURE, seeds: int = 5) -> list[Curve]:
    """Methods that differ by their levels, everywhere, and seeds that differ a little."""
    return [
        Curve(panel.name, method.name, seed, [0, 10, 20], [LEVELS[method.name] + seed / 100] * 3)
        for panel in figure.panels
        for method in figure.methods
        for seed in range(seeds)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A figure's folder with results, as `reproduce` leaves it before judging."""
    path = tmp_path / "figure1"
    path.mkdir()
    write_results(path / "results.csv", FIGURE, known_curves())
    provenance = {"preset": "quick", "seeds": 5, "terminal": "zero", "note": "<b>cut</b>"}
    (path / "provenance.json").write_text(json.dumps(provenance))
    return path


def test_a_curve_is_scored_by_its_mean_or_its_last_tenth() -> None:
    curve = Curve("p", "m", 0, range(0, 200, 10), range(20))
    assert score(curve, "auc") == 9.5
    assert score(curve, "final") == 18.5
    assert score(curve, "auc", until=40) == 2.0
    fallen = Curve("p", "m", 0, [1, 2, 3], [1.0, 5.0, 2.0])
    assert (score(fallen, "best"), score(fallen, "drop")) == (5.0, -3.0)
    assert score(curve, "best") - score(curve, "final") == -score(curve, "drop")
    assert score(Curve("p", "m", 0, [1, 2], [1.0, 2.0]), "final") == 2.0


def verdicts(figure: Figure, curves: list[Curve]) -> dict[str, str]:
    return {claim["id"]: claim["verdict"] for claim in judge(figure, curves, "quick")}


def test_claims_are_judged_in_the_direction_of_their_panel() -> None:
    found = verdicts(FIGURE, known_curves())
    assert found["shift-above-count"] == found["count-above-epsilon-greedy"] == "supported"
    assert found["count+shift-above-count"] == "inconclusive"
    assert found["shift-nearer-to-optimal-q"] == "not supported"  # a distance: lower is better


def test_alike_claims_use_their_margin() -> None:
    alike = Claim("alike", "success", "Alike.", "count", "count+shift", margin=0.1)
    apart = Claim("apart", "success", "Alike.", "count", "shift", margin=0.1)
    figure = replace(FIGURE, claims=(alike, apart))
    assert verdicts(figure, known_curves()) == {"alike": "supported", "apart": "not supported"}
    texts = {c["id"]: (comparison(c), evidence(c)) for c in judge(figure, known_curves(), "quick")}
    assert texts["alike"][0] == "count like count+shift (auc)"
    assert texts["alike"][1].endswith("margin 0.1")


def test_claims_json_has_the_promised_keys(folder: Path) -> None:
    write_figure(folder)
    claims = json.loads((folder / "claims.json").read_text())
    promised = {
        *("id", "panel", "statement", "better", "worse", "metric", "verdict"),
        *("probability", "low", "high", "seeds", "preset"),
    }
    for claim in claims:
        assert promised <= set(claim)
        assert claim["verdict"] in ("supported", "not supported", "inconclusive")
        assert (claim["seeds"], claim["preset"]) == (5, "quick")
        assert 0 <= claim["low"] <= claim["probability"] <= claim["high"] <= 1


def test_the_same_results_give_the_same_bytes(folder: Path) -> None:
    page = write_report(folder.parent)
    names = ["claims.json", "figure.png", "figure.svg"]
    first = {name: (folder / name).read_bytes() for name in names}, page.read_bytes()
    write_report(folder.parent)
    again = {name: (folder / name).read_bytes() for name in names}, page.read_bytes()
    assert first == again


def test_the_picture_shows_every_method_in_its_colour(tmp_path: Path) -> None:
    path = tmp_path / "figure.png"
    path.write_bytes(draw(FIGURE, known_curves(), "a caption")["png"])
    for method in FIGURE.methods:
        assert contains_colour(path, STYLES[method.name].color)


def contains_colour(path: Path, color: str) -> bool:
    pixels = (matplotlib.image.imread(path)[..., :3] * 255).round().astype(int)
    wanted = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    return bool((np.abs(pixels - wanted).max(axis=-1) <= 2).sum() > 20)


def test_every_figure_can_be_drawn() -> None:
    for figure in (FIGURES["figure1"], FIGURES["maze-sizes"]):
        pictures = draw(figure, known_curves(figure), "a caption " * 30)
        assert pictures["png"].startswith(b"\x89PNG")
        assert b"</svg>" in pictures["svg"]
        assert b"<dc:date>" not in pictures["svg"]


class References(HTMLParser):
    """Everything in a page that would be fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("src", "href", "srcset")]
        assert tag not in ("script", "link", "iframe")


def test_the_page_is_self_contained_and_escaped(folder: Path) -> None:
    text = write_report(folder.parent).read_text()
    references = References()
    references.feed(text)
    assert references.found
    assert all(reference.startswith("data:image/") for reference in references.found)
    assert "<b>cut</b>" not in text
    assert "&lt;b&gt;cut&lt;/b&gt;" in text
    for claim in FIGURE.claims:
        assert claim.statement in text


def test_names_and_statements_are_escaped(folder: Path) -> None:
    write_figure(folder)
    path = folder / "claims.json"
    claims: list[dict[str, Any]] = json.loads(path.read_text())
    claims[0] |= {"statement": "<script>1</script>", "panel": "<i>", "better": "<u>"}
    path.write_text(json.dumps(claims))
    text = render_page([folder])
    assert not any(tag in text for tag in ("<script>", "<i>", "<u>"))


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_browser_shows_the_page_with_its_picture(folder: Path, tmp_path: Path) -> None:
    page, screen = write_report(folder.parent), tmp_path / "screen.png"
    subprocess.run(
        [
            "chromium",
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--screenshot={screen}",
            "--window-size=1000,900",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    assert contains_colour(screen, STYLES["shift"].color)
    assert contains_colour(screen, "#116329")  # a supported claim


def test_a_half_drawn_figure_is_not_shown(folder: Path) -> None:
    write_figure(folder)
    (folder / "claims.json").unlink()  # written last: without it the figure is not complete
    assert "figure1" not in write_page(folder.parent).read_text()
    write_figure(folder)
    (folder / "claims.json").write_text("[")
    with pytest.raises(InputError, match="cannot be shown"):
        write_page(folder.parent)


def test_a_smoke_run_decides_nothing() -> None:
    verdicts = {claim["verdict"] for claim in judge(FIGURE, known_curves(), "smoke")}
    assert verdicts == {"inconclusive"}


def test_the_band_is_between_the_quartiles_and_the_line_is_the_mean() -> None:
    axis = Canvas().subplots()
    curves = [Curve("success", "shift", s, [0, 1], [float(v)] * 2) for s, v in enumerate(VALUES)]
    _draw_method(axis, FIGURE.methods[2], curves)
    line = np.asarray(axis.lines[0].get_ydata(), float)
    np.testing.assert_allclose(line, float(np.mean(VALUES)))
    heights = np.asarray(axis.collections[0].get_paths()[0].vertices)[:, 1]
    assert (heights.min(), heights.max()) == tuple(np.quantile(VALUES, (0.25, 0.75)))


def test_missing_rows_are_named(folder: Path) -> None:
    kept = [curve for curve in known_curves() if curve.method != "count"]
    write_results(folder / "results.csv", FIGURE, kept)
    with pytest.raises(InputError, match="no rows of method 'count'"):
        write_figure(folder)


@pytest.mark.parametrize("content", ["", "[]", "{}", "null"])
def test_a_damaged_provenance_is_named(folder: Path, content: str) -> None:
    (folder / "provenance.json").write_text(content)
    with pytest.raises(InputError, match="provenance"):
        write_figure(folder)


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no results"):
        write_report(tmp_path)
