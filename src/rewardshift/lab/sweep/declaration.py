"""A sweep's declaration, as a figure and in its folder.

The declaration is in `OUT/sweep/sweep.json`, so a sweep is reported without the arguments that made
it, and another one is refused there.
"""

import contextlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from rewardshift.checks import check
from rewardshift.errors import InputError, one_line
from rewardshift.files import (
    DAMAGE,
    LEFTOVER,
    LOCK,
    as_object,
    held,
    read_sealed,
    refuse_links,
    writable_folder,
    write_sealed,
)
from rewardshift.lab import FIGURES
from rewardshift.lab.figure import Claim, Figure, Method, Panel, Preset
from rewardshift.lab.runner import Plan
from rewardshift.lab.sweep.agents import SweptAgent
from rewardshift.lab.sweep.constants import (
    METRICS,
    NONE,
    Constant,
    in_order,
    in_words,
    method_name,
)
from rewardshift.lab.sweep.trials import SweptTrial
from rewardshift.training.budgets import OfflineBudget
from rewardshift.training.config import build, part_from_json, part_to_json

SWEEP = "sweep"  # the name of the figure, of its preset and of its folder
DECLARATION = "sweep.json"
FORMAT = 5


@dataclass(frozen=True)
class Sweep:
    """An agent or a trial, with several constants.

    Args:
        subject: What is trained.
        constants: The constants. 0, no shift, is added if it is missing.
    """

    subject: SweptAgent | SweptTrial
    constants: tuple[Constant, ...]

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "constants", in_order(self.constants))
        for constant in self.constants:
            self.subject.with_constant(constant)  # refuses one that the agent does not take

    def figure(self, seeds: int = 1, jobs: int = 1, *, rows: bool = False) -> Figure:
        """The sweep as a figure.

        Args:
            seeds: The number of seeds.
            jobs: The number of units of work that run at once; rows are divided among them.
            rows: Whether all numbers are rows of one program.
        """
        subject = self.subject
        return Figure(
            name=SWEEP,
            title=f"Constants for {subject.name} on {subject.task}",
            tasks={SWEEP: subject},
            panels=(Panel("return", subject.task, "return", SWEEP, "evaluation_return"),),
            methods=tuple(
                Method(
                    method_name(constant),
                    in_words(constant),
                    subject.with_constant(constant),
                    apart=not isinstance(constant, float),
                )
                for constant in self.constants
            ),
            claims=tuple(
                Claim(
                    f"{method_name(constant)}-above-none-{metric}",
                    "return",
                    f"A shift of {method_name(constant)} is better than none {when}.",
                    better=method_name(constant),
                    worse=NONE,
                    metric=metric,
                    source="ours",
                )
                for constant in self.constants[1:]
                for metric, when in METRICS.items()
            ),
            presets={SWEEP: Preset(seeds=seeds, budget=subject.budget, seconds=0.0)},
            x_label="updates" if isinstance(subject.budget, OfflineBudget) else "environment steps",
            run=subject.run,
            unit_spans=("method",) if rows else (),
            seeds_per_unit=math.ceil(seeds / jobs) if rows else subject.seeds_together,
            scenario=SWEEP,
        )

    def to_json(self) -> dict[str, Any]:
        """The declaration in `sweep.json`."""
        kept = [one.name for one in fields(self.subject) if one.compare]
        given = {name: getattr(self.subject, name) for name in kept}
        return {
            name: part_to_json(value)
            for name, value in (given | {"constants": self.constants}).items()
        }

    @property
    def digest(self) -> str:
        """A short hash of the declaration."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return sha256(text.encode()).hexdigest()[:12]

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> "Sweep":
        """The sweep from the result of `to_json`. A trial comes without its function."""
        subject = {name: value for name, value in body.items() if name != "constants"}
        kind = SweptAgent if "agent" in body else SweptTrial
        return cls(build(kind, subject), part_from_json(body["constants"]))


@contextlib.contextmanager
def sweep_folder(out: Path, sweep: Sweep) -> Iterator[Path]:
    """The folder of a sweep within `out`, held by this process.

    It refuses a folder with another sweep, with results of figures, or with something else.
    """
    folder = out / SWEEP
    if not _holds_sweep(out):
        if any((out / name).exists() for name in FIGURES):
            raise InputError(f"the folder {str(out)!r} holds figures; choose another for a sweep")
        inside = folder.iterdir() if folder.exists() else ()
        if any(path.name != LOCK and path.suffix != LEFTOVER for path in inside):
            raise InputError(f"the folder {str(folder)!r} is not empty and holds no sweep")
    with held(writable_folder(folder)):
        if not (folder / DECLARATION).exists():
            body = {"format": FORMAT, "declaration": sweep.to_json()}
            write_sealed(folder / DECLARATION, body)
        elif read_sweep(folder) != sweep:
            raise InputError(
                f"the folder {str(out)!r} holds a sweep with another configuration; choose another"
                " folder"
            )
        yield folder


def _holds_sweep(out: Path) -> bool:
    """Whether a folder holds a sweep; refuses one that is, or holds, a link."""
    refuse_links(out / SWEEP)
    return (out / SWEEP / DECLARATION).exists()


def read_sweep(folder: Path) -> Sweep:
    """The sweep in its folder, `OUT/sweep`."""
    path = folder / DECLARATION
    try:
        body = read_sealed(path, version=FORMAT)
        return Sweep.from_json(as_object(body["declaration"]))
    except DAMAGE as error:
        raise InputError(f"{str(path)!r} cannot be read: {one_line(error)}") from error


def figures_in(out: Path) -> Mapping[str, Figure]:
    """The figures that a folder of results is about: its sweep, or else all that are known."""
    if _holds_sweep(out):
        return {SWEEP: read_sweep(out / SWEEP).figure()}
    return FIGURES


def refuse_sweep(out: Path) -> None:
    """Refuses a folder that belongs to a sweep."""
    if _holds_sweep(out):
        raise InputError(f"the folder {str(out)!r} holds a sweep; choose another one for figures")


def plan_sweep(sweep: Sweep, command: str, seeds: int, out: Path, jobs: int) -> Plan:
    """The plan of a sweep; raises if a training would be refused.

    Args:
        sweep: The sweep.
        command: The command, or the call in Python, that runs it.
        seeds: The number of seeds.
        out: The folder for results.
        jobs: The number of units of work that run at once.
    """
    subject = sweep.subject
    figure = sweep.figure(seeds, jobs, rows=subject.fits_rows(sweep.constants))
    module = None
    if isinstance(subject, SweptTrial):
        module = getattr(subject.function, "func", subject.function).__module__  # of a partial
    return Plan(SWEEP, SWEEP, seeds, subject.terminal, out, figure, command, module)
