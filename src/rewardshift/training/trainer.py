"""What the two training loops share: their base class, the calls of an agent, random numbers.

The loops know no metric by name: `validate.py` finds the names by tracing the agent's updates. They
refuse what breaks an agent's contract where they trace its functions. All randomness is a function
of (seed, step), so an interruption changes no result.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rewardshift.agents.base import Agent, Batch
from rewardshift.envs.tasks import MakeEnv, TaskSpec
from rewardshift.errors import InputError, one_line, shown
from rewardshift.training.checkpoint import Snapshot
from rewardshift.training.config import RunConfig
from rewardshift.training.evaluation import Episodes, Evaluator
from rewardshift.training.metrics import Columns, finite_metrics
from rewardshift.training.replay import Replay

# The number of steps whose random numbers are drawn at once.
BLOCK = 1000
# Called with the step and the rows of `metrics.csv` so far, also at every step of an evaluation.
# Raising an exception in it stops the training.
OnProgress = Callable[[int, Sequence[Any]], None]


class Trainer(ABC):
    """A training that runs from checkpoint to checkpoint.

    A new trainer with the same settings that restores a checkpoint continues exactly as the old
    trainer would, bit for bit.

    Args:
        config: The configuration of the run.
        env: The environment: a registered name, or a function that makes it.
        columns: The columns of `metrics.csv`.
    """

    replay: Replay | None = None  # the collected transitions, if the training collects any

    def __init__(self, config: RunConfig, env: str | MakeEnv, columns: Columns) -> None:
        make_room_for_programs()
        agent, spec, episodes = config.agent, config.spec, config.budget.evaluation_episodes
        seeds = config.row_seeds
        self.agent, self.spec, self.seeds, self.columns = agent, spec, seeds, columns
        self.evaluator = Evaluator(agent, env, seeds, episodes, spec)
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
    def measured(self, episodes: Episodes) -> dict[str, Sequence[Any]]:
        """The columns of an evaluation beside its return, each with a value for every seed."""

    def evaluate(self, metrics: Mapping[str, Any], on_progress: OnProgress | None) -> None:
        """Adds a row for every seed, with the metrics of the last updates."""
        latest = finite_metrics(metrics, self.step, self.seeds)
        on_step = None if on_progress is None else partial(on_progress, self.step, self.rows)
        episodes = self.evaluator(self.state, self.step, on_step)
        columns = {
            "seed": self.seeds,
            "evaluation_return": episodes.outcomes.returns.mean(axis=1).tolist(),
            "metrics": latest,
            **self.measured(episodes),
        }
        for values in zip(*columns.values(), strict=True):
            named = dict(zip(columns, values, strict=True))
            self.rows.append(self.columns.kind(step=self.step, **named))

    def snapshot(self, since: int = 0) -> Snapshot:
        """The snapshot at this step, with the transitions that were collected since another."""
        notes = self.columns.to_json(self.rows)
        records = self.replay.newest(self.step - since) if self.replay else None
        return Snapshot(self.step, {"agent": self.state}, notes, records)

    def restore(self, snapshot: Snapshot) -> None:
        """Restores a snapshot with all transitions of the replay."""
        self.step, self.state = snapshot.step, snapshot.arrays["agent"]
        self.rows = self.columns.from_json(snapshot.notes)
        if self.replay:
            assert snapshot.records is not None
            self.replay.restore(snapshot.records, snapshot.step)

    def close(self) -> None:
        """Closes the environments."""
        self.evaluator.close()


def checked_update(
    agent: Agent, state: Any, batch: Batch, key: Any, turn: int
) -> tuple[Any, dict[str, Float[Array, ""]]]:
    """An agent's update: the new state, and the metrics as floats; refused if it returns others."""
    what = f"{type(agent).__name__}.update"
    returned = agent.update(state, batch, key, turn)
    pair = isinstance(returned, tuple) and len(returned) == 2
    if not (pair and isinstance(returned[1], Mapping)):
        raise InputError(
            f"{what} must return the new state and a dict of metrics, got {shown(returned)}"
        )
    try:
        metrics = {name: jnp.asarray(value, float) for name, value in returned[1].items()}
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the metrics of {what} must be real numbers: {one_line(error)}"
        ) from error
    for name, value in metrics.items():
        if value.shape:
            raise InputError(f"the metric {name!r} must be one number, got the shape {value.shape}")
    return checked_state(what, state, returned[0]), metrics


def checked_state(what: str, before: Any, after: Any) -> Any:
    """The state that a function returns; refused if its arrays are not like those it was given."""
    now: Any = jax.eval_shape(lambda: after)
    was_tree, is_tree = (cast("Any", jax.tree.structure(state)) for state in (before, now))
    if was_tree != is_tree:
        raise InputError(
            f"{what} must return a state of the same structure as the one it is given, got"
            f" {shown(after)}"
        )
    pairs = zip(jax.tree_util.tree_leaves_with_path(before), jax.tree.leaves(now), strict=True)
    for (path, was), one in pairs:
        if (was.shape, was.dtype) != (one.shape, one.dtype):
            raise InputError(
                f"{what} must keep the shapes and types of the state's arrays:"
                f" {jax.tree_util.keystr(path)} was {was.dtype}{was.shape}, is"
                f" {one.dtype}{one.shape}"
            )
    return after


def checked_action(what: str, action: Any, spec: TaskSpec) -> Any:
    """An action; refused if it is not a whole number, or the numbers of a continuous one."""
    shape = (spec.action_size,) if spec.action_size else ()
    kind = jnp.floating if spec.action_size else jnp.integer
    found = jax.eval_shape(lambda: action)
    if getattr(found, "shape", None) != shape or not jnp.issubdtype(found.dtype, kind):
        wanted = (
            f"{spec.action_size} floating-point numbers" if spec.action_size else "a whole number"
        )
        got = f"{found.dtype}{found.shape}" if hasattr(found, "dtype") else shown(found)
        raise InputError(f"{what} must return {wanted}, got {got}")
    return action


class RandomNumbers(NamedTuple):
    """The randomness of one step of every seed, drawn ahead.

    It holds numbers in [0, 1) rather than keys wherever few are needed: splitting keys within
    the compiled step costs a small agent much of its time. `sampling` is for the batch,
    `acting` for the leader and the action, and `key` for the update.
    """

    key: np.ndarray
    sampling: np.ndarray
    acting: np.ndarray


def random_numbers(
    step: int, seeds: tuple[int, ...], update_keys: Any, sizes: tuple[int, int]
) -> Iterator[RandomNumbers]:
    """The randomness of every step from a given one on.

    Args:
        step: The first step.
        seeds: The seeds, one row each.
        update_keys: The key of each seed's updates.
        sizes: The count of random numbers per seed for acting, and for sampling.
    """
    acting, sampling = sizes
    size = (BLOCK, acting + sampling)
    while True:
        block, offset = divmod(step, BLOCK)
        keys = np.asarray(_block_keys(update_keys, block))
        streams = [np.random.default_rng([seed, 2, block]) for seed in seeds]
        uniforms = np.stack([stream.random(size, np.float32) for stream in streams], axis=1)
        for i in range(offset, BLOCK):
            numbers = uniforms[i]
            yield RandomNumbers(keys[i], numbers[:, acting:], numbers[:, :acting])
        step = (block + 1) * BLOCK


@jax.jit
def _block_keys(keys: Any, block: Any) -> Any:
    """The raw keys of a block of steps, `[step, seed, 2]`."""
    steps = block * BLOCK + jnp.arange(BLOCK)
    of_seeds = jax.vmap(jax.random.fold_in, in_axes=(0, None))
    return jax.random.key_data(jax.vmap(of_seeds, in_axes=(None, 0))(keys, steps))


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
