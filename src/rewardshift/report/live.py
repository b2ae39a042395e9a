"""Work that goes on, as its files tell: units done, curves so far, time left."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from rewardshift.checks import Count, Natural, check, checked
from rewardshift.errors import InputError, one_line
from rewardshift.files import DAMAGE, as_object, read_json
from rewardshift.lab.figure import Curve, Figure, Group, Method, Panel
from rewardshift.lab.results import load_units, unit_name
from rewardshift.lab.runner import PLAN, RUNNING
from rewardshift.shift import Terminal
from rewardshift.training.metrics import read_metrics
from rewardshift.training.run_folder import time_spent
from rewardshift.training.serialise import build

CONFIG = "config.json"
SHOWN = {"evaluation_return": "return", "success_rate": "success rate"}  # of a run


@dataclass(frozen=True)
class LivePlan:
    """The contents of `plan.json`."""

    preset: str
    seeds: Count
    terminal: Terminal
    unit_spans: tuple[str, ...]
    seeds_per_unit: Count

    def __post_init__(self) -> None:
        check(self)


class Begun(NamedTuple):
    """A unit of work, or a run, that has begun and is not finished.

    Args:
        name: Its methods, tasks and seeds in words.
        step: The last step in its files.
        steps: All its steps; 0 if it does not say.
        seconds: The time that it has taken.
    """

    name: str
    step: int
    steps: int
    seconds: float

    @property
    def share(self) -> float:
        """The share that is done."""
        return min(1.0, self.step / self.steps) if self.steps else 0.0


class Live(NamedTuple):
    """A figure or a run that goes on.

    Args:
        figure: The figure, or a figure made for the curves of a run.
        curves: The curves so far.
        units: The number of its units of work.
        done: The number of finished ones.
        begun: The unfinished ones.
        left: The estimated seconds until the end; None if nothing tells yet.
    """

    figure: Figure
    curves: list[Curve]
    units: int
    done: int
    begun: list[Begun]
    left: float | None

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.done == self.units


def live_figure(folder: Path, figure: Figure) -> Live | None:
    """What a figure's folder tells about its work; None if it has no plan."""
    if not (folder / PLAN).exists() or folder.is_symlink():
        return None
    try:
        plan: LivePlan = build(LivePlan, read_json(folder / PLAN))
        spans: Any = plan.unit_spans
        planned = replace(figure, unit_spans=spans, seeds_per_unit=plan.seeds_per_unit)
        return _look(folder, planned.at(plan.preset), plan)
    except DAMAGE as error:
        raise InputError(
            f"{str(folder / PLAN)!r} cannot be used: {one_line(error)}; the same command as before"
            " writes it again"
        ) from error


def _look(folder: Path, figure: Figure, plan: LivePlan) -> Live:
    curves: list[Curve] = []
    begun: list[Begun] = []
    durations: list[float] = []  # seconds of a seed
    done = total = 0
    for group in figure.groups:
        digest = figure.digest(plan.preset, plan.terminal, group)
        finished = [] if (folder / "units").is_symlink() else load_units(folder, digest)
        seeds = {seed for unit in finished for seed in unit.seeds}
        durations += [unit.seconds / len(unit.seeds) for unit in finished]
        curves += [curve for unit in finished for curve in unit.curves if curve.seed < plan.seeds]
        size = plan.seeds_per_unit
        total += math.ceil(plan.seeds / size)
        # By the finished seeds: a damaged plan may have any number of them.
        for first in {seed // size * size for seed in seeds if seed < plan.seeds}:
            done += seeds.issuperset(range(first, min(first + size, plan.seeds)))
        for place, numbers in _running(folder, digest):
            begun.append(_begun_unit(place, group, numbers))
            for run, seeds_of_run in _runs(place, numbers):
                curves += _curves_so_far(figure, group, seeds_of_run, run)
    left = _left(durations, begun, total - done, plan.seeds_per_unit)
    return Live(figure, curves, total, done, begun, left)


def _running(folder: Path, digest: str) -> Iterator[tuple[Path, tuple[int, ...]]]:
    """The folders of the begun units of a group, with their seeds."""
    running = folder / RUNNING
    if running.is_symlink() or not running.is_dir():
        return
    for place in sorted(running.glob(f"{digest}-*")):
        numbers = tuple(int(n) for n in place.name.split("-")[1:] if n.isdecimal())
        if place.name == unit_name(digest, numbers) and place.is_dir() and not place.is_symlink():
            yield place, numbers


def _runs(place: Path, seeds: tuple[int, ...]) -> list[tuple[Path, tuple[int, ...]]]:
    """The runs of a begun unit: one of all seeds, or one in a folder of each seed's name."""
    folders = {place / str(seed): (seed,) for seed in seeds}
    apart = [run for run in folders if run.is_dir() and not run.is_symlink()]
    return [(run, folders[run]) for run in apart] or [(place, seeds)]


def _begun_unit(place: Path, group: Group, seeds: tuple[int, ...]) -> Begun:
    runs = _runs(place, seeds)
    begun = [_begun(run, "") for run, _ in runs]
    whole = len(seeds) // len(runs[0][1])  # the runs that it will have
    return Begun(
        _words(group, seeds),
        sum(one.step for one in begun),
        whole * max(one.steps for one in begun),
        sum(one.seconds for one in begun),
    )


def _words(group: Group, seeds: Sequence[int]) -> str:
    tasks, methods = group
    names = [*tasks, *methods] if len(methods) < 4 else [*tasks, f"{len(methods)} methods"]
    return f"{', '.join(names)}, seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def _begun(place: Path, name: str) -> Begun:
    config = place / CONFIG
    budget = as_object(read_json(config)["budget"]) if config.exists() else {}
    steps = checked("steps", Natural, budget.get("steps", budget.get("updates", 0)))
    lines = read_metrics(place)
    step = int(lines[-1]["step"]) if lines else 0
    return Begun(name, step, steps, time_spent(place))


def _curves_so_far(
    figure: Figure, group: Group, seeds: Sequence[int], place: Path
) -> Iterator[Curve]:
    """The curves of a begun unit: every evaluation adds a line for each method and seed."""
    tasks, methods = group
    lines = read_metrics(place)
    width = len(methods) * len(seeds)
    for panel in figure.panels:
        for row in range(width):
            method, seed = methods[row // len(seeds)], seeds[row % len(seeds)]
            if panel.task in tasks and panel.shows(method):
                yield _curve(panel.name, method, seed, lines[row::width], panel.measure)


def _curve(
    panel: str, method: str, seed: int, lines: Sequence[Mapping[str, str]], measure: str
) -> Curve:
    # To the first empty cell: all curves of a panel have the same steps.
    full = itertools.takewhile(lambda line: line.get(measure), lines)
    points = [(int(line["step"]), float(line[measure])) for line in full]
    return Curve(panel, method, seed, [p[0] for p in points], [p[1] for p in points])


def _left(durations: list[float], begun: list[Begun], units: int, seeds: int) -> float | None:
    """The time left, if the begun units go on side by side and the others take as long.

    Args:
        durations: The seconds of a seed in each finished unit.
        begun: The begun units.
        units: The number of unfinished units.
        seeds: The number of seeds of a unit.
    """
    known = [one.seconds / one.share for one in begun if one.share and one.seconds]
    whole = [seeds * seconds for seconds in durations] or known
    if not units:
        return 0.0
    if not whole:
        return None
    mean = sum(whole) / len(whole)
    ahead = mean * units - sum(mean * one.share for one in begun)
    return max(0.0, ahead) / max(1, len(begun))


def live_run(folder: Path) -> Live:
    """What a run's folder tells."""
    try:
        return _look_at_run(folder)
    except DAMAGE as error:
        raise InputError(f"no run in {str(folder)!r}: {one_line(error)}") from error


def _look_at_run(folder: Path) -> Live:
    config = read_json(folder / CONFIG)
    name, env = str(as_object(config["agent"])["type"]), str(config["env"])
    seeds = checked("seeds", tuple[Natural, ...], config["seeds"])
    lines = read_metrics(folder)
    panels = tuple(
        Panel(measure, env, label, env, measure)
        for measure, label in SHOWN.items()
        if lines and lines[0].get(measure)
    )
    begun = _begun(folder, f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}")
    figure = Figure(
        name="run",
        title=f"{name} on {env}",
        tasks={env: None},
        panels=panels,
        methods=(Method(name, name, None),),
        claims=(),
        presets={},
        x_label="environment steps" if config["data"] is None else "updates",
        run=lambda *_: [],
        unit_spans=(),
        seeds_per_unit=len(seeds),
    )
    curves = [
        _curve(panel.name, name, seed, lines[row :: len(seeds)], panel.measure)
        for panel in panels
        for row, seed in enumerate(seeds)
    ]
    whole = begun.share == 1.0
    left = _left([], [begun], 1, len(seeds)) if not whole else 0.0
    return Live(figure, curves, 1, int(whole), [] if whole else [begun], left)
