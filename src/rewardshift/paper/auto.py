"""The shift that chooses itself, on tasks that had no part in its development (ours).

`auto-control` has the task that never terminates and has continuous actions.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from rewardshift.agents.dqn import DQN
from rewardshift.agents.networks import MLP
from rewardshift.agents.settings import ShiftLike
from rewardshift.agents.td3 import TD3
from rewardshift.auto import Auto
from rewardshift.envs import SPARSE_PENDULUM, deep_sea_id, four_rooms_id
from rewardshift.lab.curves import (
    SharedBudget,
    online_lifetimes,
    return_panels,
    run_online,
    with_terminal,
)
from rewardshift.lab.figure import Claim, Figure, Method, Preset, Style
from rewardshift.paper.curiosity import PAPER_DQN
from rewardshift.shift import Terminal
from rewardshift.training.online import OnlineBudget


@dataclass(frozen=True)
class ChosenTask:
    """A task of the figure.

    Args:
        env: The registered environment.
        agent: The agent without its shift.
        steps: Environment steps of each seed.
    """

    env: str
    agent: DQN | TD3
    steps: int = 40_000


@dataclass(frozen=True)
class ChosenBudget(SharedBudget):
    """The budget of the figures."""

    def configure(self, shift: ShiftLike, task: ChosenTask, terminal: Terminal) -> DQN | TD3:
        """See `OnlineFigureBudget`."""
        agent = replace(task.agent, shift=shift)
        return replace(agent, shift=with_terminal(agent, terminal))

    def online(self, task: str) -> OnlineBudget:
        """See `OnlineFigureBudget`."""
        return self.of_steps((TASKS | CONTROL_TASKS)[task].steps)


# The paper's DQN, which is unstable where a discount is near 1 and rewards are dense: there the
# target networks are slower.
GRID = replace(PAPER_DQN, gamma=0.98)
SEA = replace(PAPER_DQN, gamma=0.99)
CLASSIC = DQN(gamma=0.99, tau=0.005)
CAR = TD3(network=MLP((64, 64)), learning_rate=1e-3, batch_size=64, warm_up=1_000)
TASKS = {
    "DeepSea-20": ChosenTask(deep_sea_id(20), SEA),
    "MultiRoom": ChosenTask("MiniGrid-MultiRoom-N2-S4-v0", GRID),
    "FourRooms-7": ChosenTask(four_rooms_id(7), GRID),
    "FourRooms-9": ChosenTask(four_rooms_id(9), GRID),
    "MountainCar": ChosenTask("MountainCar-v0", CLASSIC, 60_000),
    "Acrobot": ChosenTask("Acrobot-v1", CLASSIC),
    "MountainCarContinuous": ChosenTask("MountainCarContinuous-v0", CAR),
}
# The task and its steps were chosen on seeds from 100 on, which no figure reports.
CONTROL_TASKS = {"SparsePendulum": ChosenTask(SPARSE_PENDULUM, CAR, 20_000)}
METHODS = (
    Method("none", "no shift", 0.0, Style("#525252", "--")),
    Method("paper", "-0.5", -0.5, Style("#2171b5", "-.")),
    Method("auto", "auto: first reward", Auto(), Style("#dd3497", "-")),
)
SENTENCES = (
    ("auto", "none", "A shift that chooses itself is better than none."),
    ("auto", "paper", "A shift that chooses itself is better than -0.5."),
)


def _claims(tasks: Iterable[str], sentences: Iterable[tuple[str, str, str]]) -> tuple[Claim, ...]:
    """Every sentence about every task."""
    return tuple(
        Claim(f"{task}-{better}-above-{worse}", task, sentence, better, worse, source="ours")
        for task in tasks
        for better, worse, sentence in sentences
    )


AUTO = Figure(
    name="auto",
    title="The shift that chooses itself",
    scenario="auto",
    tasks=TASKS,
    panels=return_panels(tuple(TASKS)),
    methods=METHODS,
    claims=_claims(TASKS, SENTENCES),
    presets={
        "smoke": Preset(
            seeds=2,
            budget=ChosenBudget(0.03, evaluations=2, evaluation_episodes=1),
            seconds=120,
            note="1,200 to 1,800 of 40,000 to 60,000 steps: shows that it runs, nothing else",
            decides=False,
        ),
        "quick": Preset(seeds=10, budget=ChosenBudget(), seconds=3600),
        "paper": Preset(seeds=20, budget=ChosenBudget(5.0, 50, 10), seconds=40_000),
    },
    revision=2,
    x_label="environment steps",
    run=run_online,
    unit_spans=(),
    seeds_per_unit=10,
    lifetimes=online_lifetimes,
)

AUTO_CONTROL = replace(
    AUTO,
    name="auto-control",
    title="The shift that chooses itself, where nothing terminates",
    tasks=CONTROL_TASKS,
    panels=return_panels(tuple(CONTROL_TASKS)),
    methods=METHODS[:3],
    claims=_claims(CONTROL_TASKS, SENTENCES[:2]),
    presets={
        "smoke": Preset(
            seeds=2,
            budget=ChosenBudget(0.06, evaluations=2, evaluation_episodes=1),
            seconds=30,
            note="1,200 of 20,000 steps: shows that it runs, nothing else",
            decides=False,
        ),
        "quick": Preset(seeds=10, budget=ChosenBudget(), seconds=300),
        "paper": Preset(seeds=20, budget=ChosenBudget(5.0, 50, 10), seconds=4_000),
    },
)
