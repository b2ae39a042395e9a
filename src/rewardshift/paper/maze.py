"""Figure 1 and the appendix's maze sizes: exploration by tabular Q-learning."""

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from zlib import crc32

import jax
import numpy as np

from rewardshift.agents.tabular import QLearning
from rewardshift.envs.tabular import Maze
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
from rewardshift.shift import Shift, Terminal
from rewardshift.training.tabular import TabularBudget, train_tabular

GAMMA = 0.99


@dataclass(frozen=True)
class Trial:
    """A method in the maze.

    Args:
        agent: The agent.
        evaluate_first: As in `TabularBudget`.
    """

    agent: QLearning
    evaluate_first: bool = False


def _trial(bias: float, bonus: float = 0.0, **order: bool) -> Trial:
    return Trial(QLearning(Shift(bias, gamma=GAMMA), bonus=bonus), **order)


EPSILON_GREEDY = Method("epsilon-greedy", "epsilon-greedy", _trial(0.0), Style("#7f7f7f", "--"))
COUNT = Method("count", "count bonus", _trial(0.0, bonus=0.1), Style("#e69f00", "-."))
COUNT_FIRST = Method(
    "count-evaluated-first",
    "count bonus, evaluated before training",
    _trial(0.0, bonus=0.1, evaluate_first=True),
    Style("#8c6d31", ":"),
)
SHIFT = Method("shift", "shift -0.02", _trial(-0.02), Style("#08306b", "-"))
COUNT_SHIFT = Method(
    "count+shift", "count bonus and shift", _trial(-0.02, bonus=0.1), Style("#cc5f9e", ":")
)

SIZES = (2, 5, 10, 15, 20)

# The share of their range below which a difference of mean success rates counts as alike.
ALIKE = 0.05
# The paper names no number for "near optimal": a tenth of the distance before training is ours.
NEAR_OPTIMAL = 0.1


def run_maze(figure: Figure, unit: Unit, _: Path) -> list[Curve]:
    """Runs every task, method and seed as a row of one compiled program per evaluation order."""
    return [
        curve
        for first in (False, True)
        for curve in _run_rows(figure, unit, replace(unit.budget, evaluate_first=first))
    ]


def _run_rows(figure: Figure, unit: Unit, budget: TabularBudget) -> list[Curve]:
    """The curves of the unit's methods with the budget's `evaluate_first`."""
    methods = [
        method
        for method in figure.methods
        if method.name in unit.methods and method.agent.evaluate_first == budget.evaluate_first
    ]
    if not methods:
        return []
    rows = list(product(unit.tasks, methods, unit.seeds))
    curves = train_tabular(
        [_with_terminal(method.agent.agent, unit.terminal) for _, method, _ in rows],
        [figure.tasks[task] for task, _, _ in rows],
        jax.numpy.stack([row_key(task, method.name, seed) for task, method, seed in rows]),
        budget,
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


def row_key(task: str, method: str, seed: int) -> jax.Array:
    """A key that depends on the row alone, not on the other rows."""
    return jax.random.fold_in(jax.random.key(seed), crc32(f"{task}/{method}".encode()))


def _success_panel(name: str, task: str) -> Panel:
    return Panel(
        name, f"Maze {task}", "success rate", task=task, measure="success", y_range=(0.0, 1.0)
    )


COUNT_EXPLORES = Claim(
    "count-above-epsilon-greedy",
    "success",
    "The count bonus explores better than epsilon-greedy.",
    better="count",
    worse="epsilon-greedy",
)
SHIFT_EXPLORES = Claim(
    "shift-above-epsilon-greedy",
    "success",
    "A negative shift explores better than epsilon-greedy.",
    better="shift",
    worse="epsilon-greedy",
)
SHIFT_ABOVE_COUNT = Claim(
    "shift-above-count",
    "success",
    "A negative shift explores better than the count bonus.",
    better="shift",
    worse="count",
)


def _deep(panel: str) -> tuple[Claim, ...]:
    """The appendix's claims for a maze that needs deep exploration, and that of Figure 1."""
    claims = (COUNT_EXPLORES, SHIFT_EXPLORES, replace(SHIFT_ABOVE_COUNT, source="ours"))
    return tuple(replace(claim, id=f"{panel}-{claim.id}", panel=panel) for claim in claims)


def _alike(panel: str, method: Method) -> Claim:
    return Claim(
        f"{panel}-{method.name}-alike-epsilon-greedy",
        panel,
        f"In an easy maze, {method.label} performs like epsilon-greedy.",
        better=method.name,
        worse="epsilon-greedy",
        source="ours" if method == COUNT_FIRST else "paper",
        alike=ALIKE,
    )


def _order(panel: str) -> Claim:
    """Our claim that the order of evaluation and training matters to the count bonus."""
    return Claim(
        f"{panel}-count-evaluated-first-above-count",
        panel,
        "The count bonus explores better if its evaluations count before training.",
        better="count-evaluated-first",
        worse="count",
        source="ours",
    )


FIGURE1 = Figure(
    name="figure1",
    title="Figure 1: exploration in the maze",
    scenario="maze",
    wording=(
        "reward shifting benefits exploration in a maze game and outperforms count-based and"
        " epsilon-greedy exploration and learns near optimal value function"
    ),
    tasks={"S20": Maze.of_size(20)},
    panels=(
        _success_panel("success", "S20"),
        Panel(
            "q-gap",
            "Learned Q against the optimal Q",
            "distance to it (start: 1)",
            task="S20",
            measure="q_gap",
            lower_is_better=True,
        ),
    ),
    methods=(EPSILON_GREEDY, COUNT, SHIFT, COUNT_SHIFT),
    claims=(
        SHIFT_ABOVE_COUNT,
        COUNT_EXPLORES,
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
        Claim(
            "shift-near-optimal-q",
            "q-gap",
            "With a shift, Q-learning learns a near-optimal Q: at most a tenth of the distance from"
            " it is left.",
            better="shift",
            worse=None,
            metric="final",
            bound=NEAR_OPTIMAL,
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
        "quick": Preset(seeds=8, budget=TabularBudget(), seconds=13),
        "paper": Preset(seeds=10, budget=TabularBudget(), seconds=15),
    },
    x_label="training episodes",
    run=run_maze,
    unit_spans=("task", "method"),
    seeds_per_unit=2,
    revision=3,
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
    wording=(
        "in easy tasks (S2, S5, S10), both count-based exploration and reward shifting perform"
        " similarly to the epsilon-greedy exploration, while on challenging tasks (S15, S20),"
        " more explorative behavior encouraged by reward shifting and count-based exploration"
        " are important for efficient learning"
    ),
    tasks={f"S{size}": Maze.of_size(size) for size in SIZES},
    panels=tuple(_success_panel(f"S{size}", f"S{size}") for size in SIZES),
    methods=(EPSILON_GREEDY, COUNT, COUNT_FIRST, SHIFT),
    claims=(
        *(
            _alike(panel, method)
            for panel in ("S2", "S5", "S10")
            for method in (SHIFT, COUNT, COUNT_FIRST)
        ),
        *(claim for panel in ("S15", "S20") for claim in (*_deep(panel), _order(panel))),
    ),
)
