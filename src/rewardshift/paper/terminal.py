"""Optimism and the price of time, separated: what happens to a shift where an episode ends (ours).

A negative shift is an optimistic initial value. If it stops at the end of an episode, it is also a
price of time, which pays for ending soon: at a goal, or in a hole. Tables show both apart.
"""

from dataclasses import replace

from rewardshift.lab import (
    Budget,
    Figure,
    Method,
    Preset,
    Style,
    orderings,
    smoke_preset,
    task_panels,
)
from rewardshift.paper.tables import GAMMA, World, q_learning, run_tables
from rewardshift.shift import Shift, Terminal

TASKS = {
    **{f"maze-S{size}": World("maze", size) for size in (10, 15, 20)},
    **{f"FrozenLake-{size}": World("lake", size) for size in (4, 8)},
    **{f"DeepSea-{size}": World("sea", size) for size in (10, 20, 30)},
}
LINES: dict[Terminal, str] = {"zero": "-", "absorbing": "--", "goal": ":"}
COLORS: dict[Terminal, dict[float, str]] = {
    "zero": {-0.01: "#6baed6", -0.02: "#08306b", 0.02: "#d94801"},
    "absorbing": {-0.01: "#74c476", -0.02: "#00441b", 0.02: "#a63603"},
    "goal": {-0.01: "#9e9ac8", -0.02: "#3f007d", -0.05: "#dd3497"},
}
BUDGET = Budget(1000, evaluations=20, evaluation_episodes=50)


def _method(bias: float, terminal: Terminal) -> Method:
    agent = q_learning(Shift(bias, gamma=GAMMA, terminal=terminal))
    style = Style(COLORS[terminal][bias], LINES[terminal])
    return Method(f"{bias:+g}-{terminal}", f"{bias:+g}, {terminal}", agent, style)


OPTIMIST, PRICED, LASTING = "-0.01-goal", "-0.01-zero", "-0.01-absorbing"

MAZES = [name for name in TASKS if name.startswith("maze")]
LAKES = [name for name in TASKS if name.startswith("FrozenLake")]
ONE = "Optimism 1 that ends only at goals explores better."
FIVE = "A table explores better with an optimism of 1 than with 5, the default of auto."
PRICE = "In a task that ends only at its goal, the price of time adds to optimism."
HARM = "Part of the harm of a positive shift is the price of time."
HOLES = "Where holes end an episode, {} beats a shift that stops there."
AT_HOLES = (
    (OPTIMIST, PRICED, HOLES.format("a shift that ends only at goals")),
    (LASTING, PRICED, HOLES.format("a shift that never ends")),
    ("none", PRICED, HOLES.format("no shift")),
)
HARMED = ("maze-S10", "FrozenLake-4")

TERMINAL_TREATMENT = Figure(
    name="terminal-treatment",
    title="Where an episode ends: optimism and the price of time (success rates)",
    scenario="theory",
    tasks=TASKS,
    panels=task_panels(
        TASKS,
        "success rate",
        "success",
        title=lambda task: task.replace("maze-", "Maze "),
        y_range=(0.0, 1.0),
    ),
    methods=(
        Method("none", "no shift", q_learning(0.0), Style("#525252", "-.")),
        *(_method(-0.01, terminal) for terminal in LINES),
        *(_method(-0.02, terminal) for terminal in LINES),
        _method(-0.05, "goal"),
        *(_method(0.02, terminal) for terminal in ("zero", "absorbing")),
    ),
    claims=(
        *orderings(TASKS, [(OPTIMIST, "none", ONE)], source="ours"),
        *orderings(TASKS, [(OPTIMIST, "-0.05-goal", FIVE)], source="ours"),
        *orderings(MAZES, [(PRICED, LASTING, PRICE)], source="ours"),
        *orderings(LAKES, AT_HOLES, source="ours"),
        *orderings(HARMED, [("+0.02-absorbing", "+0.02-zero", HARM)], source="ours"),
    ),
    presets={
        "smoke": smoke_preset(replace(BUDGET, steps=20, evaluations=2), 60),
        "quick": Preset(seeds=10, budget=BUDGET, seconds=95),
        "paper": Preset(seeds=20, budget=BUDGET, seconds=190),
    },
    takes_terminal=False,
    x_label="training episodes",
    run=run_tables,
    unit_spans=("method",),
    seeds_per_unit=10,
    form="table",
)
