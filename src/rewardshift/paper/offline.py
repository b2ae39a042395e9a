"""Offline: a positive shift on BCQ and CQL makes them stay with their data (S1)."""

from dataclasses import replace
from typing import Any

from rewardshift.agents.bcq import BCQ
from rewardshift.agents.cql import CQL
from rewardshift.lab import (
    Budget,
    Claim,
    Figure,
    Method,
    Panel,
    Preset,
    Style,
    Task,
    orderings,
    smoke_preset,
)
from rewardshift.lab.figure import Metric
from rewardshift.shift import Shift

CONSTANTS = (1.0, 8.0, 20.0, 50.0)  # of the ablation
LAGRANGE = CQL(threshold=5.0)  # the command that the authors publish


def _task(agent: BCQ | CQL, name: str, digest: str, size: float = 8.0) -> Task:
    """An agent on an embedded data set, and the size of the paper's shift there."""
    shifts: dict[str, Any] = {
        "positive": size,
        "negative": -size,
        "positive-absorbing": Shift(size, terminal="absorbing"),
        **{f"+{bias:g}": bias for bias in CONSTANTS},
    }
    methods = {method: {"shift": shift} for method, shift in shifts.items()}
    return Task(data=f"embedded/{name}", digest=digest, agent=agent, methods=methods)


HOPPER = ("hopper-medium", "a5fc1a3839771099")
TASKS = {
    "BCQ-hopper-imitate": _task(BCQ(), "hopper-imitate", "62e4b1f692da0536"),
    "BCQ-hopper-medium": _task(BCQ(), *HOPPER),
    "CQL-hopper-expert": _task(LAGRANGE, "hopper-expert", "84a89ace080a0ead"),
    "CQL-hopper-medium": _task(LAGRANGE, *HOPPER, size=1.0),
    "CQL-walker2d-medium": _task(LAGRANGE, "walker2d-medium", "0b2335d1f2d54b02", size=50.0),
}
BCQ_TASKS = [name for name in TASKS if name.startswith("BCQ")]
METRICS: dict[Metric, str] = {"final": "by the last evaluations", "best": "by the best one"}
END = 0.4  # the share of the evaluations that are the end: after 3.6 lifetimes in `quick`


MEASURES = (
    ("", "", "return", "evaluation_return"),
    ("-overestimation", ", estimate", "value: estimated - real", "overestimation"),
    ("-unseen", ", unseen actions", "value: unseen - seen actions", "unseen_advantage"),
)


def _panels(name: str, methods: tuple[str, ...] | None = None) -> tuple[Panel, ...]:
    """The panels of a task: the return, the estimate's error, and the values of unseen actions."""
    title = name.replace("-", ", ", 1)
    return tuple(
        Panel(name + suffix, title + words, y_label, name, measure, methods=methods)
        for suffix, words, y_label, measure in MEASURES
    )


SENTENCES = (
    ("positive", "unshifted", "A positive shift helps"),
    ("unshifted", "negative", "A negative shift hurts"),
)
LOSS = "With a positive shift less is lost by the end of the training."
ABSORBING = (
    "positive-absorbing",
    "unshifted",
    "A positive shift helps where it does not pay for survival.",
)


def _narrow(width: int, budget: Budget, **own: Any) -> dict[str, Budget]:
    """The budget of each task, with hidden layers and batches of this size."""
    hidden = (width,) * 2
    bcq = {"network.hidden": hidden, "proposer.hidden": hidden, "batch_size": width}
    cql = {"network.hidden": (width,) * 3, "batch_size": width, **own}
    return {task: replace(budget, settings=bcq if task in BCQ_TASKS else cql) for task in TASKS}


SMOKE = smoke_preset(
    _narrow(8, Budget(4, evaluations=2, evaluation_episodes=1), cloning_updates=2), 200
)
QUICK = Preset(
    seeds=12,
    budget=_narrow(64, Budget(120_000, evaluations=40)),
    seconds=5_000,
    note="120,000 of 500,000 updates, hidden layers of 64 units, batches of 64, 5 instead of 10"
    " evaluation episodes, two of five tasks",
    left_out={"CQL-hopper-expert": 6, "CQL-hopper-medium": 6, "CQL-walker2d-medium": 6},
)
PAPER = Preset(
    seeds=10, budget=Budget(500_000, evaluations=100, evaluation_episodes=10), seconds=3_500_000
)

UNSHIFTED = Method("unshifted", "unshifted", style=Style("#525252", "--"))
PLAIN = ("unshifted", "positive", "negative")

OFFLINE = Figure(
    name="offline",
    title="Offline: shifts of agents that already stay with their data",
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
        for panel in _panels(task, PLAIN if task == "BCQ-hopper-imitate" else None)
    ),
    methods=(
        UNSHIFTED,
        Method("positive", "positive", style=Style("#d94801", "-.")),
        Method("negative", "negative", style=Style("#2171b5", "-")),
        Method("positive-absorbing", "positive, absorbing", style=Style("#fdae6b", ":")),
    ),
    claims=(
        *(
            Claim(f"{task}-{x}-above-{y}-{metric}", task, f"{words} {how}.", x, y, metric, end=END)
            for task in TASKS
            for x, y, words in SENTENCES
            for metric, how in METRICS.items()
        ),
        *orderings(
            BCQ_TASKS, [("positive", "unshifted", LOSS)], "{panel}-drop", metric="drop", end=END
        ),
        *orderings(
            ["BCQ-hopper-medium"],
            [ABSORBING],
            "{panel}-absorbing",
            metric="final",
            source="ours",
            end=END,
        ),
    ),
    presets={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    x_label="updates",
    seeds_per_unit=6,  # a tenth cheaper than apart: `benchmarks/seeds.py`
    revision=2,
)

LARGER = ("unshifted", *(f"+{bias:g}" for bias in CONSTANTS[1:]))


HELP = [(f"+{b:g}", "unshifted", f"A shift of {b:g} helps.") for b in CONSTANTS[1:]]
ONE = [("+1", f"+{b:g}", f"A shift of 1 does better than {b:g}.") for b in CONSTANTS[1:]]
FIFTY = [("+50", f"+{b:g}", f"A shift of 50 does better than {b:g}.") for b in CONSTANTS[1:3]]

OFFLINE_ABLATION = replace(
    OFFLINE,
    name="offline-ablation",
    title="Offline: which constant",
    wording=(
        "We can observe a uniformly performance improvement with all choices of reward shift"
        " constants [BCQ]. [...] in the experiments based on CQL, the performance is more"
        " closely related to the constant we use."
    ),
    panels=tuple(
        panel
        for task in TASKS
        # The paper uses +1 for CQL on hopper-medium alone.
        for panel in _panels(task, None if task == "CQL-hopper-medium" else LARGER)
    ),
    methods=(
        UNSHIFTED,
        Method("+1", "+1", style=Style("#fdae6b", "--")),
        Method("+8", "+8", style=Style("#d94801", "-.")),
        Method("+20", "+20", style=Style("#a63603", ":")),
        Method("+50", "+50", style=Style("#7f2704", "-")),
    ),
    claims=(
        *orderings(BCQ_TASKS, HELP, metric="final", end=END),
        *orderings(["CQL-hopper-medium"], ONE, metric="final", end=END),
        *orderings(["CQL-walker2d-medium"], FIFTY, metric="final", end=END),
    ),
    presets={
        "smoke": SMOKE,
        "quick": replace(
            QUICK,
            seeds=8,
            seconds=8400,
            left_out={"CQL-hopper-expert": 5, "CQL-hopper-medium": 6, "CQL-walker2d-medium": 5},
        ),
        "paper": replace(PAPER, seconds=4_500_000),
    },
)
