"""The base class of the two training loops, `online.py` and `offline.py`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rewardshift.agents.base import Agent
from rewardshift.envs.tasks import MakeEnv, TaskSpec
from rewardshift.training.evaluation import Evaluator
from rewardshift.training.metrics import Columns
from rewardshift.training.replay import Replay

# Called with the step and the rows of `metrics.csv` so far, also at every step of an evaluation.
# Raising an exception in it stops the training.
OnProgress = Callable[[int, Sequence[Any]], None]


class Snapshot(NamedTuple):
    """Everything that a trainer needs to continue from a checkpoint, except its replay.

    `arrays` is a tree of arrays, with the same paths, shapes and dtypes at every checkpoint.
    `notes` can be stored as JSON. The arrays belong to the trainer and are valid until it trains
    again.
    """

    step: int
    arrays: Any
    notes: dict[str, Any]


class Transitions(NamedTuple):
    """The transitions that a seed has collected so far, or its data, with primal rewards."""

    observation: Any
    reward: Any
    terminated: Any


class Trainer(ABC):
    """A training that runs from checkpoint to checkpoint.

    A new trainer with the same settings that restores a checkpoint's snapshot, and the records of
    the replay if there is one, continues exactly as the old trainer would, bit for bit.

    Args:
        agent: The agent's configuration.
        env: A registered name, or a function that makes the environment.
        spec: The environment's task.
        seeds: The seeds, one row each.
        columns: The columns of `metrics.csv`.
        evaluation_episodes: The number of greedy episodes in an evaluation.
    """

    replay: Replay | None = None  # the collected transitions, if the training collects any

    def __init__(
        self,
        agent: Agent,
        env: str | MakeEnv,
        spec: TaskSpec,
        seeds: tuple[int, ...],
        columns: Columns,
        evaluation_episodes: int,
    ) -> None:
        make_room_for_programs()
        self.agent, self.seeds, self.columns = agent, seeds, columns
        self.evaluator = Evaluator(agent, env, seeds, evaluation_episodes, spec)
        keys = jax.vmap(lambda seed: jax.random.split(jax.random.key(seed)))(jnp.asarray(seeds))
        self.update_keys = keys[:, 1]
        # The agent's state, with a leading axis over the seeds.
        self.state: Any = jax.jit(jax.vmap(lambda key: agent.init(key, spec)))(keys[:, 0])
        self.step = 0
        self.rows: list[Any] = []

    @abstractmethod
    def run_to_checkpoint(self, on_progress: OnProgress | None = None) -> None:
        """Trains to the next checkpoint or the end."""

    @abstractmethod
    def transitions(self, row: int) -> Transitions:
        """The transitions of a seed so far, or the data that it learns from."""

    def snapshot(self) -> Snapshot:
        """The snapshot at this step."""
        return Snapshot(self.step, {"agent": self.state}, self.columns.to_json(self.rows))

    def restore(self, snapshot: Snapshot) -> None:
        """Restores a snapshot. The caller restores the records of the replay."""
        self.step, self.state = snapshot.step, snapshot.arrays["agent"]
        self.rows = self.columns.from_json(snapshot.notes)

    def close(self) -> None:
        """Closes the environments."""
        self.evaluator.close()


def make_room_for_programs(share: float = 0.5) -> None:
    """Drops JAX's compiled programs if the process is near its limit of memory mappings.

    A compiled program holds about a hundred mappings for as long as JAX remembers it, and XLA
    crashes when Linux refuses it another. A script that trains a few hundred different agents would
    get there.

    Args:
        share: The share of the limit from which on programs are dropped.
    """
    try:
        limit = int(Path("/proc/sys/vm/max_map_count").read_text())
        held = Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:  # not Linux
        return
    if held > share * limit:
        jax.clear_caches()
