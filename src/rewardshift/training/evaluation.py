"""Evaluation: greedy episodes of every seed, side by side, apart from all training."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from rewardshift.envs.engines import EngineName, MakeEnv, make_engine


def derive_seed(*parts: int) -> int:
    """A seed for an environment, from what it is for."""
    return int(np.random.SeedSequence(parts).generate_state(1)[0] >> 1)


class Evaluator:
    """Runs greedy episodes in environments of its own.

    Args:
        agent: Whose actions to take.
        env, engine: As for training.
        seeds: Of the rows of the training state.
        episodes: How many of each seed.
    """

    def __init__(
        self,
        agent: Any,
        env: str | MakeEnv,
        engine: EngineName,
        seeds: Sequence[int],
        episodes: int,
    ) -> None:
        self._seeds, self._episodes = seeds, episodes
        self._engine = make_engine(env, len(seeds) * episodes, engine)
        over_episodes = jax.vmap(agent.greedy, in_axes=(None, 0))
        self._act = jax.jit(jax.vmap(over_episodes))

    def __call__(self, state: Any, step: int) -> Float[np.ndarray, "seed episode"]:
        """The primal returns; the same for the same state and step."""
        observation = self._engine.restart(
            [
                derive_seed(seed, step, 1 + number)
                for seed in self._seeds
                for number in range(self._episodes)
            ]
        )
        shape = (len(self._seeds), self._episodes)
        returns, running = np.zeros(shape), np.ones(shape, bool)
        while running.any():
            actions = np.asarray(self._act(state, observation.reshape(*shape, -1)))
            result = self._engine.step(actions.reshape(-1, *actions.shape[2:]))
            returns += running * result.reward.reshape(shape)
            running &= ~(result.terminated | result.truncated).reshape(shape)
            observation = result.observation
        return returns

    def close(self) -> None:
        """Closes the environments."""
        self._engine.close()
