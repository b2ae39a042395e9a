"""Fetch with hindsight: the methods differ in the reward's sign alone."""

from dataclasses import replace

from rewardshift.agents.networks import MLP
from rewardshift.agents.td3 import ddpg
from rewardshift.lab import (
    Budget,
    Figure,
    Method,
    Preset,
    Style,
    Task,
    orderings,
    smoke_preset,
    task_panels,
)
from rewardshift.training.hindsight import Hindsight


def _method(bias: float, label: str, style: Style) -> Method:
    """DDPG with hindsight, with its authors' settings except for the clipping of targets.

    Clipping to the range of possible returns would at once remove an initial value outside that
    range, and with it the effect of a shift.
    """
    agent = ddpg(
        shift=bias,
        gamma=0.98,
        learning_rate=1e-3,
        noise=0.2,
        random_actions=0.3,
        normalise=True,
        network=MLP((256,) * 3),
        warm_up=1000,
    )
    return Method(f"fetch{bias:+g}", label, agent, style)


TASKS = {name: Task(f"{name}-v4", hindsight=Hindsight()) for name in ("FetchReach", "FetchPush")}

REACH = Budget(20_000, evaluations=50, evaluation_episodes=20, capacity=20_000)
PUSH = replace(REACH, steps=500_000, capacity=500_000)
TINY = {"network.hidden": (8,) * 3, "batch_size": 8, "warm_up": 50}
SMOKE = Budget(200, evaluations=2, evaluation_episodes=1, settings=TINY, capacity=200)
NARROW = {"network.hidden": (64,) * 3, "batch_size": 64}
QUICK_REACH = replace(REACH, steps=5000, capacity=5000, evaluation_episodes=10, settings=NARROW)
QUICK_PUSH = replace(PUSH, evaluation_episodes=10, settings=NARROW)
LEARNED = "are learned from more efficiently than"
ORDER = (
    ("fetch+0", "fetch+1", f"Rewards of -1 and 0 {LEARNED} 0 and +1."),
    ("fetch-1", "fetch+0", f"Rewards of -2 and -1 {LEARNED} -1 and 0.", {"source": "ours"}),
)

FETCH = Figure(
    name="fetch",
    title="Fetch with hindsight: the same reward with another sign",
    scenario="goals",
    wording=(
        "using a positive reward +1 in reaching the goals while using a trivial 0 reward"
        " otherwise will drastically hinder the learning efficiency of HER"
    ),
    differs=(
        "v4 of the tasks, where the paper has v1; the settings of hindsight's authors, but without"
        " their clipping of targets, and our number of steps, because the paper names neither"
    ),
    tasks=TASKS,
    panels=task_panels(TASKS, "success rate", "success_rate", y_range=(0, 1)),
    methods=(
        _method(0.0, "-1, 0 (default)", Style("#525252", "--")),
        _method(1.0, "0, +1 (shift +1)", Style("#d94801", "-.")),
        _method(-1.0, "-2, -1 (shift -1)", Style("#2171b5", "-")),
    ),
    claims=orderings(TASKS, ORDER),
    presets={
        "smoke": smoke_preset(SMOKE, 60),
        "quick": Preset(
            seeds=12,
            budget={"FetchReach": QUICK_REACH, "FetchPush": QUICK_PUSH},
            seconds=900,
            note="hidden layers of 64 units, batches of 64, 10 instead of 20 evaluation episodes;"
            " FetchReach over 5,000 of 20,000 steps, after which it is solved",
            left_out={"FetchPush": 19},
        ),
        "paper": Preset(seeds=8, budget={"FetchReach": REACH, "FetchPush": PUSH}, seconds=50_000),
    },
    seeds_per_unit=2,
    revision=2,
)
