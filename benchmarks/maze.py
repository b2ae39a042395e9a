"""The maze's compiled loop beside the same Q-learning in plain Python on NumPy tables.

Prints environment steps per second, training and evaluation together, and their ratio. A
compiled row goes on stepping, to no effect, after its episode has ended; such steps do not
count. Compilation is measured apart.
"""

import time
from collections.abc import Sequence

import jax
import numpy as np

from rewardshift.agents.tabular import QLearning
from rewardshift.envs.tabular import HORIZON, NUM_ACTIONS, NUM_STATES, Maze
from rewardshift.paper.maze import COUNT, EPSILON_GREEDY, SHIFT, SIZES
from rewardshift.training.tabular import TabularBudget, train_tabular

BUDGET = TabularBudget()
AGENTS = [method.agent.agent for method in (EPSILON_GREEDY, COUNT, SHIFT)]
SEEDS = 10


class PlainRun:
    """One run, as one would write it first."""

    def __init__(self, agent: QLearning, maze: Maze, seed: int) -> None:
        self.agent, self.rng, self.steps = agent, np.random.default_rng(seed), 0
        self.next_state, self.reward, self.ends = (
            np.asarray(column).tolist() for column in maze.table()
        )
        self.q = np.zeros((NUM_STATES, NUM_ACTIONS))
        self.visits = np.zeros(NUM_STATES, int)

    def episode(self, epsilon: float, *, learn: bool) -> None:
        """One episode, of training or of an evaluation."""
        state = 0
        for _ in range(HORIZON):
            explores = self.rng.random() < epsilon
            action = int(self.rng.integers(NUM_ACTIONS) if explores else self.q[state].argmax())
            self.visits[state] += 1
            self.steps += 1
            following, ended = self.next_state[state][action], self.ends[state][action]
            if learn:
                bonus = self.agent.bonus / (self.visits[state] + 1)
                reward = self.agent.shift.reward(self.reward[state][action] + bonus, ended)
                bootstrap = 0.0 if ended else self.q[following].max()
                self.q[state, action] = reward + self.agent.shift.gamma * bootstrap
            state = following
            if ended:
                return

    def train(self) -> int:
        """Trains in full; how many steps that took."""
        for number in range(BUDGET.episodes):
            self.episode(1 - number / BUDGET.episodes, learn=True)
            trained = number + 1
            if trained % BUDGET.evaluate_every == 0:
                for _ in range(BUDGET.evaluation_episodes):
                    self.episode(1 - trained / BUDGET.episodes, learn=False)
        return self.steps


def compiled(rows: Sequence[tuple[QLearning, Maze]]) -> float:
    """Seconds for all rows at once."""
    agents, mazes = zip(*rows, strict=True)
    started = time.perf_counter()
    curves = train_tabular(agents, mazes, jax.random.split(jax.random.key(0), len(rows)), BUDGET)
    curves.success.block_until_ready()
    return time.perf_counter() - started


if __name__ == "__main__":
    rows = [(agent, Maze.of_size(size)) for size in SIZES for agent in AGENTS]
    started = time.perf_counter()
    steps = sum(PlainRun(agent, maze, seed=0).train() for agent, maze in rows)
    plain = steps / (time.perf_counter() - started)
    print(f"{'plain NumPy, one run at a time':32} {plain:12,.0f} steps/s")
    cold = compiled(rows * SEEDS)
    warm = compiled(rows * SEEDS)
    rate = steps * SEEDS / warm
    name = f"compiled, {len(rows) * SEEDS} runs at once"
    print(f"{name:32} {rate:12,.0f} steps/s  x{rate / plain:.0f}")
    print(f"compilation {cold - warm:.1f} s")
