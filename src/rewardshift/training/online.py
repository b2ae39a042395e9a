"""Online training of a population: all seeds of a run in one compiled call per step.

At every checkpoint the running episodes are truncated (bootstrapped, not counted) and the
environments restart from seeds derived from (seed, step), whether the run is interrupted or
not. All other randomness is a function of (seed, step) too. So a killed run that starts again
repeats, from its last checkpoint on, the uninterrupted run bit for bit.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rewardshift.agents.base import Agent
from rewardshift.envs.goals import goal_reward
from rewardshift.envs.tasks import MakeEnv, TaskSpec, env_name
from rewardshift.envs.vector import Environments
from rewardshift.errors import FOREIGN, TrainingError, blaming, foreign_error
from rewardshift.training.budgets import OnlineBudget
from rewardshift.training.checkpoint import Snapshot
from rewardshift.training.config import RunConfig
from rewardshift.training.evaluation import Episodes, derive_seed
from rewardshift.training.hindsight import HindsightReplay
from rewardshift.training.metrics import Columns, finite_metrics, values_by_tried
from rewardshift.training.replay import Replay, unpack
from rewardshift.training.trainer import (
    OnProgress,
    Trainer,
    checked_action,
    checked_state,
    checked_update,
    random_numbers,
)


class OnlineTrainer(Trainer):
    """The trainer of a run in an environment."""

    replay: Replay

    def __init__(self, config: RunConfig, env: str | MakeEnv, columns: Columns) -> None:
        super().__init__(config, env, columns)
        agent, spec, count = self.agent, self.spec, len(self.seeds)
        assert isinstance(config.budget, OnlineBudget)
        self.budget = budget = config.budget
        self.envs = Environments(env, count, spec)
        self._name = f"the environment {env_name(env)!r}"
        size = (count, min(budget.capacity, budget.steps), spec)
        hindsight = budget.hindsight
        self.replay = (
            Replay(*size, gamma=agent.gamma, n_step=agent.n_step)
            if hindsight is None
            else HindsightReplay(*size, hindsight=hindsight, reward=goal_reward(env))
        )
        if config.biases:
            each = jnp.asarray(config.biases, jnp.float32)
            bias = jnp.repeat(each, len(config.seeds))[:, None]
            self.state = self.state._replace(biases=self.state.biases._replace(bias=bias))
        # The episodes so far, and those since the last evaluation with the sum of their returns.
        self.counters: dict[str, np.ndarray] = {
            "episodes": np.zeros(count, np.int64),
            "finished": np.zeros(count, np.int64),
            "finished_return": np.zeros(count),
        }

    def run_to_checkpoint(self, on_progress: OnProgress | None = None) -> None:
        """Trains to the next checkpoint or the end."""
        steps, every = self.budget.steps, self.budget.checkpoint_every
        evaluate_every = min(self.budget.evaluate_every, steps)
        stop = min(steps, (self.step // every + 1) * every)
        with blaming(f"{self._name}, when reset after step {self.step},"):
            observation = self.envs.restart([derive_seed(seed, self.step) for seed in self.seeds])
        running = np.zeros(len(self.seeds))
        acting = 1 + self.agent.draws(self.spec)
        sampling = self.agent.batch_size * self.replay.draws
        randomness = random_numbers(self.step, self.seeds, self.update_keys, (acting, sampling))
        drawn = next(randomness)
        self.state, action, intrinsic, _ = _step(
            (self.agent, self.spec, 0),
            self.state,
            None,
            None,
            (observation, drawn.acting),
            self.agent.exploration(self.step, steps),
        )
        action, intrinsic = np.asarray(action), np.asarray(intrinsic)
        metrics: dict[str, Any] = {}
        while self.step < stop:
            try:  # `blaming` would cost every step of the loop some microseconds
                result = self.envs.step(action)
            except FOREIGN as error:
                raise foreign_error(f"{self._name}, in step {self.step + 1},", error) from error
            self.step += 1
            seen = (("an observation", result.next_observation), ("a reward", result.reward))
            for kind, numbers in seen:
                if numbers.dtype != np.uint8 and not np.isfinite(numbers).all():
                    raise TrainingError(f"{kind} is not finite after step {self.step}")
            ended = result.terminated | result.truncated
            cut = ended | (self.step == stop)  # the next segment begins with new episodes
            self.replay.add(
                observation=observation,
                action=action,
                reward=result.reward,
                next_observation=result.next_observation,
                terminated=result.terminated,
                ended=cut,
                intrinsic=intrinsic,
            )
            observation = result.observation
            running += result.reward
            paid = np.stack([running, result.reward], axis=1).astype(np.float32)
            update = self.step - self.agent.warm_up  # its number, from 1 on
            sampled, turn = None, 0
            if update > 0:
                sampled = (self.replay.sample(drawn.sampling), drawn.key)
                turn = (update - 1) % self.agent.period
            drawn = next(randomness)
            self.state, action, intrinsic, latest = _step(
                (self.agent, self.spec, turn),
                self.state,
                sampled,
                (ended, result.terminated, paid),
                (observation, drawn.acting),
                self.agent.exploration(self.step, steps),
            )
            if ended.any():
                self.counters["episodes"] += ended
                self.counters["finished"] += ended
                self.counters["finished_return"] += np.where(ended, running, 0.0)
                running[ended] = 0.0
            # Read only now: the compiled step runs beside the code above.
            action, intrinsic = np.asarray(action), np.asarray(intrinsic)
            metrics |= latest  # updates of other turns may return other metrics
            if self.step % evaluate_every == 0:
                self.evaluate(metrics, on_progress)
            if on_progress is not None:
                on_progress(self.step, self.rows)
        finite_metrics(metrics, self.step, self.seeds)

    def snapshot(self, since: int = 0) -> Snapshot:
        """See `Trainer`."""
        base = super().snapshot(since)
        return base._replace(arrays={**base.arrays, "counters": self.counters})

    def restore(self, snapshot: Snapshot) -> None:
        """See `Trainer`."""
        super().restore(snapshot)
        self.counters = snapshot.arrays["counters"]

    def close(self) -> None:
        """Closes the environments."""
        self.envs.close()
        super().close()

    def measured(self, episodes: Episodes) -> dict[str, Sequence[Any]]:
        """See `OnlineRow`."""
        counted = {name: numbers.tolist() for name, numbers in self.counters.items()}
        pairs = zip(counted["finished_return"], counted["finished"], strict=True)
        successes = episodes.outcomes.success.mean(axis=1).tolist()
        columns: dict[str, Sequence[Any]] = {
            "episodes": counted["episodes"],
            "training_return": [total / count if count else None for total, count in pairs],
            "success_rate": [None if math.isnan(rate) else rate for rate in successes],
        }
        self.counters["finished"][:] = 0
        self.counters["finished_return"][:] = 0.0
        if self.budget.diagnose:
            actions = self.spec.num_actions
            columns |= values_by_tried(self.agent, self.state, self.replay, actions)
        return columns


def one_step(
    static: tuple[Agent, TaskSpec, int], state: Any, sampled: Any, last: Any, now: Any
) -> tuple[Any, Any, Any, dict[str, Any]]:
    """One step of one row: what the last step paid, an update, and the next action.

    Args:
        static: The agent, its task and the turn of its update.
        state: The agent's state.
        sampled: A packed batch and a key for the update; None in the warm-up.
        last: Whether the last step ended the episode, whether in a terminal state, the return so
            far and the reward; None before the first step.
        now: The observation, random numbers and the amount of exploration.

    Returns:
        The new state, the action, the intrinsic reward of the observation, and metrics.
    """
    agent, spec, turn = static
    metrics: dict[str, Any] = {}
    name, (observation, draws, explore) = type(agent).__name__, now
    if last is not None:
        ended, terminated, (total, reward) = last
        adapted = agent.adapt(state, reward, terminated)
        state = checked_state(f"{name}.adapt", state, adapted)
        if sampled is not None:
            packed, key = sampled
            batch, key = unpack(packed, spec), jax.random.wrap_key_data(key)
            state, metrics = checked_update(agent, state, batch, key, turn)
            led = agent.lead(state, draws[0], ended, total)
            state = checked_state(f"{name}.lead", state, led)
    observed, intrinsic = agent.observe(state, observation)
    state = checked_state(f"{name}.observe", state, observed)
    action = agent.act(state, observation, draws[1:], explore)
    return state, checked_action(f"{name}.act", action, spec), intrinsic, metrics


# A function and not a method of the trainer: JAX caches static arguments, and a cached trainer
# would keep its replay from being freed.
@partial(jax.jit, static_argnums=0, donate_argnums=1)
def _step(
    static: tuple[Agent, TaskSpec, int], state: Any, sampled: Any, last: Any, now: Any, explore: Any
) -> Any:
    """One step of every row; `explore` is one number for all of them."""
    rows = jax.vmap(partial(one_step, static), in_axes=(0, 0, 0, (0, 0, None)))
    return rows(state, sampled, last, (*now, explore))
