"""A figure's folder as the report reads it: provenance, judged claims, and what they mean."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rewardshift.checks import checked
from rewardshift.errors import InputError, one_line, shown
from rewardshift.files import DAMAGE, as_object, read_json, read_own
from rewardshift.lab import FIGURES
from rewardshift.lab.figure import Figure, Source, rounded
from rewardshift.lab.results import SEAL, read_provenance
from rewardshift.report.statistics import MIN_SEEDS
from rewardshift.report.verdicts import CLAIMED, MEASURED, SOURCES, VERDICTS, judge
from rewardshift.shift import Shift, Terminal

Claims = Mapping[str, list[dict[str, Any]]]

READING = "reading.json"
COLUMNS = ("figure", *VERDICTS, "core-hours")  # for the claims that are not tested
TITLES: dict[Source, str] = {"paper": "The paper's claims", "ours": "Our claims"}


def treatments(figure: Figure, terminal: Terminal) -> str:
    """The treatment of terminal states in words, with those of methods that have their own."""
    words = [f"terminal {terminal}"]
    for method in figure.methods:
        settings = [
            getattr(task, "methods", {}).get(method.name, {}) for task in figure.tasks.values()
        ]
        shifts = [getattr(method.agent, "shift", method.agent), *(s.get("shift") for s in settings)]
        own = {getattr(shift, "terminal", Shift.terminal) for shift in shifts} - {Shift.terminal}
        words += [f"{one} for {method.label}" for one in sorted(own)]
    return ", ".join(words)


def differences(figure: Figure, provenance: Mapping[str, Any]) -> str:
    """What differs from the paper's setting in a figure's results, in sentences."""
    saved = f"To save computing time: {provenance['note']}." if provenance["note"] else ""
    if not figure.wording:
        return saved
    found = [f"{figure.differs}."] if figure.differs else []
    if figure.takes_terminal and provenance["terminal"] == "absorbing":
        found.append("Terminal states are absorbing, where the paper's shift stops at them.")
    found += [saved] if saved else []
    return f"Differs from the paper's setting: {' '.join(found) or 'only the number of seeds.'}"


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


def read_claims(folders: Sequence[Path], figures: Mapping[str, Figure] = FIGURES) -> Claims:
    """The judged claims of every figure, by its name.

    Args:
        folders: The folders of the judged figures. The claims of all other figures count as not
            tested, at the cost of their usual preset.
        figures: All figures by name.
    """
    judged = {folder.name: folder for folder in folders}
    return {
        name: _read_claims(judged[name], figure)
        if name in judged
        else judge(figure, [], figure.usual_preset)
        for name, figure in figures.items()
    }


def _read_claims(folder: Path, figure: Figure) -> list[dict[str, Any]]:
    """The claims of a figure as it declares them, with what `claims.json` says was found."""
    declared = judge(figure, [], read_provenance(folder)["preset"])
    try:
        kept = checked("claims", list, json.loads(read_own(folder / "claims.json")))
        return [_with_found(*pair) for pair in zip(declared, map(as_object, kept), strict=True)]
    except DAMAGE as error:
        raise InputError(
            f"{str(folder / 'claims.json')!r} cannot be shown: {one_line(error)};"
            f" 'rewardshift report {folder.parent}' makes it again"
        ) from error


def _with_found(claim: dict[str, Any], kept: dict[str, Any]) -> dict[str, Any]:
    """The claim with its measured part; ValueError or KeyError if that does not fit it."""
    if any(kept[key] != claim[key] for key in CLAIMED if key != "statement"):
        raise ValueError(f"it has {shown(kept['id'])} in the place of the claim {claim['id']!r}")
    if kept["verdict"] == "not tested":
        return claim
    found = {key: checked(key, kind, kept[key]) for key, kind in MEASURED.items()}
    better = claim["alike"] is None and claim["bound"] is None
    spread = better or found["seeds"] > 1
    if (
        better != (found["margin"] is None)
        or (better and found["probability"] is None)
        or (found["low"] is not None, found["high"] is not None) != (spread, spread)
        or (found["verdict"] != "inconclusive" and found["seeds"] < MIN_SEEDS)
    ):
        raise ValueError(f"the numbers of the claim {claim['id']!r} do not fit together")
    return claim | found


class Counts(NamedTuple):
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
        """The counts as text, one cell for each of `COLUMNS`."""
        hours = rounded(self.core_hours) if self.counts[-1] else ""
        return self.figure, *map(str, self.counts), hours


Summary = dict[Source, list[Counts]]


def count_all(claims: Claims, figures: Mapping[str, Figure] = FIGURES) -> Summary:
    """The verdicts on every figure, with a last row for all of them together."""
    summary = {}
    for source in SOURCES:
        counted = [count(figures[name], judged, source) for name, judged in claims.items()]
        rows = [row for row in counted if any(row.counts)]
        counts = tuple(sum(row.counts[place] for row in rows) for place in range(len(VERDICTS)))
        summary[source] = [*rows, Counts("all", counts, sum(row.core_hours for row in rows))]
    return summary


def count(figure: Figure, claims: list[dict[str, Any]], source: Source) -> Counts:
    """Counts the verdicts on a figure's judged claims of one source."""
    tasks = {panel.name: panel.task for panel in figure.panels}
    verdicts = [claim["verdict"] for claim in claims if claim["source"] == source]
    hours = {}  # by task, or None for all tasks that the preset runs
    for claim in claims:
        if claim["source"] == source and claim["verdict"] == "not tested":
            task = tasks[claim["panel"]]
            left_out = task in figure.presets[claim["preset"]].left_out
            hours[task if left_out else None] = claim["core_hours"]
    return Counts(figure.name, tuple(map(verdicts.count, VERDICTS)), float(sum(hours.values())))
