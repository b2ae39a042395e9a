"""Offline training: the data set on the device, hundreds of updates in one compiled call.

All randomness is a function of (seed, update), so neither the cut into calls nor an interruption
changes anything.
"""

import time
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rewardshift.data.dataset import Dataset
from rewardshift.envs.engines import EngineName
from rewardshift.envs.tasks import MakeEnv, TaskSpec, probe_spec, to_unit_box
from rewardshift.errors import InputError
from rewardshift.replay import Batch
from rewardshift.shift import Shift
from rewardshift.training.common import OnProgress, check_budget, finite_metrics
from rewardshift.training.evaluation import Episodes, Evaluator

# A call of about this many seconds lets the progress be seen and an interrupt be heard.
CALL_SECONDS = 1.0
LONGEST_CALL = 1024
# Of so many transitions, spread over the data set, the actions are compared with unseen ones.
PROBED = 512
# How far an action may be out of its bounds, in units of [-1, 1], and pass for rounding.
BEYOND = 1e-3


@dataclass(frozen=True)
class OfflineBudget:
    """How long and how to train on fixed data; the same for every agent.

    Args:
        updates: Gradient updates of each seed.
        evaluate_every: Updates between two evaluations.
        evaluation_episodes: Greedy episodes of one evaluation.
        checkpoint_every: Updates between two checkpoints.
    """

    updates: int = 500_000
    evaluate_every: int = 5_000
    evaluation_episodes: int = 10
    checkpoint_every: int = 10_000

    def __post_init__(self) -> None:
        check_budget(self)

    @property
    def steps(self) -> int:
        """How long, by the name that all budgets have for it."""
        return self.updates


class OfflineRow(NamedTuple):
    """One line of `metrics.csv`: one seed at one evaluation.

    `evaluation_return` is the mean primal return of the greedy episodes; `loss` and `q` are of
    the last batch. `estimate` is what the agent thought that its policy was worth where these
    episodes began, `shifted_return` the discounted and shifted return that followed, beyond a time
    limit what it thought there; both are on the scale that is trained on. `q_seen` is what the
    critics think of the actions in the data, `q_unseen` of random actions in the same states.
    `overestimation` and `unseen_advantage` are the differences of the two pairs (above 0, the
    agent is wrong, or tempted) in units of the primal reward: divided by the shift's scale. With
    CQL's `entropy_backup` what the agent thinks counts its entropy, and what follows does not.
    These six are of BCQ and CQL alone.
    """

    seed: int
    step: int
    evaluation_return: float
    loss: float | None
    q: float | None
    estimate: float | None = None
    shifted_return: float | None = None
    overestimation: float | None = None
    q_seen: float | None = None
    q_unseen: float | None = None
    unseen_advantage: float | None = None


@runtime_checkable
class Estimating(Protocol):
    """An agent with continuous actions that can say what it thinks of its policy and of actions."""

    @property
    def value_shift(self) -> Shift:
        """The scale of its values."""
        ...

    def value(self, state: Any, observation: Any) -> Any:
        """What its policy is worth in a state, on that scale."""
        ...

    def action_value(self, state: Any, observation: Any, action: Any) -> Any:
        """What actions are worth, on that scale."""
        ...


class OfflineTrainer:
    """One run on fixed data, between its checkpoints.

    Args:
        agent: The agent's configuration.
        data: What to learn from, as `as_batch` gives it.
        env: Where to evaluate: a registered name, or a function that makes the environment.
        seeds: One row each.
        budget: How long and how.
        engine: See `make_engine`.
    """

    replay = None

    def __init__(
        self,
        agent: Any,
        data: Batch,
        env: str | MakeEnv,
        seeds: tuple[int, ...],
        budget: OfflineBudget,
        engine: EngineName = "auto",
    ) -> None:
        self.agent, self.seeds, self.budget = agent, seeds, budget
        spec = probe_spec(env)
        self._data, self._call = data, agent.period
        self.evaluator = Evaluator(agent, env, engine, seeds, budget.evaluation_episodes)
        if isinstance(agent, Estimating):
            self._estimate = _estimator(agent, data)
        keys = jax.vmap(lambda seed: jax.random.split(jax.random.key(seed)))(jnp.asarray(seeds))
        self._update_keys = keys[:, 1]
        self.state = jax.jit(jax.vmap(lambda key: agent.init(key, spec)))(keys[:, 0])
        self.step = 0
        self.rows: list[OfflineRow] = []

    def run_to_checkpoint(self, on_step: OnProgress | None = None) -> None:
        """Trains up to the next checkpoint, or the end."""
        every, look = self.budget.checkpoint_every, self.budget.evaluate_every
        stop = min(self.budget.updates, (self.step // every + 1) * every)
        longest = LONGEST_CALL // self.agent.period * self.agent.period
        while self.step < stop:
            clock = time.perf_counter()
            until = min(stop, (self.step // look + 1) * look, self.step + self._call)
            self.state, metrics = _updates(
                self.agent, self.state, self._data, self._update_keys, (self.step, until)
            )
            jax.block_until_ready(metrics)
            self.step = until
            if time.perf_counter() - clock < CALL_SECONDS / 2:
                self._call = max(self.agent.period, min(2 * self._call, longest))
            if self.step % look == 0:
                self._evaluate(metrics)
            if on_step is not None:
                on_step(self.step, self.rows)
        finite_metrics(metrics, self.step, self.seeds)

    def counters(self) -> dict[str, np.ndarray]:
        """What must survive a checkpoint beside the agent: nothing."""
        return {}

    def close(self) -> None:
        """Closes the environments."""
        self.evaluator.close()

    def _evaluate(self, metrics: dict[str, Any]) -> None:
        seen = finite_metrics(metrics, self.step, self.seeds)
        episodes = self.evaluator(self.state, self.step)
        looks: list[list[float]] = [[] for _ in self.seeds]
        if isinstance(self.agent, Estimating):
            looks = self._look(self.agent.value_shift, episodes).tolist()
        for row, seed in enumerate(self.seeds):
            self.rows.append(
                OfflineRow(
                    seed,
                    self.step,
                    float(episodes.returns[row].mean()),
                    seen["loss"][row],
                    seen["q"][row],
                    *looks[row],
                )
            )

    def _look(self, shift: Shift, episodes: Episodes) -> Float[np.ndarray, "seed column"]:
        """The last columns of `OfflineRow`."""
        values = self._estimate(self.state, episodes.first, episodes.last)
        first, last, seen, unseen = (np.asarray(value) for value in values)
        ended = (episodes.lengths, episodes.terminated)
        followed = shift.multistep_return(episodes.discounted, *ended)
        beyond = np.where(episodes.terminated, 0.0, shift.gamma**episodes.lengths * last)
        estimate, real = first.mean(axis=1), (followed + beyond).mean(axis=1)
        over, tempted = (estimate - real) / shift.scale, (unseen - seen) / shift.scale
        return np.stack([estimate, real, over, seen, unseen, tempted], axis=1)


def as_batch(data: Dataset, env: str | MakeEnv) -> Batch:
    """The whole data set as agents take it, with continuous actions in [-1, 1].

    Args:
        data: The data set; refused if it does not fit the task.
        env: The task, whose bounds the actions of the data set have.
    """
    spec = probe_spec(env)
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
        lot=jnp.arange(count, dtype=jnp.uint32),
    )


def _fitting_actions(data: Dataset, env: str | MakeEnv, spec: TaskSpec) -> np.ndarray:
    """The actions of a data set, in [-1, 1] if they are continuous; refused if not the task's."""
    if not spec.action_size:
        if data.action.ndim != 1 or data.action.min() < 0 or data.action.max() >= spec.num_actions:
            raise InputError(
                f"the data set {data.name!r} has other actions than {env}, which has those from 0"
                f" to {spec.num_actions - 1}"
            )
        return data.action
    if data.action.shape[1:] != (spec.action_size,):
        raise InputError(
            f"the data set {data.name!r} has actions of shape {data.action.shape[1:]},"
            f" {env} of {spec.action_size} numbers"
        )
    action = to_unit_box(env, data.action.astype(np.float32))
    beyond = np.flatnonzero((np.abs(action) > 1 + BEYOND).any(axis=1))
    if beyond.size:
        raise InputError(
            f"the data set {data.name!r} has an action out of the bounds of {env} in row"
            f" {beyond[0]}: {data.action[beyond[0]]}"
        )
    return np.clip(action, -1, 1)


def unseen_actions(shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Random actions, from a stream that no data set is likely to be made of."""
    generator = np.random.default_rng([0x5EED, 7])
    return jnp.asarray(generator.uniform(-1, 1, shape), jnp.float32)


def _estimator(agent: Estimating, data: Batch) -> Any:
    """What every seed thinks of its policy in given states, of actions seen, and of unseen ones."""
    rows = np.linspace(0, len(data.reward) - 1, min(PROBED, len(data.reward)), dtype=np.int64)
    observation, action = data.observation[rows], data.action[rows]
    random = unseen_actions(action.shape)

    def estimate(state: Any, first: Any, last: Any) -> Any:
        policy = [jax.vmap(lambda one: agent.value(state, one))(where) for where in (first, last)]
        actions = [agent.action_value(state, observation, chosen) for chosen in (action, random)]
        return *policy, actions[0].mean(), actions[1].mean()

    return jax.jit(jax.vmap(estimate))


# A function, not a method: see `training/online.py`.
@partial(jax.jit, static_argnums=0, donate_argnums=1)
def _updates(agent: Any, state: Any, data: Batch, keys: Any, span: Any) -> Any:
    """The updates of every row from one number to another."""
    start, stop = span

    def row(state: Any, key: Any) -> Any:
        def period(number: Any, carry: Any) -> Any:
            state, _ = carry
            for turn in range(agent.period):
                sampling, updating = jax.random.split(
                    jax.random.fold_in(key, number * agent.period + turn)
                )
                index = jax.random.randint(sampling, (agent.batch_size,), 0, len(data.reward))
                batch = Batch(*(field[index] for field in data))
                state, metrics = agent.update(state, batch, updating, turn)
            return state, metrics

        nothing = {"loss": jnp.zeros(()), "q": jnp.zeros(())}
        span = (start // agent.period, stop // agent.period)
        return jax.lax.fori_loop(*span, period, (state, nothing))

    return jax.vmap(row)(state, keys)
