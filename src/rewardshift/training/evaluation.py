"""Evaluation: greedy episodes of every seed, side by side."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from rewardshift.agents.base import Agent
from rewardshift.envs.tasks import MakeEnv, TaskSpec, env_name
from rewardshift.envs.vector import Environments
from rewardshift.errors import TrainingError, blaming

# Longer than the episodes of any known task: an episode that reaches it has no end.
LONGEST_EPISODE = 100_000


def derive_seed(*parts: int) -> int:
    """A seed for an environment, derived from its purpose, such as (seed, step)."""
    return int(np.random.SeedSequence(parts).generate_state(1)[0] >> 1)


class Evaluation(NamedTuple):
    """The outcomes of greedy episodes, with primal rewards.

    `discounted` are the discounted returns. `terminated` is True for an end in a terminal state and
    False for a time limit. `success` is whether a goal was reached at the last step, NaN if the
    task does not report it.
    """

    returns: Float[np.ndarray, "*seed episode"]
    discounted: Float[np.ndarray, "*seed episode"]
    lengths: Int[np.ndarray, "*seed episode"]
    terminated: Bool[np.ndarray, "*seed episode"]
    success: Float[np.ndarray, "*seed episode"]


class Episodes(NamedTuple):
    """Episodes of every seed: their outcomes, and their first and last observations."""

    outcomes: Evaluation
    first: np.ndarray
    last: np.ndarray


class Evaluator:
    """Runs greedy episodes in its own environments.

    Args:
        agent: The agent that acts.
        env: A registered name, or a function that makes the environment.
        seeds: The seeds of the rows of the training state.
        episodes: The number of episodes per seed.
        spec: The environment's task.
    """

    def __init__(
        self,
        agent: Agent,
        env: str | MakeEnv,
        seeds: Sequence[int],
        episodes: int,
        spec: TaskSpec,
    ) -> None:
        self._seeds, self._episodes, self._gamma = seeds, episodes, agent.gamma
        self._envs = Environments(env, len(seeds) * episodes, spec)
        self._name = f"the environment {env_name(env)!r}"
        over_episodes = jax.vmap(agent.greedy, in_axes=(None, 0))
        self._act = jax.jit(jax.vmap(over_episodes))

    def __call__(
        self,
        state: Any,
        step: int,
        on_step: Callable[[], None] | None = None,
        *,
        skip: int = 0,
    ) -> Episodes:
        """The episodes, which depend on the state, the step and `skip` alone.

        Args:
            state: The agent's state, with a leading axis over the seeds.
            step: The number of training steps so far.
            on_step: A function to call after every step of the episodes; raising in it stops them.
            skip: The number of the first episode; each number has another start.
        """
        numbers = range(1 + skip, 1 + skip + self._episodes)
        starts = [derive_seed(seed, step, number) for seed in self._seeds for number in numbers]
        when = f"of the evaluation after step {step},"
        with blaming(f"{self._name}, at the beginning {when}"):
            observation = first = self._envs.restart(starts)
        shape = (len(self._seeds), self._episodes)
        returns, discounted, discount = np.zeros(shape), np.zeros(shape), 1.0
        lengths, terminated = np.zeros(shape, np.int64), np.zeros(shape, bool)
        success = np.full(shape, np.nan)
        running, last = np.ones(shape, bool), first.copy()
        while running.any():
            if lengths.max() >= LONGEST_EPISODE:
                raise TrainingError(
                    f"an episode of the evaluation after step {step} has not ended in"
                    f" {LONGEST_EPISODE} steps; does the task need gymnasium.wrappers.TimeLimit?"
                )
            actions = np.asarray(self._act(state, observation.reshape(*shape, -1)))
            with blaming(f"{self._name}, in step {lengths.max() + 1} {when}"):
                result = self._envs.step(actions.reshape(-1, *actions.shape[2:]))
            reward = running * result.reward.reshape(shape)
            returns += reward
            discounted += discount * reward
            lengths += running
            last[running.ravel()] = result.next_observation[running.ravel()]
            terminated |= running & result.terminated.reshape(shape)
            success[running] = result.success.reshape(shape)[running]
            running &= ~(result.terminated | result.truncated).reshape(shape)
            observation, discount = result.observation, discount * self._gamma
            if on_step is not None:
                on_step()
        outcomes = Evaluation(returns, discounted, lengths, terminated, success)
        return Episodes(outcomes, first.reshape(*shape, -1), last.reshape(*shape, -1))

    def close(self) -> None:
        """Closes the environments."""
        self._envs.close()
