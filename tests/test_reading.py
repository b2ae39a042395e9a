"""What we make of results: shown beside these results only, and never as anything but text."""

import json
import re
import shutil
from pathlib import Path

import pytest

from rewardshift.errors import InputError
from rewardshift.lab.figure import SCENARIOS
from rewardshift.report import write_page
from rewardshift.report.reading import READING, read_reading, read_report

RESULTS = Path(__file__).parents[1] / "results"
FOLDERS = sorted(path.parent for path in RESULTS.glob("*/claims.json"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_result_has_a_reading_that_was_written_for_it(folder: Path) -> None:
    reading = read_reading(folder)
    assert reading is not None, f"{folder / READING}: an answer, why, and the seal of the results"
    assert reading.answer.endswith(".")
    assert not re.search(r"\d+ of \d+|\d%", reading.answer + reading.why)  # the tables say these


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(RESULTS / "figure1", tmp_path / "figure1")
    return tmp_path / "figure1"


def rewrite(folder: Path, **changes: object) -> None:
    body = json.loads((folder / READING).read_text())
    (folder / READING).write_text(json.dumps(body | changes))


def test_the_page_begins_with_the_answers(folder: Path) -> None:
    rewrite(folder, answer="It <b>holds</b>.")
    page = write_page(folder.parent).read_text()
    short, _, rest = page.partition("How to read the verdicts")
    assert short.count("It &lt;b&gt;holds&lt;/b&gt;.") == 1
    assert rest.count("It &lt;b&gt;holds&lt;/b&gt;.") == 1
    assert all(f"<b>{question}</b>" in short for question in SCENARIOS.values())
    summary = read_report(folder.parent).summary
    total = summary["paper"][-1].counts
    assert f"{sum(total[:-1])} of {sum(total)} so far" in re.sub(r"\s+", " ", short)
    counted = re.findall(r"(\d+) not tested</span>", short)
    assert sum(map(int, counted)) == sum(rows[-1].counts[-1] for rows in summary.values())


def test_a_reading_of_other_results_is_not_shown(folder: Path) -> None:
    rewrite(folder, answer="It held once.", seal="0" * 64)
    assert read_reading(folder) is None
    page = write_page(folder.parent).read_text()
    assert "It held once" not in page
    assert '<a href="#figure1">Figure 1: exploration in the maze</a>: see its verdicts.' in page


@pytest.mark.parametrize("text", ["{", "[]", '{"answer": "no more"}'])
def test_a_damaged_reading_is_told(folder: Path, text: str) -> None:
    (folder / READING).write_text(text)
    with pytest.raises(InputError, match="cannot be shown"):
        write_page(folder.parent)
