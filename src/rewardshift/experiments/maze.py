"""Figure 1 and the appendix's maze sizes: tabular Q-learning that explores, or does not."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from zlib import crc32

import jax
import numpy as np

from rewardshift.agents.tabular import QLearning
from rewardshift.envs.maze import Maze
from rewardshift.experiments.figure import Claim, Curve, Figure, Method, Panel, Preset, Unit
from rewardshift.shift import Shift, Terminal
from rewardshift.training.tabular import TabularBudget, train_tabular

GAMMA = 0.99

EPSILON_GREEDY = Method("epsilon-greedy", "epsilon-greedy", QLearning(Shift(0.0, gamma=GAMMA)))
COUNT = Method("count", "count bonus", QLearning(Shift(0.0, gamma=GAMMA), bonus=0.1))
SHIFT = Method("shift", "shift -0.02", QLearning(Shift(-0.02, gamma=GAMMA)))
COUNT_SHIFT = Method(
    "count+shift", "count bonus and shift", QLearning(Shift(-0.02, gamma=GAMMA), bonus=0.1)
)

SIZES = (2, 5, 10, 15, 20)

# Two success rates whose means differ by less than this are called alike.
ALIKE = 0.05


def run_maze(figure: Figure, unit: Unit, _: Path) -> list[Curve]:
    """Every task, method and seed as one row of one compiled program."""
    methods = [method for method in figure.methods if method.name in unit.methods]
    rows = list(product(unit.tasks, methods, unit.seeds))
    curves = train_tabular(
        [_with_terminal(method.agent, unit.terminal) for _, method, _ in rows],
        [figure.tasks[task] for task, _, _ in rows],
        jax.numpy.stack([_row_key(task, method.name, seed) for task, method, seed in rows]),
        unit.budget,
    )
    steps = np.asarray(curves.episode[0]).tolist()
    return [
        Curve(
            panel.name,
            method.name,
            seed,
            steps,
            np.asarray(getattr(curves, panel.measure)[row]).tolist(),
        )
        for panel in figure.panels
        for row, (task, method, seed) in enumerate(rows)
        if task == panel.task
    ]


def _with_terminal(agent: QLearning, terminal: Terminal) -> QLearning:
    return replace(agent, shift=replace(agent.shift, terminal=terminal))


def _row_key(task: str, method: str, seed: int) -> jax.Array:
    """A key that depends on the row alone, not on what runs beside it."""
    return jax.random.fold_in(jax.random.key(seed), crc32(f"{task}/{method}".encode()))


def _success_panel(name: str, task: str) -> Panel:
    return Panel(
        name, f"Maze {task}", "success rate", task=task, measure="success", y_range=(0.0, 1.0)
    )


def _claims(panel: str, prefix: str) -> tuple[Claim, ...]:
    """The paper's order in a maze that needs deep exploration."""
    return (
        Claim(
            f"{prefix}shift-above-count",
            panel,
            "A negative shift explores better than the count bonus.",
            better="shift",
            worse="count",
        ),
        Claim(
            f"{prefix}count-above-epsilon-greedy",
            panel,
            "The count bonus explores better than epsilon-greedy.",
            better="count",
            worse="epsilon-greedy",
        ),
    )


def _alike(panel: str, method: str) -> Claim:
    return Claim(
        f"{panel}-{method}-alike-epsilon-greedy",
        panel,
        f"In an easy maze, {method} performs like epsilon-greedy.",
        better=method,
        worse="epsilon-greedy",
        margin=ALIKE,
    )


FIGURE1 = Figure(
    name="figure1",
    title="Figure 1: exploration in the maze",
    tasks={"S20": Maze.of_size(20)},
    panels=(
        _success_panel("success", "S20"),
        Panel(
            "q-gap",
            "Learned Q against the optimal Q",
            "distance, of the initial one",
            task="S20",
            measure="q_gap",
            lower_is_better=True,
        ),
    ),
    methods=(EPSILON_GREEDY, COUNT, SHIFT, COUNT_SHIFT),
    claims=(
        *_claims("success", ""),
        Claim(
            "count+shift-above-count",
            "success",
            "The shift is orthogonal to the count bonus: added to it, it helps.",
            better="count+shift",
            worse="count",
        ),
        Claim(
            "shift-nearer-to-optimal-q",
            "q-gap",
            "With a shift, Q-learning comes nearer to the optimal Q of its task than without.",
            better="shift",
            worse="epsilon-greedy",
            metric="final",
        ),
    ),
    presets={
        "smoke": Preset(
            seeds=2,
            budget=TabularBudget(episodes=20),
            seconds=10,
            note="20 of 1,000 episodes: shows that it runs, nothing else",
            decides=False,
        ),
        "quick": Preset(seeds=5, budget=TabularBudget(), seconds=12),
        "paper": Preset(seeds=10, budget=TabularBudget(), seconds=15),
    },
    x_label="training episodes",
    run=run_maze,
    unit_spans=("task", "method"),
    seeds_per_unit=2,
    revision=2,
)

MAZE_SIZES = replace(
    FIGURE1,
    presets={
        "smoke": replace(FIGURE1.presets["smoke"], seconds=12),
        "quick": replace(FIGURE1.presets["quick"], seconds=15),
        "paper": replace(FIGURE1.presets["paper"], seconds=25),
    },
    name="maze-sizes",
    title="Maze sizes: where exploration matters, and where it does no harm",
    tasks={f"S{size}": Maze.of_size(size) for size in SIZES},
    panels=tuple(_success_panel(f"S{size}", f"S{size}") for size in SIZES),
    methods=(EPSILON_GREEDY, COUNT, SHIFT),
    claims=(
        *(_alike(panel, method) for panel in ("S2", "S5", "S10") for method in ("shift", "count")),
        *_claims("S15", "S15-"),
        *_claims("S20", "S20-"),
    ),
)
