"""Where a network's values begin: not at zero, and soon far above every return (ours).

On these tasks no return is above 1, so without a shift a value above 1 is an overestimation. The
scale of the inputs, the output layer and the maximum over actions may each have a part in it.
"""

from dataclasses import dataclass, replace

from rewardshift.agents.dqn import DQN
from rewardshift.agents.networks import MLP
from rewardshift.envs import four_rooms_id
from rewardshift.lab.curves import Task, online_lifetimes, run_online, with_terminal
from rewardshift.lab.figure import Claim, Figure, Method, Panel, Preset, Style
from rewardshift.paper.curiosity import PAPER_DQN
from rewardshift.shift import Terminal
from rewardshift.training.online import OnlineBudget

SCALED = MLP((64,), input_range=((0.0, 10.0),))  # to [0, 1]: kinds of objects count up to 10
TASKS = {
    "Empty-Random": Task("MiniGrid-Empty-Random-6x6-v0"),
    "MultiRoom": Task("MiniGrid-MultiRoom-N2-S4-v0"),
    "FourRooms-7": Task(four_rooms_id(7)),
}
RAW = replace(PAPER_DQN, gamma=0.98)
METHODS = (
    Method("raw", "raw inputs", RAW, Style("#252525", "-")),
    Method("raw-double", "raw, double DQN", replace(RAW, double=True), Style("#bdbdbd", "--")),
    Method("raw-zero", "raw, output at zero", replace(RAW, initial="zero"), Style("#a63603", ":")),
    Method("scaled", "scaled inputs", replace(RAW, network=SCALED), Style("#2171b5", "-")),
    Method(
        "scaled-double",
        "scaled, double DQN",
        replace(RAW, network=SCALED, double=True),
        Style("#6baed6", "--"),
    ),
    Method(
        "scaled-zero",
        "scaled, output at zero",
        replace(RAW, network=SCALED, initial="zero"),
        Style("#00441b", ":"),
    ),
    Method("normalised", "normalised inputs", replace(RAW, normalise=True), Style("#dd3497", "-.")),
)
SENTENCES = (
    ("scaled", "raw", "Inputs scaled to [0, 1] keep the values lower."),
    ("normalised", "raw", "Normalised inputs keep the values lower."),
    ("raw-double", "raw", "Double DQN keeps the values lower."),
    ("raw-zero", "raw", "An output layer that starts at zero keeps the values lower."),
)


@dataclass(frozen=True)
class ValuesBudget:
    """The budget of the figure.

    Args:
        steps: Environment steps of each seed.
        evaluations: Points of a curve.
    """

    steps: int = 8_000
    evaluations: int = 40

    def configure(self, agent: DQN, task: Task, terminal: Terminal) -> DQN:
        """See `OnlineFigureBudget`."""
        return replace(agent, shift=with_terminal(agent, terminal))

    def online(self, task: str) -> OnlineBudget:
        """See `OnlineFigureBudget`."""
        every = self.steps // self.evaluations
        return OnlineBudget(steps=self.steps, evaluate_every=every, evaluation_episodes=1)


INITIAL_VALUES = Figure(
    name="initial-values",
    title="Where a network's values begin",
    scenario="theory",
    tasks=TASKS,
    panels=tuple(
        Panel(task, task, "mean value of a batch", task, "q", lower_is_better=True)
        for task in TASKS
    ),
    methods=METHODS,
    claims=tuple(
        Claim(f"{task}-{better}-below-{worse}", task, sentence, better, worse, source="ours")
        for task in TASKS
        for better, worse, sentence in SENTENCES
    ),
    presets={
        "smoke": Preset(
            seeds=2,
            budget=ValuesBudget(200, evaluations=2),
            seconds=60,
            note="200 of 8,000 steps: shows that it runs, nothing else",
            decides=False,
        ),
        "quick": Preset(seeds=10, budget=ValuesBudget(), seconds=600),
        "paper": Preset(seeds=20, budget=ValuesBudget(40_000), seconds=6_000),
    },
    revision=2,
    takes_terminal=False,
    x_label="environment steps",
    run=run_online,
    unit_spans=(),
    seeds_per_unit=10,
    lifetimes=online_lifetimes,
)
