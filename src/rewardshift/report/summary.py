"""The counts of verdicts by figure, with the paper's claims separate from ours."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rewardshift.checks import checked
from rewardshift.errors import InputError, one_line
from rewardshift.files import DAMAGE, as_object, read_own
from rewardshift.lab import FIGURES
from rewardshift.lab.figure import Figure, Source, rounded
from rewardshift.lab.results import command_again
from rewardshift.report.verdicts import SOURCES, judge

VERDICTS = ("supported", "not supported", "inconclusive", "not tested")
COLUMNS = ("figure", *VERDICTS, "core-hours")  # for the claims that are not tested
TITLES: dict[Source, str] = {"paper": "The paper's claims", "ours": "Our claims"}


class Row(NamedTuple):
    """The verdicts on the claims of one figure.

    Args:
        figure: The name of the figure.
        counts: The number of claims for each of `VERDICTS`.
        core_hours: The approximate core-hours to test the untested claims.
    """

    figure: str
    counts: tuple[int, ...]
    core_hours: float

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text, one cell for each of `COLUMNS`."""
        hours = rounded(self.core_hours) if self.counts[-1] else ""
        return self.figure, *map(str, self.counts), hours


# The fields of a claim in `claims.json` that are texts; all others are numbers or empty.
TEXTS = (
    *("id", "panel", "statement", "source", "better", "worse"),
    *("metric", "preset", "verdict"),
)
Summary = dict[Source, list[Row]]


def read_claims(
    folders: Sequence[Path], figures: Mapping[str, Figure] = FIGURES
) -> dict[str, list[dict[str, Any]]]:
    """The judged claims of every figure, by its name.

    Args:
        folders: The folders of the judged figures. The claims of all other figures count as not
            tested, at the cost of their usual preset.
        figures: All figures by name.
    """
    judged = {folder.name: _read_claims(folder, figures[folder.name]) for folder in folders}
    return {
        name: judged[name] if name in judged else judge(figure, [], figure.usual_preset)
        for name, figure in figures.items()
    }


def count_all(
    claims: Mapping[str, list[dict[str, Any]]], figures: Mapping[str, Figure] = FIGURES
) -> Summary:
    """The verdicts on every figure, with a last row for all of them together."""
    rows = [count(figures[name], judged) for name, judged in claims.items()]
    return {source: _with_total([row[source] for row in rows]) for source in SOURCES}


def count(figure: Figure, claims: list[dict[str, Any]]) -> dict[Source, Row]:
    """Counts the verdicts on a figure's judged claims."""
    return {
        source: _count(figure, [claim for claim in claims if claim["source"] == source])
        for source in SOURCES
    }


def _count(figure: Figure, claims: list[dict[str, Any]]) -> Row:
    verdicts = [claim["verdict"] for claim in claims]
    tasks = {panel.name: panel.task for panel in figure.panels}
    hours = {}  # by task, or None for all tasks that the preset runs
    for claim in claims:
        if claim["verdict"] == "not tested":
            task = tasks[claim["panel"]]
            left_out = task in figure.presets[claim["preset"]].left_out
            hours[task if left_out else None] = claim["core_hours"]
    return Row(figure.name, tuple(map(verdicts.count, VERDICTS)), float(sum(hours.values())))


def _with_total(rows: list[Row]) -> list[Row]:
    shown = [row for row in rows if any(row.counts)]
    counts = tuple(map(sum, zip(*(row.counts for row in rows), strict=True)))
    return [*shown, Row("all", counts, sum(row.core_hours for row in rows))]


def _read_claims(folder: Path, figure: Figure) -> list[dict[str, Any]]:
    try:
        body = checked("claims", list, json.loads(read_own(folder / "claims.json")))
        claims = [_checked_claim(claim) for claim in body]
        count(figure, claims)  # which a damaged file does not allow
        return claims
    except DAMAGE as error:
        raise unreadable(folder, error) from error


def _checked_claim(body: Any) -> dict[str, Any]:
    """The claim; ValueError or KeyError if its fields are of other types."""
    claim = as_object(body)
    for name in TEXTS:
        checked(name, str, claim[name])
    for name in set(claim) - set(TEXTS):
        checked(name, float | None, claim[name])
    return claim


def unreadable(folder: Path, error: Exception) -> InputError:
    """The error for a figure's folder with damaged files."""
    return InputError(
        f"{str(folder)!r} cannot be shown: {one_line(error)}; 'rewardshift report"
        f" {folder.parent}' makes all but provenance.json again, {command_again(folder)} that too"
    )


def markdown(summary: Summary) -> str:
    """The summary as tables in Markdown."""
    return "\n\n".join(
        "\n".join(
            f"| {' | '.join(cells)} |"
            for cells in (
                (TITLES[source], *COLUMNS[1:]),
                ["---"] * len(COLUMNS),
                *(row.cells for row in rows),
            )
        )
        for source, rows in summary.items()
    )
