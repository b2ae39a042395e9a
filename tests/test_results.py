"""The results that are kept with the source: judged again, and told truly."""

import json
import re
from pathlib import Path

import pytest

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift.lab import FIGURES
from rewardshift.lab.results import read_provenance, read_results
from rewardshift.report.verdicts import judge

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
FOLDERS = sorted(path.parent for path in RESULTS.rglob("claims.json"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_verdicts_follow_from_the_results(folder: Path) -> None:
    provenance = json.loads((folder / "provenance.json").read_text())
    claims = json.loads((folder / "claims.json").read_text())
    curves = read_results(folder)
    assert judge(FIGURES[folder.name], curves, provenance["preset"]) == claims
    assert {curve.seed for curve in curves} == set(range(provenance["seeds"]))
    assert re.fullmatch("[0-9a-f]{40}", provenance["commit"])  # one, and nothing changed since


def test_the_results_page_says_what_differs_from_the_paper() -> None:
    page = (ROOT / "docs" / "results.md").read_text()
    for name, figure in FIGURES.items():
        if figure.wording and RESULTS / name in FOLDERS:
            note = figure.presets[read_provenance(RESULTS / name)["preset"]].note
            assert figure.differs in page
            assert note in page


def test_make_reproduce_names_every_figure_that_is_kept() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for folder in FOLDERS:
        provenance = json.loads((folder / "provenance.json").read_text())
        seeds = rf"(?: --seeds {provenance['seeds']})"
        command = re.sub(seeds, "", provenance["command"]).replace(" --terminal zero", "")
        assert f"$(BIN)/{command} --out {folder.parent.relative_to(ROOT)}\n" in makefile
