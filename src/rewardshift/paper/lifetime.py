"""How long a shift lasts: the share of its offset that is left, predicted and measured (ours).

Two trainings differ in the shift alone: the same seed, networks, data and batches. On the primal
scale their values differ by the initial value of the shift at first, and by nothing at last. In
between, the share that is left falls by `e` in a lifetime, if networks follow their targets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rewardshift.agents.bcq import BCQ
from rewardshift.agents.cql import CQL
from rewardshift.agents.dqn import DQN
from rewardshift.agents.networks import MLP
from rewardshift.agents.td3 import TD3
from rewardshift.lab.figure import (
    Claim,
    Curve,
    Figure,
    Method,
    Panel,
    Preset,
    Style,
    Unit,
)
from rewardshift.paper.behaviour import Behaviour
from rewardshift.shift import Shift
from rewardshift.training.offline import OfflineBudget
from rewardshift.training.runs import Result, train_offline

GAMMA, TAU = 0.95, 0.05
DATA_SEED = 1000  # no seed of a training
PREDICTED = "predicted"


@dataclass(frozen=True)
class LifetimeTask:
    """An agent, its data, and the size of the shift.

    Args:
        agent: The agent.
        data: The policy that collects the data, or the name of an embedded data set.
        bias: The size of the shift, which is applied with both signs.
        seen: The column with the mean value of actions in the data.
    """

    agent: DQN | TD3 | BCQ | CQL
    data: Behaviour | str
    bias: float
    seen: str


@dataclass(frozen=True)
class LifetimeBudget:
    """The budget of the figure.

    Args:
        lifetimes: Updates, in lifetimes of the agent's shift.
        transitions: Size of a data set.
        points: Points of a curve.
    """

    lifetimes: int = 4
    transitions: int = 5000
    points: int = 20

    def offline(self, agent: DQN | TD3 | BCQ | CQL) -> OfflineBudget:
        """The budget for the training loop."""
        updates = round(self.lifetimes * agent.lifetime)
        return OfflineBudget(
            updates=updates, evaluate_every=updates // self.points, evaluation_episodes=1
        )


_MOUNTAIN_CAR = MLP((64, 64), input_range=((-1.2, 0.6), (-0.07, 0.07)))
TASKS = {
    "DQN": LifetimeTask(
        DQN(network=_MOUNTAIN_CAR, gamma=GAMMA, tau=TAU), Behaviour("MountainCar-v0", 0.3), 0.1, "q"
    ),
    "TD3": LifetimeTask(
        TD3(
            network=MLP((64, 64)),
            learning_rate=1e-3,
            batch_size=64,
            warm_up=0,
            gamma=GAMMA,
            tau=TAU,
        ),
        Behaviour("Pendulum-v1", 0.5),
        2.0,
        "q",
    ),
    "BCQ": LifetimeTask(
        BCQ(network=MLP((64, 64)), proposer=MLP((64, 64)), batch_size=64, gamma=GAMMA, tau=TAU),
        "embedded/hopper-medium",
        0.5,
        "q_seen",
    ),
    "CQL": LifetimeTask(
        CQL(
            network=MLP((64, 64)),
            learning_rate=1e-3,
            batch_size=64,
            cloning_updates=0,
            gamma=GAMMA,
            tau=TAU,
        ),
        "embedded/hopper-medium",
        0.5,
        "q_seen",
    ),
}
SIGNS = {"negative": -1.0, "positive": 1.0}


def run_lifetime(figure: Figure, unit: Unit, folder: Path) -> list[Curve]:
    """One agent without a shift and with both, for all seeds of the unit side by side."""
    (name,) = unit.tasks
    task: LifetimeTask = figure.tasks[name]
    budget: LifetimeBudget = unit.budget
    data = (
        task.data if isinstance(task.data, str) else task.data.record(budget.transitions, DATA_SEED)
    )

    def trained(label: str, bias: float) -> Result:
        agent = replace(task.agent, shift=Shift(bias, terminal="absorbing"))
        schedule = budget.offline(agent)
        result = train_offline(
            agent, data, seeds=unit.seeds, budget=schedule, folder=folder / label
        )
        if not result.finished:
            raise KeyboardInterrupt
        return result

    plain = trained("none", 0.0)
    shifted = {label: trained(label, sign * task.bias) for label, sign in SIGNS.items()}
    return [
        curve
        for panel in figure.panels
        if panel.task == name
        for seed in unit.seeds
        for curve in _curves(panel, task, seed, plain, shifted)
    ]


def _curves(
    panel: Panel, task: LifetimeTask, seed: int, plain: Result, shifted: dict[str, Result]
) -> list[Curve]:
    """The measured curves of a seed, and the predicted one."""
    column = task.seen if panel.measure == "seen" else "q_unseen"
    steps, base = _column(plain, column, seed)
    curves = []
    for label, result in shifted.items():
        shift = Shift(SIGNS[label] * task.bias, gamma=task.agent.gamma)
        _, values = _column(result, column, seed)
        left = (shift.to_primal(values) - base) / shift.initial_value
        curves.append(Curve(panel.name, label, seed, steps, left.tolist()))
    predicted = np.exp(-np.asarray(steps) / task.agent.lifetime)
    return [*curves, Curve(panel.name, PREDICTED, seed, steps, predicted.tolist())]


def _column(result: Result, name: str, seed: int) -> tuple[Sequence[int], np.ndarray]:
    rows = [row for row in result.rows if row.seed == seed]
    values = [result.columns.value(row, name) for row in rows]
    return [row.step for row in rows], np.array(values, float)


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

LIFETIME = Figure(
    name="lifetime",
    title="How long a shift lasts: the share of its offset that is left",
    scenario="theory",
    tasks=TASKS,
    panels=(
        *(
            # The values of TD3, which nothing keeps near the data, leave the range in the end.
            Panel(
                name,
                f"{name}, actions in the data",
                "share left",
                name,
                "seen",
                y_range=None if name == "TD3" else (0.0, 1.0),
            )
            for name in TASKS
        ),
        *(
            Panel(f"{name}-unseen", f"{name}, random actions", "share left", name, "unseen")
            for name in ("BCQ", "CQL")
        ),
    ),
    methods=(
        Method(PREDICTED, "predicted", None, Style("#525252", "--")),
        Method("negative", "negative shift", None, Style("#2171b5", "-")),
        Method("positive", "positive shift", None, Style("#d94801", "-.")),
    ),
    claims=tuple(
        Claim(
            f"{name}-{label}-as-predicted",
            name,
            f"Where there is data, {name} forgets a {label} shift as fast as predicted.",
            label,
            PREDICTED,
            source="ours",
            metric="deviation",
            bound=DEVIATION,
            until=round(JUDGED * task.agent.lifetime),
        )
        for name, task in TASKS.items()
        for label in SIGNS
    ),
    presets={
        "smoke": Preset(
            seeds=2,
            budget=LifetimeBudget(1, 100, points=2),
            seconds=60,
            note="one lifetime on 100 transitions: shows that it runs, nothing else",
            decides=False,
        ),
        "quick": Preset(seeds=10, budget=LifetimeBudget(), seconds=400),
        "paper": Preset(seeds=20, budget=LifetimeBudget(), seconds=800),
    },
    takes_terminal=False,
    x_label="updates",
    run=run_lifetime,
    unit_spans=("method",),
    seeds_per_unit=10,
    lifetimes=lambda figure, _, preset: figure.presets[preset].budget.lifetimes,
)
