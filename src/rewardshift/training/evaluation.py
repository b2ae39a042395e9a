"""Evaluation: greedy episodes, in environments of our own or in a vector environment."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from rewardshift.agents.base import Agent
from rewardshift.agents.networks import Learner
from rewardshift.envs.tasks import MakeEnv, TaskSpec, env_name
from rewardshift.envs.vector import Environments
from rewardshift.errors import InputError, TrainingError, blaming
from rewardshift.wrappers import DISABLED, NEXT_STEP, SAME_STEP, autoreset_mode

# Longer than the episodes of any known task: an episode that reaches it has no end.
LONGEST_EPISODE = 100_000


def derive_seed(*parts: int) -> int:
    """A seed for an environment, derived from its purpose, such as (seed, step)."""
    return int(np.random.SeedSequence(parts).generate_state(1)[0] >> 1)


def policy_state(agent: Agent, state: Any) -> dict[str, Any]:
    """The fields of an agent's state that `greedy` reads, without optimisers."""
    fields = {name: getattr(state, name) for name in agent.networks}
    return {
        name: part._replace(optimiser=()) if isinstance(part, Learner) else part
        for name, part in fields.items()
    }


def acting_state(state: Any, networks: dict[str, Any]) -> Any:
    """An agent's state with these fields; the others, which no policy reads, are empty."""
    return state._replace(**{name: networks.get(name, ()) for name in state._fields})


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
        looking = f"of the evaluation after step {step},"
        with blaming(f"{self._name}, at the beginning {looking}"):
            observation = first = self._envs.restart(self._starts(step, skip))
        shape = (len(self._seeds), self._episodes)
        returns, discounted, discount = np.zeros(shape), np.zeros(shape), 1.0
        lengths, terminated = np.zeros(shape, np.int64), np.zeros(shape, bool)
        success = np.full(shape, np.nan)
        running, last = np.ones(shape, bool), first.copy()
        while running.any():
            if lengths.max() >= LONGEST_EPISODE:
                raise _endless(f"an episode of the evaluation after step {step}")
            actions = np.asarray(self._act(state, observation.reshape(*shape, -1)))
            with blaming(f"{self._name}, in step {lengths.max() + 1} {looking}"):
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

    def _starts(self, step: int, skip: int) -> list[int]:
        """The seeds of the episodes."""
        numbers = range(1 + skip, 1 + skip + self._episodes)
        return [derive_seed(seed, step, number) for seed in self._seeds for number in numbers]

    def close(self) -> None:
        """Closes the environments."""
        self._envs.close()


class RowSpaces(gym.Env[Any, Any]):
    """The spaces of one row of a vector environment, which say what its task is."""

    def __init__(self, envs: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        self.observation_space = envs.single_observation_space
        self.action_space = envs.single_action_space


def vector_episodes(
    envs: gym.vector.VectorEnv[Any, Any, Any],
    act: Callable[[Any], Any],
    episodes: int,
    *,
    gamma: float,
    seed: int,
) -> Evaluation:
    """Episodes of all rows, the same number in each, so that short ones are not preferred.

    Args:
        envs: The vector environment, which is not closed.
        act: The actions for a batch of its observations.
        episodes: The least number of episodes; the rows share them.
        gamma: The discount.
        seed: The seed of the first reset.
    """
    mode = autoreset_mode(envs)
    if mode == DISABLED:
        raise InputError(
            f"a vector environment needs autoreset to be evaluated in, {envs} has none"
        )
    rows, share = envs.num_envs, -(-episodes // envs.num_envs)
    with blaming(f"the vector environment {envs}, when reset,"):
        observation, _ = envs.reset(seed=seed)
    total, discounted, length = np.zeros(rows), np.zeros(rows), np.zeros(rows, np.int64)
    resetting, finished = np.zeros(rows, bool), np.zeros(rows, np.int64)
    found: list[tuple[Any, ...]] = []
    while (finished < share).any():
        if length.max() >= LONGEST_EPISODE:
            raise _endless(f"an episode of {envs}")
        actions = act(observation)
        with blaming(f"the vector environment {envs}"):
            observation, reward, terminated, truncated, infos = envs.step(actions)
        counted = ~resetting  # a row that is only being reset pays nothing
        total += counted * reward
        discounted += counted * gamma**length * reward
        length += counted
        ended = counted & (terminated | truncated)
        last = infos.get("final_info", {}) if mode == SAME_STEP else infos
        found += [
            (total[row], discounted[row], length[row], terminated[row], _success(last, row))
            for row in np.flatnonzero(ended & (finished < share))
        ]
        finished += ended
        for numbers in (total, discounted, length):
            numbers[ended] = 0
        resetting = ended if mode == NEXT_STEP else resetting
    return Evaluation(*(np.array(column) for column in zip(*found, strict=True)))


def _success(infos: dict[str, Any], row: Any) -> float:
    """Whether a row's info says that its goal is reached, as in `Step`; NaN if it does not."""
    for name in ("is_success", "success"):
        if name in infos and infos.get(f"_{name}", np.ones(row + 1))[row]:
            return float(infos[name][row])
    return np.nan


def _endless(what: str) -> TrainingError:
    """The error for an episode that reaches `LONGEST_EPISODE`."""
    return TrainingError(
        f"{what} has not ended in {LONGEST_EPISODE} steps; does the task need"
        " gymnasium.wrappers.TimeLimit?"
    )
