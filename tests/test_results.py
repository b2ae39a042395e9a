"""The results that are kept with the source: judged again, and told truly."""

import json
import re
from pathlib import Path

import pytest

from rewardshift.experiments import FIGURES
from rewardshift.experiments.results import read_results
from rewardshift.report.verdicts import judge

ROOT = Path(__file__).parents[1]
FOLDERS = sorted(path.parent for path in (ROOT / "results").rglob("claims.json"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_verdicts_follow_from_the_results(folder: Path) -> None:
    provenance = json.loads((folder / "provenance.json").read_text())
    claims = json.loads((folder / "claims.json").read_text())
    curves = read_results(folder / "results.csv")
    figure = FIGURES[folder.name].at(provenance["preset"])
    assert judge(figure, curves, provenance["preset"]) == claims
    assert {curve.seed for curve in curves} == set(range(provenance["seeds"]))
    assert "+changes" not in str(provenance["commit"])  # several, if units are of several


def test_the_maze_holds() -> None:
    """The part of the paper that is known to hold."""
    claims = json.loads((ROOT / "results" / "maze-sizes" / "claims.json").read_text())
    assert {claim["verdict"] for claim in claims} == {"supported"}
    assert len(claims) == 10


def test_the_readme_counts_right() -> None:
    readme = (ROOT / "README.md").read_text()
    rows = re.findall(r"`rewardshift reproduce (\S+)[^`]*` \| (\d+) of (\d+) \|", readme)
    assert len(rows) >= 2
    for name, supported, total in rows:
        claims = json.loads((ROOT / "results" / name / "claims.json").read_text())
        verdicts = [claim["verdict"] for claim in claims]
        assert (verdicts.count("supported"), len(verdicts)) == (int(supported), int(total))
