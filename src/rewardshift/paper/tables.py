"""Tabular Q-learning in small worlds: what the figures of the maze and of terminal states share."""

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Literal
from zlib import crc32

import jax
import numpy as np

from rewardshift.agents.tabular import QLearning
from rewardshift.envs.tabular import FiniteTask, Maze, deep_sea_table, toy_text_table
from rewardshift.lab import Budget, Curve, Figure, Method, Unit
from rewardshift.shift import Shift
from rewardshift.training.tabular import TabularBudget, train_tabular

GAMMA = 0.99


@dataclass(frozen=True)
class World:
    """A task with finitely many states.

    Args:
        kind: The paper's maze; Gymnasium's FrozenLake without slipping, where holes end an episode
            and pay nothing; or DeepSea, whose actions differ from seed to seed.
        size: Its size.
    """

    kind: Literal["maze", "lake", "sea"]
    size: int

    def task(self, seed: int) -> FiniteTask:
        """The task of a seed."""
        if self.kind == "maze":
            return Maze.of_size(self.size)
        if self.kind == "sea":
            return deep_sea_table(self.size, seed)
        settings = {"map_name": f"{self.size}x{self.size}", "is_slippery": False}
        return toy_text_table("FrozenLake-v1", 25 * self.size, **settings)


@dataclass(frozen=True)
class Table:
    """A method: an agent, and the order of its evaluations.

    Args:
        agent: The agent.
        evaluate_first: As in `TabularBudget`.
    """

    agent: QLearning
    evaluate_first: bool = False


def run_tables(figure: Figure, unit: Unit, _: Path) -> list[Curve]:
    """Runs every task, method and seed as a row of a compiled program.

    There is one program for each treatment of terminal states and order of evaluations.
    """
    methods = [_treated(figure, unit, m) for m in figure.methods if m.name in unit.methods]
    kinds = dict.fromkeys((m.agent.agent.shift.terminal, m.agent.evaluate_first) for m in methods)
    curves = []
    for kind in kinds:
        alike = [
            m for m in methods if (m.agent.agent.shift.terminal, m.agent.evaluate_first) == kind
        ]
        curves += _run_rows(figure, unit, alike)
    return curves


def _treated(figure: Figure, unit: Unit, method: Method) -> Method:
    """The method with the figure's treatment of terminal states, if it has one."""
    if not figure.takes_terminal:
        return method
    agent = method.agent.agent
    shift = replace(agent.shift, terminal=unit.terminal)
    return replace(method, agent=replace(method.agent, agent=replace(agent, shift=shift)))


def _run_rows(figure: Figure, unit: Unit, methods: list[Method]) -> list[Curve]:
    rows = list(product(unit.tasks, methods, unit.seeds))
    budget: Budget = unit.budget
    trained = train_tabular(
        [method.agent.agent for _, method, _ in rows],
        [figure.tasks[task].task(seed) for task, _, seed in rows],
        jax.numpy.stack([row_key(task, method.name, seed) for task, method, seed in rows]),
        TabularBudget(
            budget.steps,
            budget.evaluate_every,
            budget.evaluation_episodes,
            methods[0].agent.evaluate_first,
        ),
    )
    steps = np.asarray(trained.episode[0]).tolist()
    return [
        Curve(panel.name, method.name, seed, steps, values.tolist())
        for panel in figure.panels
        for (task, method, seed), values in zip(
            rows, np.asarray(getattr(trained, panel.measure)), strict=True
        )
        if task == panel.task
    ]


def row_key(task: str, method: str, seed: int) -> jax.Array:
    """A key that depends on the row alone, not on the other rows."""
    return jax.random.fold_in(jax.random.key(seed), crc32(f"{task}/{method}".encode()))


def q_learning(shift: Shift | float, bonus: float = 0.0, *, evaluate_first: bool = False) -> Table:
    """Q-learning as in the paper."""
    chosen = shift if isinstance(shift, Shift) else Shift(shift, gamma=GAMMA)
    return Table(QLearning(chosen, bonus=bonus), evaluate_first)
