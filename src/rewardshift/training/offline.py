"""Offline training: the data set on the device, hundreds of updates in one compiled call.

All randomness is a function of (seed, update), so neither the split into calls nor an interruption
changes the results.
"""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rewardshift.agents.base import Batch
from rewardshift.data.dataset import Dataset
from rewardshift.envs.tasks import MakeEnv, TaskSpec
from rewardshift.errors import InputError
from rewardshift.training.budgets import OfflineBudget
from rewardshift.training.config import RunConfig
from rewardshift.training.evaluation import Episodes
from rewardshift.training.metrics import Columns, OfflineEstimates, finite_metrics
from rewardshift.training.trainer import OnProgress, Trainer, checked_update

# The aimed length of a call: short enough to show progress and to react to an interrupt.
CALL_SECONDS = 1.0
LONGEST_CALL = 1024
# The distance outside [-1, 1] at which an action still counts as rounded.
BEYOND = 1e-3


class OfflineTrainer(Trainer):
    """The trainer of a run on fixed data.

    Args:
        config, env, columns: As in `Trainer`; the environment is for evaluations.
        data: The data to learn from; see `as_batch`.
    """

    def __init__(
        self, config: RunConfig, env: str | MakeEnv, columns: Columns, data: Batch
    ) -> None:
        super().__init__(config, env, columns)
        assert isinstance(config.budget, OfflineBudget)
        self.budget, self._data = config.budget, data
        self._call_length = self.agent.period  # in updates; it grows to what takes a second
        estimates = self.agent.defines("policy_value")
        self._estimate = OfflineEstimates(self.agent, data) if estimates else None

    def run_to_checkpoint(self, on_progress: OnProgress | None = None) -> None:
        """Trains to the next checkpoint or the end."""
        every = self.budget.checkpoint_every
        evaluate_every = min(self.budget.evaluate_every, self.budget.updates)
        stop = min(self.budget.updates, (self.step // every + 1) * every)
        longest = LONGEST_CALL // self.agent.period * self.agent.period
        while self.step < stop:
            clock = time.perf_counter()
            evaluation = (self.step // evaluate_every + 1) * evaluate_every
            until = min(stop, evaluation, self.step + self._call_length)
            self.state, metrics = _updates(
                (self.agent, self.columns.metrics),
                self.state,
                self._data,
                self.update_keys,
                (self.step, until),
            )
            jax.block_until_ready(metrics)
            self.step = until
            if time.perf_counter() - clock < CALL_SECONDS / 2:
                self._call_length = max(self.agent.period, min(2 * self._call_length, longest))
            if self.step % evaluate_every == 0:
                self.evaluate(metrics, on_progress)
            if on_progress is not None:
                on_progress(self.step, self.rows)
        finite_metrics(metrics, self.step, self.seeds)

    def measured(self, episodes: Episodes) -> dict[str, Sequence[Any]]:
        """See `OfflineRow`."""
        return {} if self._estimate is None else self._estimate(self.state, episodes)


def as_batch(data: Dataset, env: str | MakeEnv, spec: TaskSpec) -> Batch:
    """The whole data set as a batch, with continuous actions in [-1, 1].

    Args:
        data: The data set; refused if it does not fit the task.
        env: The environment.
        spec: Its task. Its action bounds are those of the data set.
    """
    if data.observation.shape[1] != spec.features:
        raise InputError(
            f"the data set {data.name!r} has observations of {data.observation.shape[1]} numbers,"
            f" {env} of {spec.features}"
        )
    if spec.dtype == "uint8" and data.observation.dtype != np.uint8:
        raise InputError(
            f"the data set {data.name!r} has observations of {data.observation.dtype},"
            f" {env} has bytes"
        )
    count = len(data)
    return Batch(
        observation=jnp.asarray(data.observation, spec.dtype),
        action=jnp.asarray(_fitting_actions(data, env, spec)),
        reward=jnp.asarray(data.reward, jnp.float32),
        next_observation=jnp.asarray(data.next_observation, spec.dtype),
        terminated=jnp.asarray(data.terminated),
        steps=jnp.ones(count, jnp.int32),
        intrinsic=jnp.zeros(count),
    )


def _fitting_actions(data: Dataset, env: str | MakeEnv, spec: TaskSpec) -> np.ndarray:
    """The actions of a data set, continuous ones in [-1, 1]; refused if the task has others."""
    if not spec.action_size:
        if data.action.ndim != 1 or data.action.min() < 0 or data.action.max() >= spec.num_actions:
            raise InputError(
                f"the data set {data.name!r} has actions beyond those of {env}, 0 to"
                f" {spec.num_actions - 1}"
            )
        return data.action
    if data.action.shape[1:] != (spec.action_size,):
        raise InputError(
            f"the data set {data.name!r} has actions of shape {data.action.shape[1:]},"
            f" {env} of {spec.action_size} numbers"
        )
    action = spec.unit_scale(data.action.astype(np.float32))
    beyond = np.flatnonzero((np.abs(action) > 1 + BEYOND).any(axis=1))
    if beyond.size:
        raise InputError(
            f"the data set {data.name!r} has an action out of the bounds of {env} in row"
            f" {beyond[0]}: {data.action[beyond[0]]}"
        )
    return np.clip(action, -1, 1)


# A function, not a method: JAX caches static arguments, and a cached trainer would keep its data.
@partial(jax.jit, static_argnums=0, donate_argnums=1)
def _updates(
    static: tuple[Any, tuple[str, ...]], state: Any, data: Batch, keys: Any, span: Any
) -> Any:
    """The state after the updates of a span, and the last value of each metric, by row."""
    (agent, names), (start, stop) = static, span

    def row(state: Any, key: Any) -> Any:
        def period(number: Any, carry: Any) -> Any:
            state, latest = carry
            for turn in range(agent.period):
                sampling, updating = jax.random.split(
                    jax.random.fold_in(key, number * agent.period + turn)
                )
                index = jax.random.randint(sampling, (agent.batch_size,), 0, len(data.reward))
                batch = Batch(*(field[index] for field in data))
                state, metrics = checked_update(agent, state, batch, updating, turn)
                latest = {**latest, **metrics}
            return state, latest

        nothing = {name: jnp.zeros(()) for name in names}
        periods = (start // agent.period, stop // agent.period)
        return jax.lax.fori_loop(*periods, period, (state, nothing))

    return jax.vmap(row)(state, keys)
