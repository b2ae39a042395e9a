"""The shift that a data set chooses, beside none and the paper's +8 (ours).

The data sets are those of `offline-mechanism`. Its results led to the rule, so this figure tests it
on other seeds, which have other data: its seeds 0 to 19 train with the seeds 100 to 119.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from rewardshift.agents.dqn import DQN
from rewardshift.agents.td3 import TD3
from rewardshift.lab.figure import Claim, Method, Style
from rewardshift.paper.behaviour import Behaviour
from rewardshift.paper.mechanism import OFFLINE_MECHANISM, panels_of
from rewardshift.paper.mechanism import TASKS as OTHER_TASKS
from rewardshift.shift import Shift


@dataclass(frozen=True)
class ChosenData:
    """A data set, and the agent that learns from it.

    Args:
        behaviour: The policy that collects the data, separately for every seed.
        agent: The agent.
    """

    behaviour: Behaviour
    agent: DQN | TD3

    first_seed: ClassVar[int] = 100

    def configure(self, shift: Shift | Literal["auto"]) -> DQN | TD3:
        """The agent with this shift."""
        return replace(self.agent, shift=shift)


TASKS = {
    name: ChosenData(task.behaviour, task.agent)
    for name, task in OTHER_TASKS.items()
    if not name.endswith("absorbing")  # the same data again
}


def _only_initial(bias: float) -> Shift:
    """A shift that moves the initial value and nothing else."""
    return Shift(bias, terminal="absorbing")


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
    panels=panels_of(TASKS),
    methods=(
        Method("none", "no shift", _only_initial(0.0), Style("#525252", "--")),
        Method("paper", "+8", _only_initial(8.0), Style("#d94801", "-.")),
        Method("auto", "auto: lowest value", "auto", Style("#dd3497", "-")),
    ),
    # No reward of CartPole is negative: there the data choose no shift.
    claims=(
        *(_claim(task, "none", "none") for task in TASKS if not task.startswith("CartPole")),
        *(_claim(task, "paper", "+8") for task in TASKS),
    ),
    presets={  # 27 methods and tasks where the other figure has 90; `quick` as measured
        name: replace(preset, seconds=600 if name == "quick" else 0.3 * preset.seconds)
        for name, preset in OFFLINE_MECHANISM.presets.items()
    },
)
