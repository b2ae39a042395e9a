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
from rewardshift.lab import Budget, Curve, Figure, Unit
from rewardshift.shift import Shift, Terminal
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
    tables: dict[str, Table] = {method.name: method.agent for method in figure.methods}
    if figure.takes_terminal:
        for name, table in tables.items():
            shift = replace(table.agent.shift, terminal=unit.terminal)
            tables[name] = replace(table, agent=replace(table.agent, shift=shift))
    programs: dict[tuple[Terminal, bool], list[tuple[str, str, int]]] = {}
    for task, method, seed in product(unit.tasks, unit.methods, unit.seeds):
        table = tables[method]
        kind = (table.agent.shift.terminal, table.evaluate_first)
        programs.setdefault(kind, []).append((task, method, seed))
    budget: Budget = unit.budget
    curves = []
    for (_terminal, evaluate_first), rows in programs.items():
        trained = train_tabular(
            [tables[method].agent for _, method, _ in rows],
            [figure.tasks[task].task(seed) for task, _, seed in rows],
            jax.numpy.stack([row_key(*row) for row in rows]),
            TabularBudget(
                budget.steps, budget.evaluate_every, budget.evaluation_episodes, evaluate_first
            ),
        )
        steps = np.asarray(trained.episode[0]).tolist()
        for panel in figure.panels:
            values = np.asarray(getattr(trained, panel.measure))
            curves += [
                Curve(panel.name, method, seed, steps, own.tolist())
                for (task, method, seed), own in zip(rows, values, strict=True)
                if task == panel.task
            ]
    return curves


def row_key(task: str, method: str, seed: int) -> jax.Array:
    """A key that depends on the row alone, not on the other rows."""
    return jax.random.fold_in(jax.random.key(seed), crc32(f"{task}/{method}".encode()))


def q_learning(shift: Shift | float, bonus: float = 0.0, *, evaluate_first: bool = False) -> Table:
    """Q-learning as in the paper."""
    chosen = shift if isinstance(shift, Shift) else Shift(shift, gamma=GAMMA)
    return Table(QLearning(chosen, bonus=bonus), evaluate_first)
