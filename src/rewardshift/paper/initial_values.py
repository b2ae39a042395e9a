"""Where a network's values begin: not at zero, and soon far above every return (ours).

On these tasks no return is above 1, so without a shift a value above 1 is an overestimation. The
scale of the inputs, the output layer and the maximum over actions may each have a part in it.
"""

from dataclasses import replace

from rewardshift.agents.networks import MLP
from rewardshift.envs import four_rooms_id
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
from rewardshift.paper.curiosity import PAPER_DQN

TASKS = {
    "Empty-Random": Task("MiniGrid-Empty-Random-6x6-v0"),
    "MultiRoom": Task("MiniGrid-MultiRoom-N2-S4-v0"),
    "FourRooms-7": Task(four_rooms_id(7)),
}
RAW = replace(PAPER_DQN, gamma=0.98)
# To [0, 1]: kinds of objects count up to 10.
SCALED = replace(RAW, network=MLP((64,), input_range=((0.0, 10.0),)))
SCALED_ZERO = replace(SCALED, initial="zero")
SCALED_DOUBLE = replace(SCALED, double=True)
METHODS = (
    Method("raw", "raw inputs", RAW, Style("#252525", "-")),
    Method("raw-double", "raw, double DQN", replace(RAW, double=True), Style("#bdbdbd", "--")),
    Method("raw-zero", "raw, output at zero", replace(RAW, initial="zero"), Style("#a63603", ":")),
    Method("scaled", "scaled inputs", SCALED, Style("#2171b5", "-")),
    Method("scaled-double", "scaled, double DQN", SCALED_DOUBLE, Style("#6baed6", "--")),
    Method("scaled-zero", "scaled, output at zero", SCALED_ZERO, Style("#00441b", ":")),
    Method("normalised", "normalised inputs", replace(RAW, normalise=True), Style("#dd3497", "-.")),
)
SENTENCES = (
    ("scaled", "raw", "Inputs scaled to [0, 1] keep the values lower."),
    ("normalised", "raw", "Normalised inputs keep the values lower."),
    ("raw-double", "raw", "Double DQN keeps the values lower."),
    ("raw-zero", "raw", "An output layer that starts at zero keeps the values lower."),
)
BUDGET = Budget(8_000, evaluations=40, evaluation_episodes=1)

INITIAL_VALUES = Figure(
    name="initial-values",
    title="Where a network's values begin",
    scenario="theory",
    tasks=TASKS,
    panels=task_panels(TASKS, "mean value of a batch", "q", lower_is_better=True),
    methods=METHODS,
    claims=orderings(TASKS, SENTENCES, "{panel}-{better}-below-{worse}", source="ours"),
    presets={
        "smoke": smoke_preset(replace(BUDGET, steps=200, evaluations=2), 60),
        "quick": Preset(seeds=10, budget=BUDGET, seconds=600),
        "paper": Preset(seeds=20, budget=replace(BUDGET, steps=40_000), seconds=6_000),
    },
    revision=2,
    takes_terminal=False,
    seeds_per_unit=10,
)
