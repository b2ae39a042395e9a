"""A sweep on disk and its work: the folder, the plan, and the expected duration."""

import contextlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from rewardshift.agents.base import Agent
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
from rewardshift.lab.figure import Figure, Unit
from rewardshift.lab.processes import keep_to_one_thread
from rewardshift.lab.runner import Made, Plan
from rewardshift.lab.sweep.task import SWEEP, Sweep, unit_run
from rewardshift.training.offline import OfflineBudget

FORMAT = 2
DECLARATION = "sweep.json"
PROBED_STEPS = 200  # of a training, to measure its speed
PROBED_WARM_UP = 20  # instead of the agent's own


class SweepFile(NamedTuple):
    """The contents of `sweep.json`: a sweep, and the texts about it.

    Args:
        sweep: The sweep.
        command: The command, or the call in Python, that runs it.
        training: The commands, or calls, that train with each constant, by the method's name.
    """

    sweep: Sweep
    command: str
    training: Mapping[str, str]


@contextlib.contextmanager
def sweep_folder(out: Path, file: SweepFile) -> Iterator[Path]:
    """The folder of a sweep within `out`, held by this process.

    It refuses a folder with another sweep, with results of figures, or with something else.
    """
    folder = out / SWEEP
    _refuse_others(out, file.sweep)
    with held(writable_folder(folder)):
        _refuse_others(out, file.sweep)  # again: another process may have written before
        if not (folder / DECLARATION).exists():
            body = {
                "format": FORMAT,
                "declaration": file.sweep.to_json(),
                "command": file.command,
                "training": dict(file.training),
            }
            write_sealed(folder / DECLARATION, body)
        yield folder


def _refuse_others(out: Path, sweep: Sweep) -> None:
    folder = out / SWEEP
    if _holds_sweep(out):
        if read_sweep(folder).sweep != sweep:
            raise InputError(
                f"the folder {str(out)!r} holds a sweep with another configuration; choose another"
                " folder"
            )
        return
    if any((out / name).exists() for name in FIGURES):
        raise InputError(f"the folder {str(out)!r} holds figures; choose another one for a sweep")
    inside = folder.iterdir() if folder.exists() else ()
    if any(path.name != LOCK and path.suffix != LEFTOVER for path in inside):
        raise InputError(f"the folder {str(folder)!r} is not empty and holds no sweep")


def _holds_sweep(out: Path) -> bool:
    """Whether a folder holds a sweep; refuses one that is, or holds, a link."""
    refuse_links(out / SWEEP)
    return (out / SWEEP / DECLARATION).exists()


def read_sweep(folder: Path) -> SweepFile:
    """The sweep in its folder, `OUT/sweep`."""
    path = folder / DECLARATION
    try:
        body = read_sealed(path, version=FORMAT)
        sweep = Sweep.from_json(as_object(body["declaration"]))
        return SweepFile(sweep, str(body["command"]), as_object(body["training"]))
    except DAMAGE as error:
        raise InputError(f"{str(path)!r} cannot be read: {one_line(error)}") from error


def figures_in(out: Path) -> Mapping[str, Figure]:
    """The figures that a folder of results is about: its sweep, or else all that are known."""
    if _holds_sweep(out):
        return {SWEEP: read_sweep(out / SWEEP).sweep.figure()}
    return FIGURES


def refuse_sweep(out: Path) -> None:
    """Refuses a folder that belongs to a sweep."""
    if _holds_sweep(out):
        raise InputError(f"the folder {str(out)!r} holds a sweep; choose another one for figures")


def plan_sweep(file: SweepFile, seeds: int, out: Path, jobs: int) -> Plan:
    """The plan of a sweep; raises if a training would be refused.

    Args:
        file: The sweep.
        seeds: The number of seeds.
        out: The folder for results.
        jobs: The number of units of work that run at once.
    """
    sweep = file.sweep
    figure = sweep.figure(seeds, jobs, rows=sweep.fits_rows())
    return Plan(SWEEP, SWEEP, seeds, sweep.terminal, out, Made(figure, file.command))


def expected_seconds(plan: Plan, units: Sequence[Unit], jobs: int) -> float:
    """The expected duration of the units, from the first steps of the largest of each kind.

    Units with as many constants are of one kind: rows take longer than a constant by itself.
    """
    keep_to_one_thread()  # like the units
    kinds = [
        [unit for unit in units if len(unit.methods) == count]
        for count in {len(unit.methods) for unit in units}
    ]
    return sum(_unit_seconds(plan, kind) * math.ceil(len(kind) / max(1, jobs)) for kind in kinds)


def _unit_seconds(plan: Plan, units: Sequence[Unit]) -> float:
    """The expected seconds of the largest of some units.

    It trains the unit for a few steps twice: the first time also compiles the program.
    """
    unit = max(units, key=lambda unit: len(unit.seeds))
    budget = unit.budget
    assert plan.made is not None
    period = max(method.agent.period for method in plan.made.figure.methods)
    steps = min(max(period, PROBED_STEPS // period * period), budget.steps)
    clocks = [_probe(plan, unit, steps) for _ in range(2)]
    compiling = max(0.0, clocks[0].total - clocks[1].total)
    evaluations = max(1, budget.steps // budget.evaluate_every)
    return compiling + budget.steps * clocks[1].step + evaluations * clocks[1].evaluation


class Clock(NamedTuple):
    """Seconds: of all of a short training, of one step, and of one evaluation."""

    total: float
    step: float
    evaluation: float


def _probe(plan: Plan, unit: Unit, steps: int) -> Clock:
    """The times of a short training of a unit, with one evaluation at its end."""
    assert plan.made is not None
    begun = time.perf_counter()
    figure = plan.made.figure
    short = replace(
        figure,
        methods=tuple(replace(m, agent=_eager(m.agent, steps)) for m in figure.methods),
    )
    run = unit_run(short, unit._replace(budget=_shorter(unit.budget, steps)))
    times: dict[int, float] = {}  # the first time at which each step was reached

    def note(step: int, _: Sequence[Any]) -> None:
        times.setdefault(step, time.perf_counter())

    run.start(None, note)
    ended = time.perf_counter()
    (first, before), (last, after) = (pick(times.items()) for pick in (min, max))
    step = (after - before) / (last - first) if last > first else (after - begun) / last
    return Clock(ended - begun, step, ended - after)


def _eager(agent: Any, steps: int) -> Agent:
    """The agent with short first phases, if it has any, so that it learns within a few steps."""
    first = {"warm_up", "cloning_updates"} & {field.name for field in fields(agent)}
    brief = {name: min(getattr(agent, name), PROBED_WARM_UP, steps - 1) for name in first}
    return replace(agent, **brief) if brief else agent


def _shorter(budget: Any, steps: int) -> Any:
    length = {"updates" if isinstance(budget, OfflineBudget) else "steps": steps}
    return replace(budget, **length, evaluate_every=steps, checkpoint_every=steps)
