"""How long a shift lasts: the share of its offset that is left, predicted and measured (ours).

Two trainings differ in the shift alone: the same seed, networks, data and batches. On the primal
scale their values differ by the initial value of the shift at first, and by nothing at last. In
between, the share that is left falls by `e` in a lifetime, if networks follow their targets.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rewardshift.agents.base import Agent
from rewardshift.agents.bcq import BCQ
from rewardshift.agents.cql import CQL
from rewardshift.agents.dqn import DQN
from rewardshift.agents.networks import MLP
from rewardshift.agents.td3 import TD3
from rewardshift.lab import (
    Claim,
    Curve,
    Figure,
    Method,
    Panel,
    Preset,
    Style,
    Task,
    Unit,
    budgets,
    smoke_preset,
    task_panels,
)
from rewardshift.lab.trainings import agent_for, budget_for, curves_of
from rewardshift.paper.behaviour import Behaviour
from rewardshift.paper.mechanism import lasting
from rewardshift.shift import Shift
from rewardshift.training.runs import train_offline

GAMMA, TAU = 0.95, 0.05
DATA_SEED = 1000  # no seed of a training
PREDICTED = "predicted"
SIGNS = {"negative": -1.0, "positive": 1.0}


def _task(agent: Agent, data: Behaviour | str, bias: float) -> Task:
    """An agent, its data, and the size of the shift, which is applied with both signs."""
    biases = {PREDICTED: 0.0, **{label: sign * bias for label, sign in SIGNS.items()}}
    shifts = {m: {"shift": Shift(b, terminal="absorbing")} for m, b in biases.items()}
    return Task(data=data, agent=agent, methods=shifts)


SMALL: dict[str, Any] = {"gamma": GAMMA, "tau": TAU, "network": MLP((64, 64)), "batch_size": 64}
_MOUNTAIN_CAR = MLP((64, 64), input_range=((-1.2, 0.6), (-0.07, 0.07)))
TASKS = {
    "DQN": _task(
        DQN(network=_MOUNTAIN_CAR, gamma=GAMMA, tau=TAU),
        Behaviour("MountainCar-v0", 0.3, DATA_SEED),
        0.1,
    ),
    "TD3": _task(
        TD3(learning_rate=1e-3, warm_up=0, **SMALL), Behaviour("Pendulum-v1", 0.5, DATA_SEED), 2.0
    ),
    "BCQ": _task(BCQ(proposer=MLP((64, 64)), **SMALL), "embedded/hopper-medium", 0.5),
    "CQL": _task(
        CQL(learning_rate=1e-3, cloning_updates=0, **SMALL), "embedded/hopper-medium", 0.5
    ),
}
IN_DATA = "{}, actions in the data".format


def run_lifetime(figure: Figure, unit: Unit, folder: Path) -> list[Curve]:
    """One agent without a shift and with both, for all seeds of the unit side by side."""
    (name,) = unit.tasks
    task, budget = figure.tasks[name], budget_for(name, unit.budget)
    data = task.load(budget.transitions, DATA_SEED)
    measured: list[Curve] = []
    for method in figure.methods:
        result = train_offline(
            agent_for(method, task, budget),
            data,
            seeds=unit.seeds,
            budget=budget.offline(),
            folder=folder / method.name,
        )
        measured += curves_of(figure, unit._replace(methods=(method.name,)), result)
    unshifted = {(c.panel, c.seed): np.array(c.values) for c in measured if c.method == PREDICTED}
    return [_share_left(task, curve, unshifted[curve.panel, curve.seed]) for curve in measured]


def _share_left(task: Task, measured: Curve, unshifted: np.ndarray) -> Curve:
    """The share of the offset that is left in a curve of values; without a shift, as predicted."""
    agent: Any = task.agent
    if measured.method == PREDICTED:
        left = np.exp(-np.asarray(measured.steps) / agent.lifetime)
    else:
        shift = replace(task.methods[measured.method]["shift"], gamma=agent.gamma)
        left = (shift.to_primal(np.array(measured.values)) - unshifted) / shift.initial_value
    return measured._replace(values=left.tolist())


def fitted_lifetime(curve: Curve, until: int) -> float:
    """The updates in which the exponential that fits best falls by `e`.

    The spread of a share does not shrink with the share, so that of its logarithm grows: each
    point has the weight of its share.

    Args:
        curve: The share that is left.
        until: The last update that counts.
    """
    steps, left = np.array(curve.steps), np.array(curve.values)
    fit = (steps <= until) & (left > 0)
    slope, _ = np.polyfit(steps[fit], np.log(left[fit]), 1, w=left[fit])
    return float(-1 / slope)


# The claims are about the first two lifetimes: later the policies, and so their values, may differ.
JUDGED = 2
# A lifetime that is longer by a quarter moves the share that is left by up to this: at t of
# 1.1 lifetimes, exp(-t / 1.25) - exp(-t). The mean over the time would let errors cancel.
DEVIATION = 0.082

BUDGET = budgets(lasting(4, TASKS), evaluations=20, evaluation_episodes=1)
LIFETIME = Figure(
    name="lifetime",
    title="How long a shift lasts: the share of its offset that is left",
    scenario="theory",
    tasks=TASKS,
    panels=(
        *task_panels(["DQN"], "share left", "q", title=IN_DATA, y_range=(0.0, 1.0)),
        # The values of TD3, which nothing keeps near the data, leave the range in the end.
        *task_panels(["TD3"], "share left", "q", title=IN_DATA),
        *task_panels(["BCQ", "CQL"], "share left", "q_seen", title=IN_DATA, y_range=(0.0, 1.0)),
        *(
            Panel(f"{name}-unseen", f"{name}, random actions", "share left", name, "q_unseen")
            for name in ("BCQ", "CQL")
        ),
    ),
    methods=(
        Method(PREDICTED, "predicted", style=Style("#525252", "--")),
        Method("negative", "negative shift", style=Style("#2171b5", "-")),
        Method("positive", "positive shift", style=Style("#d94801", "-.")),
    ),
    claims=tuple(
        Claim(
            f"{name}-{label}-as-predicted",
            name,
            f"Where there is data, {name} forgets a {label} shift as fast as predicted.",
            label,
            PREDICTED,
            "deviation",
            "ours",
            bound=DEVIATION,
            until=updates,
        )
        for name, updates in lasting(JUDGED, TASKS).items()
        for label in SIGNS
    ),
    presets={
        "smoke": smoke_preset(
            budgets(lasting(1, TASKS), evaluations=2, evaluation_episodes=1, transitions=100), 60
        ),
        "quick": Preset(seeds=10, budget=BUDGET, seconds=400),
        "paper": Preset(seeds=20, budget=BUDGET, seconds=800),
    },
    takes_terminal=False,
    x_label="updates",
    run=run_lifetime,
    unit_spans=("method",),
    seeds_per_unit=10,
    columns=2,
)
