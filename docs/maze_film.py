"""The animated picture of the README: where Q-learning goes in the maze, without and with a shift.

`python docs/maze_film.py` trains one seed of two methods of Figure 1 and writes `docs/maze.gif`. It
shows what a shift does; the figure, with ten seeds, says how often.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.colors import LogNorm

from rewardshift import Shift
from rewardshift.agents.tabular import QLearning, TabularState, Transition
from rewardshift.envs.tabular import SIDE, Maze

EPISODES, EVERY, SEED = 1000, 20, 0
METHODS = {"no shift": 0.0, "shift of -0.02": -0.02}
GROUND = "#1e2327"  # neither a light nor a dark page makes it glare
OUT = Path(__file__).parent / "maze.gif"


def looks(bias: float) -> Iterator[tuple[np.ndarray, int]]:
    """The visits to each cell and the number of successes, after every few episodes."""
    agent, task = QLearning(Shift(bias, gamma=0.99)), Maze.of_size(SIDE)
    state, key, successes = agent.init(jax.random.key(0), task.spec), jax.random.key(SEED), 0

    @jax.jit
    def episodes(state: TabularState, first: Any) -> tuple[TabularState, jax.Array]:
        return jax.lax.scan(partial(episode, agent, task, key), state, first + jnp.arange(EVERY))

    for first in range(0, EPISODES, EVERY):
        state, won = episodes(state, first)
        successes += int(won.sum())
        visits = np.array(state.visits).reshape(SIDE, SIDE)
        visits[-1, -1] = successes  # nothing is done at the goal, but it is reached
        yield visits, successes


def episode(
    agent: QLearning, task: Maze, key: jax.Array, state: TabularState, number: jax.Array
) -> tuple[TabularState, jax.Array]:
    """One episode of Figure 1, whose epsilon falls from 1 to 0 over all of them."""

    def step(carry: tuple[TabularState, Any, Any], key: jax.Array) -> tuple[Any, None]:
        state, place, alive = carry
        action = agent.act(state, place, key, 1 - number / EPISODES)
        following, reward, ended = task.step(place, action)
        transition = Transition(place, action, reward, following, ended, alive)
        state, _ = agent.update(state, transition, key)
        return (state, following, alive & ~ended), None

    keys = jax.random.split(jax.random.fold_in(key, number), task.horizon)
    (state, _, alive), _ = jax.lax.scan(step, (state, task.start, jnp.asarray(True)), keys)
    return state, ~alive


def main() -> None:
    """Trains both methods and writes the film."""
    films = {name: list(looks(bias)) for name, bias in METHODS.items()}
    plt.style.use("dark_background")
    plt.rcParams |= {"font.size": 15, "axes.titlesize": 15, "figure.titlesize": 15}
    figure, axes = plt.subplots(1, 2, figsize=(6.4, 4.0), layout="constrained", facecolor=GROUND)
    colours = LogNorm(1, max(film[-1][0].max() for film in films.values()))
    pictures = []
    for axis, name in zip(axes, films, strict=True):
        pictures.append(axis.imshow(np.ones((SIDE, SIDE)), cmap="viridis", norm=colours))
        axis.set_title(name)
        axis.set_xticks([])
        axis.set_yticks([])
        axis.text(0, 0, "S", ha="center", va="center", fontsize=12)
        axis.text(SIDE - 1, SIDE - 1, "G", ha="center", va="center", fontsize=12)
    figure.colorbar(pictures[0], ax=axes, label="visits", shrink=0.8)
    heading = figure.suptitle("")
    last = EPISODES // EVERY - 1

    def draw(number: int) -> None:
        heading.set_text(f"{(number + 1) * EVERY} episodes")
        for axis, picture, film in zip(axes, pictures, films.values(), strict=True):
            seen, successes = film[number]
            picture.set_data(np.maximum(seen, 1))
            axis.set_xlabel(f"goal reached\n{successes} times")

    # The last picture stays for a while, and comes first: a still view shows the first.
    film = FuncAnimation(figure, draw, [last, *range(last), *[last] * 12])  # type: ignore[arg-type]
    film.save(OUT, PillowWriter(fps=8), dpi=90)
    print(f"{OUT.name}: {OUT.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
