"""The results of a figure on disk: finished units of work, and the table made of them.

`OUT/FIGURE/units/` holds one JSON file per finished unit, each with a checksum. `results.csv` and
`provenance.json` are written from them and can be written again. A seal in `provenance.json` shows
whether either was changed since.
"""

import csv
import io
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from rewardshift.errors import InputError, one_line, shown
from rewardshift.files import (
    DAMAGE,
    read_json,
    read_own,
    read_sealed,
    write_atomic,
    write_sealed,
)
from rewardshift.lab.figure import Curve, Figure

FORMAT = 1
RESULTS, PROVENANCE = "results.csv", "provenance.json"
SEAL = "seal"  # the key of their common checksum in the provenance
LARGEST_VALUE = float(np.finfo(np.float32).max)
COLUMNS = ("figure", "panel", "method", "seed", "step", "value")


@dataclass(frozen=True)
class UnitResult:
    """The result of a finished unit of work.

    Args:
        digest: The digest of its declaration.
        seeds: Its seeds.
        seconds: Its duration.
        made_with: The versions and the commit.
        curves: Its curves.
    """

    digest: str
    seeds: tuple[int, ...]
    seconds: float
    made_with: dict[str, Any]
    curves: list[Curve]


def unit_name(digest: str, seeds: Sequence[int]) -> str:
    """The name of a unit's files."""
    return f"{digest}-{'-'.join(map(str, seeds))}"


def save_unit(folder: Path, unit: UnitResult) -> Path:
    """Writes a finished unit into the figure's folder."""
    curves = [curve._asdict() for curve in unit.curves]
    body = {"format": FORMAT, **vars(unit), "curves": curves}
    path = folder / "units" / f"{unit_name(unit.digest, unit.seeds)}.json"
    path.parent.mkdir(exist_ok=True)
    write_sealed(path, body)
    return path


def load_units(folder: Path, digest: str) -> list[UnitResult]:
    """All finished units of a declaration; refuses a damaged one."""
    units = []
    for path in sorted((folder / "units").glob(f"{digest}-*.json")):
        try:
            body = read_sealed(path, version=FORMAT)
            if body["digest"] != digest:
                raise ValueError(f"it is of another declaration, {body['digest']!r}")
            curves = [Curve(**curve) for curve in body["curves"]]
            made = body["seconds"], body["made_with"]
            units.append(UnitResult(digest, tuple(body["seeds"]), *made, curves))
        except DAMAGE as error:
            raise InputError(
                f"the finished unit {str(path)!r} cannot be read: {one_line(error)}."
                " Move that file away, and its unit is run again; all others are kept"
            ) from error
    return units


def read_provenance(folder: Path) -> dict[str, Any]:
    """The provenance of a figure's results; refused if it or the results were changed since."""
    path = folder / PROVENANCE
    try:
        body = read_json(path)
        fits = body[SEAL] == _seal(folder, body)
    except DAMAGE as error:
        raise InputError(f"{str(path)!r} cannot be read: {one_line(error)}") from error
    if not fits:
        raise InputError(
            f"the seal of {str(folder / RESULTS)!r} and {PROVENANCE} does not fit: one of them was"
            f" changed after it was written; {command_again(folder)} writes both again from the"
            " finished units"
        )
    return body


def command_again(folder: Path) -> str:
    """The command that makes a figure's folder complete again, in words."""
    out = shlex.quote(str(folder.parent))
    if folder.name == "sweep":
        return f"the 'rewardshift sweep' with --out {out}"
    return f"'rewardshift reproduce {folder.name} --out {out}'"


def write_provenance(folder: Path, provenance: Mapping[str, Any]) -> None:
    """Writes `provenance.json`, sealed together with the `results.csv` beside it."""
    body = {**provenance, SEAL: _seal(folder, provenance)}
    write_atomic(folder / PROVENANCE, json.dumps(body, indent=2) + "\n")


def _seal(folder: Path, provenance: Mapping[str, Any]) -> str:
    """The checksum of a figure's results and of all of its provenance but the seal."""
    body = {key: value for key, value in provenance.items() if key != SEAL}
    text = json.dumps(body, sort_keys=True).encode()
    return sha256(read_own(folder / RESULTS) + text).hexdigest()


def write_results(folder: Path, figure: Figure, curves: Iterable[Curve]) -> None:
    """Writes `results.csv`: one row per point, in the order of the declaration."""
    panels = [panel.name for panel in figure.panels]
    methods = [method.name for method in figure.methods]
    found = list(curves)
    for curve in found:
        if curve.panel not in panels or curve.method not in methods:
            raise InputError(
                f"a unit in {str(folder)!r} has a curve of {shown(curve.method)} in"
                f" {shown(curve.panel)}, which {figure.name} has not"
            )
        if not np.abs(curve.values).max(initial=0.0) <= LARGEST_VALUE:  # also refuses NaN
            raise InputError(
                f"the curve of {curve.method!r} in {curve.panel!r}, seed {curve.seed}, has a value"
                " that is not finite in 32 bits"
            )
    ordered = sorted(found, key=lambda c: (panels.index(c.panel), methods.index(c.method), c.seed))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for curve in ordered:
        writer.writerows(
            (figure.name, curve.panel, curve.method, curve.seed, step, f"{value:.7g}")
            for step, value in zip(curve.steps, curve.values, strict=True)
        )
    write_atomic(folder / RESULTS, text.getvalue())


def read_results(folder: Path) -> list[Curve]:
    """The curves of a figure's results; refused if they were changed since they were written."""
    read_provenance(folder)
    points: dict[tuple[str, str, int], tuple[list[int], list[float]]] = {}
    rows = list(csv.reader(io.StringIO(read_own(folder / RESULTS).decode(), newline="")))
    for _, panel, method, seed, step, value in rows[1:]:
        steps, values = points.setdefault((panel, method, int(seed)), ([], []))
        steps.append(int(step))
        values.append(float(value))
    return [Curve(*key, *lists) for key, lists in points.items()]


def merge_made_with(units: Sequence[UnitResult]) -> dict[str, Any]:
    """The versions and commits of the units; where they differ, a list of all."""
    merged: dict[str, Any] = {}
    for key in units[0].made_with:
        answers = list(dict.fromkeys(unit.made_with.get(key) for unit in units))
        merged[key] = answers[0] if len(answers) == 1 else answers
    return merged
