"""A figure's folder as the report reads it: provenance, judged claims, and what they mean."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

from rewardshift.checks import Finite, check, checked
from rewardshift.errors import InputError, one_line
from rewardshift.files import DAMAGE, as_object, read_json, read_own
from rewardshift.lab import FIGURES
from rewardshift.lab.figure import Figure, Source, rounded
from rewardshift.lab.results import SEAL, command_again
from rewardshift.report.statistics import MIN_SEEDS
from rewardshift.report.verdicts import DECLARED, MEASURED, SOURCES, VERDICTS, judge
from rewardshift.shift import Shift, Terminal

Claims = Mapping[str, list[dict[str, Any]]]

READING = "reading.json"
COLUMNS = ("figure", *VERDICTS, "core-hours")  # for the claims that are not tested
DIFFERS = "Differs from the paper's setting: "
TITLES: dict[Source, str] = {"paper": "The paper's claims", "ours": "Our claims"}


@dataclass(frozen=True)
class Provenance:
    """The part of `provenance.json` that the report explains."""

    preset: str
    seeds: int
    terminal: Terminal
    note: str
    missing: tuple[str, ...]
    command: str

    def __post_init__(self) -> None:
        check(self)


def read_provenance(folder: Path, figure: Figure) -> Provenance:
    """The provenance of a figure's results; InputError if it is damaged."""
    path = folder / "provenance.json"
    try:
        body = read_json(path)
        needed = {key: body[key] for key in ("preset", "seeds", "terminal", "note")}
        missing = checked("missing", tuple[str, ...], body.get("missing", ()))
        provenance = Provenance(**needed, missing=missing, command=body.get("command", ""))
        known = figure.presets
        if provenance.preset not in known:
            raise ValueError(f"preset {provenance.preset!r} is not one of {', '.join(known)}")
        return provenance
    except DAMAGE as error:
        raise InputError(f"{str(path)!r} cannot be read: {one_line(error)}") from error


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


def differences(figure: Figure, provenance: Provenance) -> str:
    """What differs from the paper's setting in a figure's results, in sentences."""
    saved = f"To save computing time: {provenance.note}." if provenance.note else ""
    if not figure.wording:
        return saved
    found = [f"{figure.differs}."] if figure.differs else []
    if figure.takes_terminal and provenance.terminal == "absorbing":
        found.append("Terminal states are absorbing, where the paper's shift stops at them.")
    found += [saved] if saved else []
    return f"{DIFFERS}{' '.join(found) or 'only the number of seeds.'}"


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
    judged = {folder.name: _read_claims(folder, figures[folder.name]) for folder in folders}
    return {
        name: judged[name] if name in judged else judge(figure, [], figure.usual_preset)
        for name, figure in figures.items()
    }


def _read_claims(folder: Path, figure: Figure) -> list[dict[str, Any]]:
    try:
        claims = checked("claims", list, json.loads(read_own(folder / "claims.json")))
        for claim in map(as_object, claims):
            _check_claim(claim)
        count(figure, claims)  # needs panels and presets of the figure
        return claims
    except DAMAGE as error:
        raise InputError(
            f"{str(folder)!r} cannot be shown: {one_line(error)}; 'rewardshift report"
            f" {folder.parent}' makes all but provenance.json again, {command_again(folder)} that"
            " too"
        ) from error


def _check_claim(claim: dict[str, Any]) -> None:
    """Raises ValueError or KeyError if `judge` does not write such an entry."""
    tested = claim["verdict"] != "not tested"
    for key, kind in DECLARED.items():
        checked(key, kind, claim[key])
    for key, kind in MEASURED.items():
        checked(key, kind if tested else NoneType, claim[key])
    if claim["worse"] is None and claim["bound"] is None:
        raise ValueError("a claim without a second method needs a bound")
    if not tested:
        checked("core_hours", Finite, claim["core_hours"])
        return
    better, low, high = claim["margin"] is None, claim["low"], claim["high"]
    if better != (claim["alike"] is None and claim["bound"] is None) or (
        better and claim["probability"] is None
    ):
        raise ValueError("a claim has no margin or no probability")
    if (low is None, high is None) != (not better and claim["seeds"] == 1,) * 2:
        raise ValueError("a claim has no interval")
    if claim["verdict"] != "inconclusive" and claim["seeds"] < MIN_SEEDS:
        raise ValueError("a claim has a verdict with too few seeds")


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
    counted = [count(figures[name], judged) for name, judged in claims.items()]
    summary = {}
    for source in SOURCES:
        rows = [found[source] for found in counted if any(found[source].counts)]
        counts = tuple(sum(row.counts[place] for row in rows) for place in range(len(VERDICTS)))
        summary[source] = [*rows, Counts("all", counts, sum(row.core_hours for row in rows))]
    return summary


def count(figure: Figure, claims: list[dict[str, Any]]) -> dict[Source, Counts]:
    """Counts the verdicts on a figure's judged claims."""
    tasks = {panel.name: panel.task for panel in figure.panels}
    counted = {}
    for source in SOURCES:
        mine = [claim for claim in claims if claim["source"] == source]
        hours = {}  # by task, or None for all tasks that the preset runs
        for claim in mine:
            if claim["verdict"] == "not tested":
                task = tasks[claim["panel"]]
                left_out = task in figure.presets[claim["preset"]].left_out
                hours[task if left_out else None] = claim["core_hours"]
        counts = tuple(map([claim["verdict"] for claim in mine].count, VERDICTS))
        counted[source] = Counts(figure.name, counts, float(sum(hours.values())))
    return counted


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
