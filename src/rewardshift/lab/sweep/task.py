"""A sweep: a figure made on the spot, which trains one agent with several constants.

Its methods are the constants, its claims compare each of them with none. The declaration is in
`OUT/sweep/sweep.json`, so a sweep continues, and is reported, without the arguments that made it.
"""

import json
import math
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, cast

import jax

from rewardshift.agents.base import Agent
from rewardshift.auto import AUTO, rule_on_data
from rewardshift.checks import Finite, check, checked
from rewardshift.data.dataset import Subset
from rewardshift.envs.tasks import check_imported
from rewardshift.errors import InputError
from rewardshift.lab.figure import Claim, Curve, Figure, Method, Panel, Preset, Unit
from rewardshift.lab.sweep.constants import (
    METRICS,
    NONE,
    Constant,
    Constants,
    in_order,
    method_name,
    single_shift,
    with_constant,
)
from rewardshift.lab.trainings import curves_of
from rewardshift.shift import Shift, Terminal
from rewardshift.training.config import RunConfig, build, part_from_json, part_to_json
from rewardshift.training.evaluation import policy_state
from rewardshift.training.offline import OfflineBudget
from rewardshift.training.online import OnlineBudget
from rewardshift.training.runs import Run, offline_run, online_run

SWEEP = "sweep"  # the name of the figure, of its preset and of its folder
# A guess: the most parameters for which one program beats processes: larger networks fill a core.
MOST_PARAMETERS = 20_000
SEEDS_TOGETHER = 8  # of discrete agents with large networks; more rows are slower than these


class SweepTask(NamedTuple):
    """The task of a sweep: an environment, or a data set.

    Args:
        env: A registered environment; with a data set, the one for evaluations.
        data: The source of a data set, for offline trainings.
        subset: The part of the data set to learn from.
    """

    env: str | None = None
    data: str | None = None
    subset: Subset | None = None

    def run(self, agent: Agent, seeds: tuple[int, ...], budget: Any) -> Run:
        """The training of one agent, configured and checked."""
        if self.data is not None:
            return offline_run(agent, self.data, self.env, seeds, budget, self.subset)
        if self.env is None:
            raise InputError("a sweep needs an environment, or a data set")
        return online_run(agent, self.env, seeds, budget)

    @property
    def name(self) -> str:
        """The environment or the data set."""
        return str(self.env if self.data is None else self.data)


@dataclass(frozen=True)
class Sweep:
    """One agent on one task with several constants.

    Args:
        agent: The agent. Its scale and its treatment of terminal states are those of all constants.
        task: The task.
        constants: The constants. 0, no shift, is added if it is missing.
        budget: The length and the schedule of every training.
        values: The lowest and the highest discounted return of the task, if they are known.
    """

    agent: Agent
    task: SweepTask
    constants: tuple[Constant, ...]
    budget: OnlineBudget | OfflineBudget
    values: tuple[Finite, Finite] | None = None

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "constants", in_order(self.constants))
        object.__setattr__(self, "agent", with_constant(self.agent, 0.0))
        for constant in self.constants:
            with_constant(self.agent, constant)  # refuses one that the agent does not take
        if self.values is not None:
            self.shift.optimism(*self.values)  # refuses an empty range
        part_to_json(self.agent)

    @property
    def shift(self) -> Shift:
        """The shift of 0 with the agent's scale, discount and treatment of terminal states."""
        return replace(single_shift(self.agent), gamma=self.agent.gamma)

    @property
    def terminal(self) -> Terminal:
        """The treatment of terminal states."""
        return self.shift.terminal

    def optimism(self, constant: Constant) -> float | None:
        """The optimism of a number, if the range of the values is known."""
        if self.values is None or constant == AUTO:
            return None
        return float(replace(self.shift, bias=constant).optimism(*self.values))

    def fits_rows(self) -> bool:
        """Whether all numbers are rows of one program; raises if a training would be refused."""
        if AUTO in self.constants:
            self.task.run(with_constant(self.agent, AUTO), (0,), self.budget)
        run = self.task.run(self.agent, (0,), self.budget)  # the others differ in the bias alone
        single = isinstance(self.budget, OnlineBudget) and not self.budget.diagnose
        return single and bool(self.agent.members) and _parameters(run.config) <= MOST_PARAMETERS

    def figure(self, seeds: int = 1, jobs: int = 1, *, rows: bool = False) -> Figure:
        """The sweep as a figure.

        Args:
            seeds: The number of seeds.
            jobs: The number of units of work that run at once; rows are divided among them.
            rows: Whether all numbers are rows of one program.
        """
        return Figure(
            name=SWEEP,
            title=f"Constants for {type(self.agent).__name__} on {self.task.name}",
            tasks={SWEEP: self.task},
            panels=(Panel("return", self.task.name, "return", SWEEP, "evaluation_return"),),
            methods=tuple(
                Method(
                    method_name(constant),
                    self._words(constant),
                    with_constant(self.agent, constant),
                    apart=constant == AUTO,
                )
                for constant in self.constants
            ),
            claims=tuple(claim for one in self.constants[1:] for claim in _claims(one)),
            presets={SWEEP: Preset(seeds=seeds, budget=self.budget, seconds=0.0)},
            x_label="environment steps" if self.task.data is None else "updates",
            run=run_sweep,
            unit_spans=("method",) if rows else (),
            seeds_per_unit=math.ceil(seeds / jobs) if rows else self._seeds_together,
            scenario=SWEEP,
            lifetimes=lifetimes if hasattr(self.agent, "lifetime") else None,
        )

    @property
    def _seeds_together(self) -> int:
        """The seeds of one program, if it trains one constant."""
        return 1 if self.agent.continuous else SEEDS_TOGETHER

    def label(self, constant: Constant) -> str:
        """A constant in words, with its optimism if it is known."""
        optimism = self.optimism(constant)
        known = "" if optimism is None else f" (optimism {optimism:.3g})"
        return self._words(constant) + known

    def _words(self, constant: Constant) -> str:
        if constant != AUTO:
            return NONE if constant == 0 else f"b = {constant:.6g}"
        rule = cast("Any", with_constant(self.agent, AUTO)).shift
        if self.task.data is not None:
            rule = rule_on_data(rule) or rule
        return f"auto (terminal {rule.terminal})"

    def to_json(self) -> dict[str, Any]:
        """The declaration in `sweep.json`."""
        settings = {field.name: getattr(self.budget, field.name) for field in fields(self.budget)}
        return {
            "agent": part_to_json(self.agent),
            "env": self.task.env,
            "constants": list(self.constants),
            "budget": {name: part_to_json(value) for name, value in settings.items()},
            "data": self.task.data,
            "subset": part_to_json(self.task.subset),
            "values": None if self.values is None else list(self.values),
        }

    @property
    def digest(self) -> str:
        """A short hash of the declaration."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return sha256(text.encode()).hexdigest()[:12]

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> "Sweep":
        """The sweep from the result of `to_json`."""
        data, values = body["data"], body["values"]
        env = checked("env", str | None, body["env"])
        if env is not None:
            check_imported(env)
        return cls(
            agent=part_from_json(body["agent"]),
            task=SweepTask(env, data, part_from_json(body["subset"])),
            constants=part_from_json(body["constants"]),
            budget=build(OnlineBudget if data is None else OfflineBudget, body["budget"]),
            values=part_from_json(values),
        )


def make_sweep(
    agent: Agent,
    task: SweepTask,
    budget: OnlineBudget | OfflineBudget,
    constants: Constants,
) -> Sweep:
    """The sweep of these constants, checked."""
    shift = replace(single_shift(agent), gamma=agent.gamma)
    return Sweep(agent, task, constants.all(shift), budget, constants.range_of_values(shift))


def _claims(constant: Constant) -> list[Claim]:
    name = method_name(constant)
    return [
        Claim(
            f"{name}-above-none-{metric}",
            "return",
            f"A shift of {name} is better than none {when}.",
            better=name,
            worse=NONE,
            metric=metric,
            source="ours",
        )
        for metric, when in METRICS.items()
    ]


def lifetimes(figure: Figure, _: str, preset: str) -> float:
    """See `Figure`."""
    agent, budget = figure.methods[0].agent, figure.presets[preset].budget
    return float((budget.steps - getattr(agent, "warm_up", 0)) / agent.lifetime)


def run_sweep(figure: Figure, unit: Unit, folder: Path) -> list[Curve]:
    """One constant, or all numbers as rows of one program, for all seeds of the unit."""
    result = unit_run(figure, unit).start(folder)
    seeds, count = len(unit.seeds), len(unit.methods)
    curves = []
    for place, method in enumerate(unit.methods):
        # Every evaluation adds one line for each row: all seeds of the first bias come first.
        own = [row for number, row in enumerate(result.rows) if number // seeds % count == place]
        one = unit._replace(methods=(method,))
        curves += curves_of(figure, one, replace(result, rows=own))
    return curves


def unit_run(figure: Figure, unit: Unit) -> Run:
    """The training of a unit of work, configured and checked."""
    task: SweepTask = figure.tasks[SWEEP]
    methods = [method for method in figure.methods if method.name in unit.methods]
    if "method" not in figure.unit_spans or methods[0].apart:
        return task.run(methods[0].agent, unit.seeds, unit.budget)
    assert task.env is not None  # a data set has no rows
    biases = tuple(method.agent.members[0].bias for method in methods)
    settings = (task.env, unit.seeds, unit.budget)
    return online_run(methods[0].agent, *settings, biases=biases)


def _parameters(config: RunConfig) -> int:
    """The number of an agent's parameters."""
    state = jax.eval_shape(lambda: config.agent.init(jax.random.key(0), config.spec))
    return sum(leaf.size for leaf in jax.tree.leaves(policy_state(config.agent, state)))
