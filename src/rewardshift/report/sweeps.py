"""`sweep`: what several constants would do for an agent on a task."""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rewardshift.agents.base import Agent
from rewardshift.checks import Count, checked
from rewardshift.errors import InputError, TrainingError, shown
from rewardshift.files import as_path
from rewardshift.lab.figure import Unit
from rewardshift.lab.processes import Processes
from rewardshift.lab.results import RESULTS, read_results
from rewardshift.lab.runner import Outcome, Place, Plan, gather, pending_units, run_units
from rewardshift.lab.sweep.constants import Constant, Constants, method_name, with_constant
from rewardshift.lab.sweep.run import SweepFile, plan_sweep, sweep_folder
from rewardshift.lab.sweep.task import Sweep, SweepTask, make_sweep
from rewardshift.report import write_figure, write_page
from rewardshift.report.response import Finding, Point, findings, points_of
from rewardshift.shift import Shift
from rewardshift.training.offline import OfflineBudget
from rewardshift.training.online import OnlineBudget

# Runs units of work and returns those that failed.
Work = Callable[[Plan, list[Unit], Place], Sequence[Outcome]]


class Response(NamedTuple):
    """The answer of a sweep.

    Args:
        points: The constants with their returns, from the least to the most optimistic.
        findings: The best constant over the whole training, and at its end.
        page: The report.
    """

    points: list[Point]
    findings: list[Finding]
    page: Path


def sweep(
    agent: Agent,
    task: str | SweepTask,
    constants: Sequence[Constant] | Constants,
    *,
    folder: Path | str,
    seeds: int = 8,
    budget: OnlineBudget | OfflineBudget | None = None,
    jobs: int = 1,
) -> Response:
    """Trains an agent with several constants and compares each of them with none.

    Args:
        agent: The agent, for example `DQN()`. Its own bias does not matter.
        task: A registered environment, or a `SweepTask`, for example with a data set.
        constants: The constants, numbers and `"auto"`; or `Constants`, for example with optimisms.
            0, no shift, is always among them.
        folder: The folder for results. The same sweep there continues, also with more seeds; a
            folder with another sweep is refused.
        seeds: The number of seeds. A verdict needs eight.
        budget: The length and the schedule of every training; by default `OnlineBudget()`, or
            `OfflineBudget()` for a data set.
        jobs: The number of processes. More than 1 needs a script with `if __name__ == "__main__"`.
    """
    seeds, jobs = checked("seeds", Count, seeds), checked("jobs", Count, jobs)
    place = as_path("folder", folder)
    given = constants if isinstance(constants, Constants) else _constants(constants)
    where = task if isinstance(task, SweepTask) else SweepTask(task)
    usual = OnlineBudget if where.data is None else OfflineBudget
    chosen = usual() if budget is None else budget
    made = make_sweep(agent, where, chosen, given)
    train = "train" if where.data is None else "train_offline"
    file = SweepFile(
        made,
        f"sweep({_arguments(made, made.agent, seeds)}, constants={list(made.constants)})",
        {
            method_name(one): f"{train}({_arguments(made, with_constant(made.agent, one), seeds)})"
            for one in made.constants
        },
    )
    return answer(file, seeds, place, Processes(jobs))


def _constants(given: Any) -> Constants:
    try:
        return Constants(shift=tuple(given))
    except TypeError:
        raise InputError(
            f"constants must be numbers or 'auto', or Constants, got {shown(given)}"
        ) from None


def _arguments(sweep: Sweep, agent: Agent, seeds: int) -> str:
    """The arguments of `train` or `train_offline`, as Python source."""
    task = sweep.task
    where = [repr(name) for name in (task.data, task.env) if name is not None]
    part = "" if task.subset is None else f", subset={task.subset!r}"
    settings = f"{part}, seeds={seeds}, budget={_source(sweep.budget)}"
    return f"{_source(agent)}, {', '.join(where)}{settings}"


def _source(part: Any) -> str:
    """A part of a configuration as Python source, without its defaults."""
    if isinstance(part, tuple):
        return _source(part[0]) if len(part) == 1 and isinstance(part[0], Shift) else repr(part)
    if part == Shift(getattr(part, "bias", 0.0)):
        return repr(part.bias)
    if not is_dataclass(part) or isinstance(part, Shift):
        return repr(part)
    given = [
        f"{field.name}={_source(getattr(part, field.name))}"
        for field in fields(part)
        if getattr(part, field.name) != getattr(_usual(type(part)), field.name, None)
    ]
    return f"{type(part).__name__}({', '.join(given)})"


def _usual(kind: type[Any]) -> Any:
    """The part with its defaults; None if it has settings without one."""
    return None if any(f.default is f.default_factory for f in fields(kind)) else kind()


def _work(plan: Plan, units: list[Unit], place: Place) -> list[Outcome]:
    return [outcome for outcome in run_units(plan, units, place) if outcome.error is not None]


def answer(file: SweepFile, seeds: int, out: Path, place: Place, work: Work = _work) -> Response:
    """Runs what is left of a sweep, reports it, and returns its answer.

    Args:
        file: The sweep.
        seeds: The number of seeds.
        out: The folder for results.
        place: The place that performs the units of work.
        work: A function that runs units of work.
    """
    plan = plan_sweep(file, seeds, out, place.slots() or seeds)
    with sweep_folder(out, file):
        failed = work(plan, pending_units(plan), place)
        claims = write_figure(plan.folder) if gather(plan) else []
    if failed:
        raise TrainingError(
            f"{len(failed)} unit{'s' * (len(failed) > 1)} of work failed; the same sweep runs what"
            f" is missing. The first: {(failed[0].error or '').strip().splitlines()[-1]}"
        )
    points = points_of(file.sweep, read_results(plan.folder / RESULTS), claims)
    return Response(points, findings(file, points, claims), write_page(out))
