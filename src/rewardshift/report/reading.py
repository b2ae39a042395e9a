"""What we make of a figure's results, in words, and the page's short answer to each question."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from rewardshift.errors import InputError, one_line
from rewardshift.files import DAMAGE, read_json
from rewardshift.lab.figure import SCENARIOS, Figure
from rewardshift.lab.results import SEAL
from rewardshift.report.rows import SYMBOLS, cell, table
from rewardshift.report.summary import TITLES, VERDICTS
from rewardshift.report.verdicts import SOURCES

Claims = Mapping[str, list[dict[str, Any]]]

READING = "reading.json"
SHORT = ("Question", *TITLES.values(), "Answer so far (seeds, preset)")


class Reading(NamedTuple):
    """What somebody made of a figure's results.

    Args:
        answer: One sentence: what the results say.
        why: The reason, and what is open.
    """

    answer: str
    why: str


def read_reading(folder: Path) -> Reading | None:
    """The reading of a figure's results; None if it has none, or one of other results.

    A reading names the seal of the results that it was written for, because no command can
    write it again when they change.
    """
    path = folder / READING
    if not path.exists():
        return None
    try:
        body = read_json(path)
        sealed = read_json(folder / "provenance.json")
        found = Reading(str(body["answer"]), str(body["why"]))
        return found if body[SEAL] == sealed.get(SEAL) else None
    except DAMAGE as error:
        raise InputError(
            f"{str(path)!r} cannot be shown: {one_line(error)}; it needs an answer, why, and the"
            " seal of the results"
        ) from error


def reading_html(folder: Path) -> str:
    """The reading of a figure in its section of the page."""
    reading = read_reading(folder)
    if reading is None:
        return ""
    return f"""<p><b>{escape(reading.answer)}</b> {escape(reading.why)}</p>
"""


def scenarios_of(figures: Mapping[str, Figure]) -> list[str]:
    """The scenarios of figures: the known ones in their order, then others."""
    found = {figure.scenario for figure in figures.values()}
    return [*(name for name in SCENARIOS if name in found), *sorted(found - set(SCENARIOS))]


def short_html(folders: Sequence[Path], claims: Claims, figures: Mapping[str, Figure]) -> str:
    """A table of the scenarios: the question, the number of verdicts, the answers so far."""
    judged = {folder.name: read_reading(folder) for folder in folders}
    rows = []
    for scenario in scenarios_of(figures):
        names = [name for name, figure in figures.items() if figure.scenario == scenario]
        found = [claim for name in names for claim in claims[name]]
        answers = "".join(
            _answer(name, judged[name], _size(claims[name])) for name in names if name in judged
        )
        cells = (
            f"<b>{escape(scenario)}</b> <small>{escape(SCENARIOS.get(scenario, ''))}</small>",
            *(_counts([c for c in found if c["source"] == source]) for source in SOURCES),
            f"<ul>{answers}</ul>" if answers else "Not run yet.",
        )
        rows.append(f"<tr>{''.join(map(cell, SHORT, cells))}</tr>\n")
    return table("In short", SHORT, rows)


def _counts(claims: list[dict[str, Any]]) -> str:
    """The verdicts on these claims, with their numbers."""
    verdicts = [claim["verdict"] for claim in claims]
    found = [verdict for verdict in VERDICTS if verdict in verdicts]
    return "<br>".join(_count(verdict, verdicts.count(verdict)) for verdict in found) or "none"


def _count(verdict: str, number: int) -> str:
    kind = verdict.replace(" ", "-")
    return f'<span class="number {kind}">{SYMBOLS[verdict]} {number} {verdict}</span>'


def _size(claims: list[dict[str, Any]]) -> str:
    """The seeds and the preset behind an answer."""
    seeds = sorted({str(claim["seeds"]) for claim in claims if claim.get("seeds") is not None})
    presets = sorted({str(claim.get("preset")) for claim in claims})
    return f"{' or '.join(seeds)} seeds, {' or '.join(presets)}"


def _answer(name: str, reading: Reading | None, size: str) -> str:
    said = "see its verdicts." if reading is None else reading.answer
    return (
        f'<li><a href="#{escape(name)}">{escape(name)}</a>: {escape(said)}'
        f" <small>({escape(size)})</small></li>"
    )
