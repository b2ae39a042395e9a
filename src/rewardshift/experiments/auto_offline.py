"""The shift that a data set chooses, beside none and the paper's +8 (ours).

The data sets are those of `offline-mechanism`. Its results led to the rule, so this figure tests it
on other seeds, which have other data: seed 0 of this figure is seed 100 there.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from rewardshift.agents.dqn import DQN
from rewardshift.agents.td3 import TD3
from rewardshift.experiments.behaviour import Behaviour
from rewardshift.experiments.figure import Claim, Curve, Figure, Method, Panel, Style, Unit
from rewardshift.experiments.mechanism import OFFLINE_MECHANISM, run_mechanism
from rewardshift.experiments.mechanism import TASKS as OTHER_TASKS
from rewardshift.shift import Shift

FIRST_SEED = 100


@dataclass(frozen=True)
class ChosenData:
    """A data set, and the agent that learns from it.

    Args:
        behaviour: The policy that collects the data, separately for every seed.
        agent: The agent.
    """

    behaviour: Behaviour
    agent: DQN | TD3

    def configure(self, bias: float | Literal["auto"]) -> DQN | TD3:
        """The agent with this shift, which only moves the initial value."""
        shift = bias if isinstance(bias, str) else Shift(bias, terminal="absorbing")
        return replace(self.agent, shift=shift)


def run_fresh(figure: Figure, unit: Unit, folder: Path) -> list[Curve]:
    """As `run_mechanism`, with seeds that `offline-mechanism` does not have."""
    fresh = unit._replace(seeds=tuple(FIRST_SEED + seed for seed in unit.seeds))
    curves = run_mechanism(figure, fresh, folder)
    return [curve._replace(seed=curve.seed - FIRST_SEED) for curve in curves]


TASKS = {
    name: ChosenData(task.behaviour, task.agent)
    for name, task in OTHER_TASKS.items()
    if not name.endswith("absorbing")  # the same data again
}


def _claim(task: str, worse: str, label: str) -> Claim:
    return Claim(
        f"{task}-auto-above-{worse}",
        task,
        f"The shift that the data choose ends better than {label}.",
        better="auto",
        worse=worse,
        metric="final",
        source="ours",
        end=0.5,
    )


AUTO_OFFLINE = replace(
    OFFLINE_MECHANISM,
    name="auto-offline",
    title="Offline: the shift that a data set chooses",
    scenario="auto",
    tasks=TASKS,
    panels=tuple(
        Panel(name, name.replace("-", ", "), "return", task=name, measure="evaluation_return")
        for name in TASKS
    ),
    methods=(
        Method("none", "no shift", 0.0, Style("#525252", "--")),
        Method("paper", "+8", 8.0, Style("#d94801", "-.")),
        Method("auto", "auto: lowest return", "auto", Style("#dd3497", "-")),
    ),
    # No return of CartPole is negative: there the data choose no shift.
    claims=(
        *(_claim(task, "none", "none") for task in TASKS if not task.startswith("CartPole")),
        *(_claim(task, "paper", "+8") for task in TASKS),
    ),
    presets={  # 27 methods and tasks where the other figure has 90
        name: replace(preset, seconds=0.3 * preset.seconds)
        for name, preset in OFFLINE_MECHANISM.presets.items()
    },
    run=run_fresh,
)
