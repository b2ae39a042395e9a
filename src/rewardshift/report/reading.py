"""A folder of results as the report reads it: what is judged, how much, and what it means."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rewardshift.errors import InputError, one_line
from rewardshift.files import DAMAGE, read_json
from rewardshift.lab.figure import Curve, Figure, Source, rounded
from rewardshift.lab.results import RESULTS, SEAL, read_provenance, read_results
from rewardshift.lab.sweep.declaration import figures_in
from rewardshift.report.verdicts import SOURCES, VERDICTS, judge
from rewardshift.shift import Shift, Terminal

Claims = Mapping[str, list[dict[str, Any]]]

CLAIMS, READING = "claims.json", "reading.json"
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


class Judged(NamedTuple):
    """The results of a figure, judged.

    Args:
        folder: The folder of the results.
        figure: The figure, with the tasks of their preset.
        provenance: The contents of `provenance.json`.
        curves: The curves.
        claims: All claims of the figure with their verdicts, as in `claims.json`.
    """

    folder: Path
    figure: Figure
    provenance: dict[str, Any]
    curves: list[Curve]
    claims: list[dict[str, Any]]


def judge_folder(folder: Path) -> Judged:
    """Judges the results in the folder of a figure."""
    figure, provenance = figures_in(folder.parent)[folder.name], read_provenance(folder)
    preset, curves = provenance["preset"], read_results(folder)
    return Judged(folder, figure.at(preset), provenance, curves, judge(figure, curves, preset))


class Report(NamedTuple):
    """The figures that a folder of results is about, by name.

    Args:
        figures: All of them: its sweep, or else all that are known.
        judged: Those with results.
        claims: The claims of all, judged. Those of a figure without results are not tested, at the
            cost of its preset `quick`.
    """

    figures: Mapping[str, Figure]
    judged: dict[str, Judged]
    claims: Claims

    @property
    def summary(self) -> Summary:
        """The verdicts on every figure, with a last row for all of them together."""
        summary = {}
        for source in SOURCES:
            counted = [count(self.figures[name], of, source) for name, of in self.claims.items()]
            rows = [row for row in counted if any(row.counts)]
            counts = tuple(sum(row.counts[place] for row in rows) for place in range(len(VERDICTS)))
            summary[source] = [*rows, Counts("all", counts, sum(row.core_hours for row in rows))]
        return summary


def read_report(out: Path, known: Iterable[Judged] = ()) -> Report:
    """Judges the figures whose results in `out` are complete.

    Args:
        out: The folder of the figures' folders.
        known: Those that are judged already.
    """
    figures, done = figures_in(out), {judged.folder.name: judged for judged in known}
    judged = {
        name: done[name] if name in done else judge_folder(out / name)
        for name in figures
        # Of its files, the claims are written last.
        if name in done or all((out / name / file).exists() for file in (RESULTS, CLAIMS))
    }
    claims = {
        name: judged[name].claims if name in judged else judge(figure, [], "quick")
        for name, figure in figures.items()
    }
    return Report(figures, judged, claims)
