"""Optimism and the price of time, separated: what happens to a shift where an episode ends (ours).

A negative shift is an optimistic initial value. If it stops at the end of an episode, it is also a
price of time, which pays for ending soon: at a goal, or in a hole. Tables show both apart.
"""

from dataclasses import dataclass
from itertools import product
from pathlib import Path

import jax
import numpy as np

from rewardshift.agents.tabular import QLearning
from rewardshift.envs.tabular import FiniteTask, Maze, deep_sea_table, toy_text_table
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
from rewardshift.paper.maze import row_key
from rewardshift.shift import Shift, Terminal
from rewardshift.training.tabular import TabularBudget, train_tabular

GAMMA = 0.99


@dataclass(frozen=True)
class Lake:
    """Gymnasium's FrozenLake without slipping: holes end an episode and pay nothing.

    Args:
        map_name: The map.
        horizon: The steps after which an episode is truncated.
    """

    map_name: str
    horizon: int

    def task(self, seed: int) -> FiniteTask:
        """The lake, which is the same for every seed."""
        settings = {"map_name": self.map_name, "is_slippery": False}
        return toy_text_table("FrozenLake-v1", self.horizon, **settings)


@dataclass(frozen=True)
class Sea:
    """DeepSea, with actions that differ from seed to seed.

    Args:
        size: The size.
    """

    size: int

    def task(self, seed: int) -> FiniteTask:
        """The sea of a seed."""
        return deep_sea_table(self.size, seed)


@dataclass(frozen=True)
class Grid:
    """The paper's maze.

    Args:
        size: The size.
    """

    size: int

    def task(self, seed: int) -> FiniteTask:
        """The maze, which is the same for every seed."""
        return Maze.of_size(self.size)


TASKS: dict[str, Lake | Sea | Grid] = {
    **{f"maze-S{size}": Grid(size) for size in (10, 15, 20)},
    "FrozenLake-4": Lake("4x4", 100),
    "FrozenLake-8": Lake("8x8", 200),
    **{f"DeepSea-{size}": Sea(size) for size in (10, 20, 30)},
}
LINES: dict[Terminal, str] = {"zero": "-", "absorbing": "--", "goal": ":"}
COLORS: dict[Terminal, dict[float, str]] = {
    "zero": {-0.01: "#6baed6", -0.02: "#08306b", 0.02: "#d94801"},
    "absorbing": {-0.01: "#74c476", -0.02: "#00441b", 0.02: "#a63603"},
    "goal": {-0.01: "#9e9ac8", -0.02: "#3f007d", -0.05: "#dd3497"},
}
BUDGET = TabularBudget(evaluate_every=50)
NONE = Method("none", "no shift", Shift(0.0, gamma=GAMMA), Style("#525252", "-."))


def _method(bias: float, terminal: Terminal) -> Method:
    shift = Shift(bias, gamma=GAMMA, terminal=terminal)
    style = Style(COLORS[terminal][bias], LINES[terminal])
    return Method(_name(bias, terminal), f"{bias:+g}, {terminal}", shift, style)


def _name(bias: float, terminal: Terminal) -> str:
    return f"{bias:+g}-{terminal}"


def run_tables(figure: Figure, unit: Unit, _: Path) -> list[Curve]:
    """One task, with every method and seed; the methods of a treatment are one compiled program."""
    (task,) = unit.tasks
    methods = [method for method in figure.methods if method.name in unit.methods]
    curves = []
    for treatment in LINES:
        rows = [
            (method, seed)
            for method, seed in product(methods, unit.seeds)
            if method.agent.terminal == treatment
        ]
        trained = train_tabular(
            [QLearning(method.agent) for method, _ in rows],
            [figure.tasks[task].task(seed) for _, seed in rows],
            jax.numpy.stack([row_key(task, method.name, seed) for method, seed in rows]),
            unit.budget,
        )
        steps = np.asarray(trained.episode[0]).tolist()
        success = np.asarray(trained.success).tolist()
        curves += [
            Curve(task, method.name, seed, steps, values)
            for (method, seed), values in zip(rows, success, strict=True)
        ]
    return curves


def _claim(task: str, better: str, worse: str, statement: str) -> Claim:
    name = f"{task}-{better}-above-{worse}"
    return Claim(name, task, statement, better, worse, source="ours")


OPTIMIST = _name(-0.01, "goal")
CLAIMS = (
    *(
        _claim(task, OPTIMIST, "none", "Optimism 1 that ends only at goals explores better.")
        for task in TASKS
    ),
    *(
        _claim(
            task,
            OPTIMIST,
            _name(-0.05, "goal"),
            "A table explores better with an optimism of 1 than with 5, the default of auto.",
        )
        for task in TASKS
    ),
    *(
        _claim(
            task,
            _name(-0.01, "zero"),
            _name(-0.01, "absorbing"),
            "In a task that ends only at its goal, the price of time adds to optimism.",
        )
        for task in TASKS
        if task.startswith("maze")
    ),
    *(
        _claim(
            task,
            better,
            _name(-0.01, "zero"),
            f"Where holes end an episode, {what} beats a shift that stops there.",
        )
        for task in ("FrozenLake-4", "FrozenLake-8")
        for better, what in (
            (OPTIMIST, "a shift that ends only at goals"),
            (_name(-0.01, "absorbing"), "a shift that never ends"),
            ("none", "no shift"),
        )
    ),
    *(
        _claim(
            task,
            _name(0.02, "absorbing"),
            _name(0.02, "zero"),
            "Part of the harm of a positive shift is the price of time.",
        )
        for task in ("maze-S10", "FrozenLake-4")
    ),
)

TERMINAL_TREATMENT = Figure(
    name="terminal-treatment",
    title="Where an episode ends: optimism and the price of time",
    scenario="theory",
    tasks=TASKS,
    panels=tuple(
        Panel(task, task, "success rate", task, "success", y_range=(0.0, 1.0)) for task in TASKS
    ),
    methods=(
        NONE,
        *(_method(-0.01, terminal) for terminal in LINES),
        *(_method(-0.02, terminal) for terminal in LINES),
        _method(-0.05, "goal"),
        *(_method(0.02, terminal) for terminal in ("zero", "absorbing")),
    ),
    claims=CLAIMS,
    presets={
        "smoke": Preset(
            seeds=2,
            budget=TabularBudget(episodes=20, evaluate_every=10),
            seconds=60,
            note="20 of 1,000 episodes: shows that it runs, nothing else",
            decides=False,
        ),
        "quick": Preset(seeds=10, budget=BUDGET, seconds=95),
        "paper": Preset(seeds=20, budget=BUDGET, seconds=190),
    },
    takes_terminal=False,
    x_label="training episodes",
    run=run_tables,
    unit_spans=("method",),
    seeds_per_unit=10,
)
