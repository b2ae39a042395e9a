"""The shift that chooses itself (ours): the tasks on which its rule was made, and tests of it.

`auto` and `auto-control` are development: five units of optimism everywhere, which was the rule
then, helped where a goal pays once and not elsewhere. The rule of today chooses a shift of these
figures on each of their tasks; a test compares them. `auto-test` has other tasks, which were fixed
with the claims before any training. `auto-offline` has the data sets of `offline-mechanism`, whose
results led to the rule for data sets. So it tests that rule on other seeds, which have other data:
its seeds 0 to 19 train with the seeds 100 to 119.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rewardshift.agents.base import Agent
from rewardshift.agents.dqn import DQN
from rewardshift.agents.networks import MLP
from rewardshift.agents.td3 import TD3
from rewardshift.auto import Auto
from rewardshift.envs import (
    CLIFF_WALKING,
    FROZEN_LAKE,
    RUNNERS,
    SPARSE_PENDULUM,
    deep_sea_id,
    four_rooms_id,
    sparse_runner_id,
)
from rewardshift.lab import (
    Curve,
    Figure,
    Method,
    Preset,
    Style,
    Task,
    Unit,
    budgets,
    orderings,
    smoke_preset,
    task_panels,
    train_unit,
)
from rewardshift.paper.curiosity import PAPER_DQN
from rewardshift.paper.mechanism import OFFLINE_MECHANISM, titled
from rewardshift.shift import Shift


def _shifts(**shifts: Any) -> dict[str, dict[str, Any]]:
    return {method: {"shift": shift} for method, shift in shifts.items()}


def _test(env: str, agent: Agent, rule: Any = Auto()) -> Task:  # noqa: B008  it is frozen
    return Task(env, agent=agent, methods=_shifts(none=0.0, paper=-0.5, auto=rule))


def _development(env: str, agent: Agent) -> Task:
    """A task with five units of optimism in the place of `"auto"`."""
    return _test(env, agent, Shift(5.0 * (agent.gamma - 1), terminal="goal"))


# The paper's DQN is unstable where a discount is near 1 and rewards are dense: there the target
# networks are slower.
GRID = replace(PAPER_DQN, gamma=0.98)
SEA = replace(PAPER_DQN, gamma=0.99)
CLASSIC = DQN(gamma=0.99, tau=0.005)
CAR = TD3(network=MLP((64, 64)), learning_rate=1e-3, batch_size=64, warm_up=1_000)
TASKS = {
    "DeepSea-20": _development(deep_sea_id(20), SEA),
    "MultiRoom": _development("MiniGrid-MultiRoom-N2-S4-v0", GRID),
    "FourRooms-7": _development(four_rooms_id(7), GRID),
    "FourRooms-9": _development(four_rooms_id(9), GRID),
    "MountainCar": _development("MountainCar-v0", CLASSIC),
    "Acrobot": _development("Acrobot-v1", CLASSIC),
    "MountainCarContinuous": _development("MountainCarContinuous-v0", CAR),
}
STEPS = {**dict.fromkeys(TASKS, 40_000), "MountainCar": 60_000}
# The task and its steps were chosen on seeds from 100 on, which no figure reports.
CONTROL_TASKS = {"SparsePendulum": _development(SPARSE_PENDULUM, CAR)}
CONTROL_STEPS = {"SparsePendulum": 20_000}
FIVE_UNITS = (
    ("auto", "none", "Five units of optimism are better than none."),
    ("auto", "paper", "Five units of optimism are better than -0.5."),
)
AUTO_STYLE = Style("#dd3497", "-")


def _presets(
    steps: Mapping[str, int], share: float, smoke: float, quick: float, paper: float
) -> dict[str, Preset]:
    """The presets of tasks with these steps, of which `smoke` takes a share, and their seconds."""
    least = {task: round(share * count) for task, count in steps.items()}
    most = {task: 5 * count for task, count in steps.items()}
    tiny = budgets(least, evaluations=2, evaluation_episodes=1)
    whole = budgets(most, evaluations=50, evaluation_episodes=10)
    return {
        "smoke": smoke_preset(tiny, smoke),
        "quick": Preset(seeds=10, budget=budgets(steps), seconds=quick),
        "paper": Preset(seeds=20, budget=whole, seconds=paper),
    }


AUTO = Figure(
    name="auto",
    title="Five units of optimism, the first rule of auto",
    scenario="auto",
    tasks=TASKS,
    panels=task_panels(TASKS),
    methods=(
        Method("none", "no shift", style=Style("#525252", "--")),
        Method("paper", "-0.5", style=Style("#2171b5", "-.")),
        Method("auto", "five units", style=AUTO_STYLE),
    ),
    claims=orderings(TASKS, FIVE_UNITS, source="ours"),
    presets=_presets(STEPS, 0.03, smoke=120, quick=3600, paper=40_000),
    revision=2,
    seeds_per_unit=10,
)

AUTO_CONTROL = replace(
    AUTO,
    name="auto-control",
    title="Five units of optimism where nothing terminates",
    tasks=CONTROL_TASKS,
    panels=task_panels(CONTROL_TASKS),
    claims=orderings(CONTROL_TASKS, FIVE_UNITS, source="ours"),
    presets=_presets(CONTROL_STEPS, 0.06, smoke=30, quick=300, paper=4_000),
)

# The tasks, their agents, steps and claims were fixed before any training on them.
SMALL = DQN(gamma=0.99, tau=0.005, network=MLP((64, 64)))
RUNNER = replace(CAR, warm_up=5_000)
EXPLORED = {
    "FrozenLake-8": _test(FROZEN_LAKE, SEA),
    "FrozenLake-8, slippery": _test("FrozenLake8x8-v1", SEA),
    "Unlock": _test("MiniGrid-Unlock-v0", GRID),
    "KeyCorridor": _test("MiniGrid-KeyCorridorS3R1-v0", GRID),
    **{f"Sparse{robot}": _test(sparse_runner_id(robot), RUNNER) for robot in RUNNERS},
}
# Their rewards lead to the goal, or cost something at every step: a shift has nothing to add.
LED = {
    "CliffWalking": _test(CLIFF_WALKING, SMALL),
    "Taxi": _test("Taxi-v4", SMALL),
    "LunarLander": _test("LunarLander-v3", SMALL),
    "Pendulum": _test("Pendulum-v1", CAR),
}
TEST_TASKS = {**EXPLORED, **LED}
TEST_STEPS = {
    **dict.fromkeys(TEST_TASKS, 40_000),
    **dict.fromkeys((f"Sparse{robot}" for robot in RUNNERS), 50_000),
    "LunarLander": 60_000,
    "Pendulum": 20_000,
}
BETTER = (("auto", "none", "A shift that chooses itself is better than none."),)
NOT_WORSE = (
    ("auto", "none", "A shift that chooses itself is not much worse than none."),
    ("auto", "paper", "A shift that chooses itself is not much worse than -0.5."),
)
NOT_BELOW = "{panel}-{better}-not-below-{worse}"

AUTO_TEST = replace(
    AUTO,
    name="auto-test",
    title="The shift that chooses itself, on new tasks",
    tasks=TEST_TASKS,
    panels=(
        *task_panels(list(EXPLORED)[:4], y_range=(0.0, 1.0)),
        *task_panels(list(EXPLORED)[4:], y_range=(0.0, 1000.0)),
        *task_panels(LED),
    ),
    methods=(*AUTO.methods[:2], Method("auto", "auto", style=AUTO_STYLE)),
    claims=(
        *orderings(EXPLORED, BETTER, source="ours"),
        *orderings(TEST_TASKS, NOT_WORSE, NOT_BELOW, source="ours", allowance=0.1),
    ),
    presets=_presets(TEST_STEPS, 0.03, smoke=240, quick=3_700, paper=41_000),
)

# Where episodes terminate, these shifts move the initial value and nothing else.
ON_DATA = _shifts(
    none=Shift(0.0, terminal="absorbing"), paper=Shift(8.0, terminal="absorbing"), auto="auto"
)
DATA_TASKS = {
    name: replace(task, methods=ON_DATA)
    for name, task in OFFLINE_MECHANISM.tasks.items()
    if not name.endswith("absorbing")  # the same data again
}
# No reward of CartPole is negative: there the data choose no shift.
SHIFTED = [name for name in DATA_TASKS if not name.startswith("CartPole")]
THAN_NONE = (("auto", "none", "The shift that the data choose ends better than none."),)
THAN_8 = (("auto", "paper", "The shift that the data choose ends better than +8."),)
AT_THE_END: dict[str, Any] = {"metric": "final", "source": "ours", "end": 0.5}
FIRST_SEED = 100


def _title(task: str) -> str:
    return titled(task) + ("" if task in SHIFTED else " (auto is no shift)")


def run_later_seeds(figure: Figure, unit: Unit, folder: Path) -> list[Curve]:
    """Trains with seeds that had no part in the rule."""
    later = unit._replace(seeds=tuple(FIRST_SEED + seed for seed in unit.seeds))
    curves = train_unit(figure, later, folder)
    return [curve._replace(seed=curve.seed - FIRST_SEED) for curve in curves]


AUTO_OFFLINE = replace(
    OFFLINE_MECHANISM,
    name="auto-offline",
    title="Offline: the shift that a data set chooses",
    form="curves",
    scenario="auto",
    tasks=DATA_TASKS,
    panels=task_panels(DATA_TASKS, title=_title),
    methods=(
        Method("none", "no shift", style=Style("#525252", "--")),
        Method("paper", "+8", style=Style("#d94801", "-.")),
        Method("auto", "auto: lowest value", style=AUTO_STYLE),
    ),
    claims=(
        *orderings(SHIFTED, THAN_NONE, **AT_THE_END),
        *orderings(DATA_TASKS, THAN_8, **AT_THE_END),
    ),
    run=run_later_seeds,
    presets={  # 27 methods and tasks where the other figure has 90; `quick` as measured
        name: replace(preset, seconds=600 if name == "quick" else 0.3 * preset.seconds)
        for name, preset in OFFLINE_MECHANISM.presets.items()
    },
)
