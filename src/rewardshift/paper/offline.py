"""Offline: a positive shift on BCQ and CQL makes them stay with their data (S1)."""

from dataclasses import dataclass, replace
from pathlib import Path

from rewardshift.agents.bcq import BCQ
from rewardshift.agents.cql import CQL
from rewardshift.agents.networks import MLP
from rewardshift.data.dataset import Dataset
from rewardshift.data.loading import load_dataset
from rewardshift.errors import InputError
from rewardshift.lab.curves import curves_of
from rewardshift.lab.figure import (
    Claim,
    Curve,
    Figure,
    Method,
    Metric,
    Panel,
    Preset,
    Style,
    Unit,
)
from rewardshift.shift import Shift, Terminal
from rewardshift.training.offline import OfflineBudget
from rewardshift.training.runs import train_offline


@dataclass(frozen=True)
class Embedded:
    """A data set that comes with the package.

    Args:
        name: The name for `load_dataset`, without `embedded/`.
        digest: The digest of its contents, so that results on different contents never mix.
    """

    name: str
    digest: str

    def load(self) -> Dataset:
        """The data set; refused if its digest differs."""
        data = load_dataset(f"embedded/{self.name}")
        if data.digest != self.digest:
            raise InputError(
                f"the data set embedded/{self.name} is not the one of this figure: its digest is"
                f" {data.digest}, not {self.digest}"
            )
        return data


@dataclass(frozen=True)
class DataTask:
    """A task of a figure.

    Args:
        agent: The agent.
        data: The data set that the agent learns from.
        size: The size of the paper's shift on this task.
    """

    agent: BCQ | CQL
    data: Embedded
    size: float = 8.0


@dataclass(frozen=True)
class Treatment:
    """The shift of a method.

    Args:
        sign: The factor for the task's `size`; the product is the bias.
        bias: If given, the bias on every task instead.
        terminal: If given, the treatment of terminal states, instead of the whole figure's.
    """

    sign: float = 0.0
    bias: float | None = None
    terminal: Terminal | None = None


@dataclass(frozen=True)
class OfflineFigureBudget:
    """The budget of a figure.

    Args:
        updates: Gradient updates of each seed.
        evaluations: Points of a curve.
        evaluation_episodes: Episodes per point.
        cloning_updates: As in `CQL`.
        width: The width of all hidden layers. None keeps the agents' own.
        batch_size: The batch size. None keeps the agents' own.
    """

    updates: int = 500_000
    evaluations: int = 100
    evaluation_episodes: int = 10
    cloning_updates: int = CQL.cloning_updates
    width: int | None = None
    batch_size: int | None = None

    def configure(self, task: DataTask, treatment: Treatment, terminal: Terminal) -> BCQ | CQL:
        """The task's agent, configured for the treatment."""
        agent = task.agent
        bias = treatment.sign * task.size if treatment.bias is None else treatment.bias
        agent = replace(agent, shift=Shift(bias, terminal=treatment.terminal or terminal))
        if self.batch_size is not None:
            agent = replace(agent, batch_size=self.batch_size)
        if isinstance(agent, CQL):
            agent = replace(agent, cloning_updates=self.cloning_updates)
        if self.width is not None:
            if isinstance(agent, BCQ):
                narrow = MLP((self.width,) * 2)
                agent = replace(agent, network=narrow, proposer=narrow)
            else:
                agent = replace(agent, network=MLP((self.width,) * 3))
        return agent

    def offline(self) -> OfflineBudget:
        """The budget for the training loop."""
        return OfflineBudget(
            updates=self.updates,
            evaluate_every=self.updates // self.evaluations,
            evaluation_episodes=self.evaluation_episodes,
        )


def run_offline(figure: Figure, unit: Unit, folder: Path) -> list[Curve]:
    """One method on one task, all seeds of the unit side by side."""
    (name,), (method,) = unit.tasks, unit.methods
    (treatment,) = [m.agent for m in figure.methods if m.name == method]
    task = figure.tasks[name]
    budget: OfflineFigureBudget = unit.budget
    result = train_offline(
        budget.configure(task, treatment, unit.terminal),
        task.data.load(),
        seeds=unit.seeds,
        budget=budget.offline(),
        folder=folder,
    )
    return curves_of(figure, unit, result)


IMITATE = Embedded("hopper-imitate", "62e4b1f692da0536")
EXPERT = Embedded("hopper-expert", "84a89ace080a0ead")
HOPPER = Embedded("hopper-medium", "a5fc1a3839771099")
WALKER = Embedded("walker2d-medium", "0b2335d1f2d54b02")

LAGRANGE = CQL(threshold=5.0)  # the command that the authors publish

TASKS = {
    "BCQ-hopper-imitate": DataTask(BCQ(), IMITATE),
    "BCQ-hopper-medium": DataTask(BCQ(), HOPPER),
    "CQL-hopper-expert": DataTask(LAGRANGE, EXPERT),
    "CQL-hopper-medium": DataTask(LAGRANGE, HOPPER, size=1.0),
    "CQL-walker2d-medium": DataTask(LAGRANGE, WALKER, size=50.0),
}
BCQ_TASKS = [name for name, task in TASKS.items() if isinstance(task.agent, BCQ)]
METRICS: dict[Metric, str] = {"final": "by the last evaluations", "best": "by the best one"}
END = 0.4  # the share of the evaluations that are the end: after 3.6 lifetimes in `quick`


def data_panels(name: str, methods: tuple[str, ...] | None = None) -> tuple[Panel, ...]:
    """The panels of a task: the return, the estimate's error, and the values of unseen actions."""
    return tuple(
        Panel(panel, name.replace("-", ", ", 1), y_label, name, measure, methods=methods)
        for panel, y_label, measure in (
            (name, "return", "evaluation_return"),
            (f"{name}-overestimation", "value: estimated - real", "overestimation"),
            (f"{name}-unseen", "value: unseen - seen actions", "unseen_advantage"),
        )
    )


def _orderings(task: str) -> list[Claim]:
    return [
        Claim(f"{task}-{x}-above-{y}-{metric}", task, f"{statement} {how}.", x, y, metric, end=END)
        for x, y, statement in (
            ("positive", "unshifted", "A positive shift helps"),
            ("unshifted", "negative", "A negative shift hurts"),
        )
        for metric, how in METRICS.items()
    ]


def _drop(task: str) -> Claim:
    return Claim(
        f"{task}-drop",
        task,
        "With a positive shift less is lost by the end of the training.",
        "positive",
        "unshifted",
        metric="drop",
        end=END,
    )


ABSORBING = Claim(
    "BCQ-hopper-medium-absorbing",
    "BCQ-hopper-medium",
    "A positive shift helps where it does not pay for survival.",
    "positive-absorbing",
    "unshifted",
    metric="final",
    source="ours",
    end=END,
)


SMOKE = Preset(
    seeds=2,
    budget=OfflineFigureBudget(
        updates=4, evaluations=2, evaluation_episodes=1, cloning_updates=2, width=8, batch_size=8
    ),
    seconds=200,
    note="4 updates and 8 units: shows that it runs, nothing else",
    decides=False,
)
QUICK = Preset(
    seeds=12,
    budget=OfflineFigureBudget(
        updates=120_000, evaluations=40, evaluation_episodes=5, width=64, batch_size=64
    ),
    seconds=5_000,
    note="120,000 of 500,000 updates, hidden layers of 64 units, batches of 64, 5 instead of 10"
    " evaluation episodes, two of five tasks",
    left_out={"CQL-hopper-expert": 6, "CQL-hopper-medium": 6, "CQL-walker2d-medium": 6},
)
PAPER = Preset(seeds=10, budget=OfflineFigureBudget(), seconds=3_500_000)

PLAIN = ("unshifted", "positive", "negative")


def _lifetimes(figure: Figure, task: str, preset: str) -> float:
    """See `Figure`."""
    budget: OfflineFigureBudget = figure.presets[preset].budget
    return budget.updates / figure.tasks[task].agent.lifetime


OFFLINE = Figure(
    name="offline",
    title="Offline: a positive shift is caution, for BCQ and CQL",
    scenario="S1 offline",
    wording=(
        "We observe a clear performance drop during the training of BCQ as the policy overfits"
        " the batched dataset. Differently, positive reward shift can alleviate such a problem"
        " and outperform BCQ in terms of both best-achieved performance and performance after"
        " convergence."
    ),
    differs=(
        "our own data of 10,000 transitions, recorded from our TD3 on Gymnasium's v5 tasks, where"
        " the paper has D4RL's data, and for hopper-imitate data made as in the paper of BCQ; the"
        " number of updates is our choice, because the paper names none"
    ),
    tasks=TASKS,
    panels=tuple(
        panel
        for task in TASKS
        # No episode of hopper-imitate terminates, so absorbing states make no difference there.
        for panel in data_panels(task, PLAIN if task == "BCQ-hopper-imitate" else None)
    ),
    methods=(
        Method("unshifted", "unshifted", Treatment(), Style("#525252", "--")),
        Method("positive", "positive", Treatment(sign=1.0), Style("#005a32", "-")),
        Method("negative", "negative", Treatment(sign=-1.0), Style("#d94801", "-.")),
        Method(
            "positive-absorbing",
            "positive, absorbing",
            Treatment(sign=1.0, terminal="absorbing"),
            Style("#74c476", ":"),
        ),
    ),
    claims=(
        *(claim for task in TASKS for claim in _orderings(task)),
        *(_drop(task) for task in BCQ_TASKS),
        ABSORBING,
    ),
    presets={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    x_label="updates",
    run=run_offline,
    unit_spans=(),
    seeds_per_unit=6,  # a tenth cheaper than apart: `benchmarks/seeds.py`
    revision=2,
    lifetimes=_lifetimes,
)
