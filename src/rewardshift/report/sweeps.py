"""`sweep`: what several constants would do for an agent, or a training of your own, on a task."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rewardshift.agents.base import Agent
from rewardshift.checks import Count, checked
from rewardshift.data.dataset import Subset
from rewardshift.envs.tasks import MakeEnv, env_name
from rewardshift.errors import InputError, TrainingError, shown
from rewardshift.files import as_path
from rewardshift.lab.figure import Unit
from rewardshift.lab.processes import Processes
from rewardshift.lab.runner import Outcome, Place, Plan, gather, pending_units, run_units
from rewardshift.lab.sweep.agents import SweptAgent
from rewardshift.lab.sweep.constants import Constant
from rewardshift.lab.sweep.declaration import Sweep, plan_sweep, sweep_folder
from rewardshift.lab.sweep.trials import SweptTrial, TrialFunction
from rewardshift.report import write_figure, write_page
from rewardshift.report.response import Response, response_of
from rewardshift.shift import Terminal
from rewardshift.training.budgets import OfflineBudget, OnlineBudget

# Runs units of work and returns those that failed.
RunUnits = Callable[[Plan, list[Unit], Place], Sequence[Outcome]]


def sweep(  # noqa: PLR0913  the settings have names
    subject: Agent | TrialFunction,
    env: str | MakeEnv | None,
    constants: Sequence[Constant],
    *,
    folder: Path | str,
    seeds: int = 8,
    jobs: int = 1,
    budget: OnlineBudget | OfflineBudget | None = None,
    data: str | None = None,
    subset: Subset | None = None,
    gamma: float | None = None,
    terminal: Terminal | None = None,
    evaluation_episodes: int | None = None,
) -> Response:
    """Trains with several constants and compares each of them with none.

    A trial is a function `trial(env, seed)` that trains an agent of your own on the environment,
    whose rewards are shifted already, and yields `(step, policy)` at the same steps for every seed.
    A policy is a function of an observation, or has `predict` like the models of
    Stable-Baselines3; it is evaluated here, on the environment without the shift. A trial may
    yield `(step, return)` instead. One with a third parameter, `shifts`, can be given members: then
    its environment is not shifted, and its agent applies the shifts.

    Args:
        subject: The agent, for example `DQN()`, whose own bias does not matter; or a trial. A trial
            is defined at the top of a module or script.
        env: A registered environment, or a function of a module that makes one.
        constants: The constants: numbers, `"auto"`, and for members tuples of numbers. 0, no shift,
            is always among them.
        folder: The folder for results. The same sweep there continues, also with more seeds; a
            folder with another sweep is refused.
        seeds: The number of seeds. A verdict needs eight.
        jobs: The number of processes. With more than 1, or a trial, a script needs
            `if __name__ == "__main__"`.
        budget: For an agent: the length and the schedule of every training; by default
            `OnlineBudget()`, or `OfflineBudget()` for a data set.
        data, subset: For an agent that learns from a data set: its source, and the part of it.
        gamma: For a trial: the discount of its agent, which `"auto"`, and every `terminal` but
            `"zero"`, need. By default the trial's own attribute `gamma`, or 0.99.
        terminal: For a trial: the treatment of terminal states, see `Shift`. By default `"zero"`
            for numbers, and `"goal"` for `"auto"`.
        evaluation_episodes: For a trial: the episodes for each policy that it yields; by default
            10.
    """
    seeds, jobs = checked("seeds", Count, seeds), checked("jobs", Count, jobs)
    out = as_path("folder", folder)
    of_agent = {"budget": budget, "data": data, "subset": subset}
    of_trial = {"gamma": gamma, "terminal": terminal, "evaluation_episodes": evaluation_episodes}
    chosen: SweptAgent | SweptTrial
    if isinstance(subject, Agent):
        _refuse(of_trial, "a trial")
        usual = OnlineBudget() if data is None else OfflineBudget()
        make = env if callable(env) else None
        name = env_name(env) if callable(env) else env
        chosen = SweptAgent(subject, name, usual if budget is None else budget, data, subset, make)
    else:
        _refuse(of_agent, "an agent of rewardshift")
        chosen = SweptTrial.of(subject, env, gamma, terminal, evaluation_episodes)
    given: Any = tuple(constants) if isinstance(constants, Iterable) else constants
    whole = Sweep(chosen, given)
    settings = {name: value for name, value in (of_agent | of_trial).items() if value is not None}
    words = "".join(f", {name}={value!r}" for name, value in {"seeds": seeds, **settings}.items())
    what = repr(subject) if isinstance(subject, Agent) else chosen.name
    call = f"sweep({what}, {chosen.env!r}, {list(whole.constants)}{words})"
    return answer(whole, call, seeds, out, Processes(jobs))


def _refuse(settings: dict[str, Any], of: str) -> None:
    """Raises if one of these settings was given."""
    for name, value in settings.items():
        if value is not None:
            raise InputError(f"{name} is a setting for {of}, got {shown(value)}")


def _run_silently(plan: Plan, units: list[Unit], place: Place) -> list[Outcome]:
    return [outcome for outcome in run_units(plan, units, place) if outcome.error is not None]


def answer(
    sweep: Sweep, command: str, seeds: int, out: Path, place: Place, run: RunUnits = _run_silently
) -> Response:
    """Runs what is left of a sweep, reports it, and returns its answer.

    Args:
        sweep: The sweep.
        command: The command, or the call in Python, that runs it.
        seeds: The number of seeds.
        out: The folder for results.
        place: The place that performs the units of work.
        run: A function that runs units of work; the command's also shows a bar.
    """
    plan = plan_sweep(sweep, command, seeds, out, place.jobs or seeds)
    with sweep_folder(out, sweep):
        failed = run(plan, pending_units(plan), place)
        judged = write_figure(plan.folder) if gather(plan) else None
    if failed:
        error = TrainingError(
            f"{len(failed)} unit{'s' * (len(failed) > 1)} of work failed; the same sweep runs what"
            f" is missing. The first: {(failed[0].error or '').strip().splitlines()[-1]}"
        )
        for outcome in failed:
            error.add_note(f"{outcome.unit.methods}, seeds {outcome.unit.seeds}: {outcome.error}")
        raise error
    assert judged is not None  # as no unit failed
    return response_of(sweep, judged.curves, judged.claims, write_page(out, known=[judged]))
