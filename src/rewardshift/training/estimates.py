"""Caution made visible: an offline agent's values of its policy and of unseen actions."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rewardshift.agents.base import Agent, Batch
from rewardshift.training.evaluation import Episodes

# Transitions, spread over the data set, whose actions are compared with unseen ones.
PROBED = 512
# The columns of `OfflineRow` that an estimator fills.
COLUMNS = (
    *("estimate", "shifted_return", "overestimation"),
    *("q_seen", "q_unseen", "unseen_advantage"),
)


def unseen_actions(shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Random actions, from a seed that is unlikely to have made a data set."""
    generator = np.random.default_rng([0x5EED, 7])
    return jnp.asarray(generator.uniform(-1, 1, shape), jnp.float32)


class Estimator:
    """Compares an agent's estimates with real returns, and seen actions with unseen ones.

    Args:
        agent: The agent.
        data: The data that the agent learns from.
    """

    def __init__(self, agent: Agent, data: Batch) -> None:
        self._shift = replace(agent.members[0], gamma=agent.gamma)
        rows = np.linspace(0, len(data.reward) - 1, min(PROBED, len(data.reward)), dtype=np.int64)
        observation, action = data.observation[rows], data.action[rows]
        random = unseen_actions(action.shape)

        def estimate(state: Any, first: Any, last: Any) -> Any:
            policy = [jax.vmap(lambda one: agent.value(state, one))(at) for at in (first, last)]
            actions = [agent.values(state, observation, one)[0] for one in (action, random)]
            return *policy, actions[0].mean(), actions[1].mean()

        self._estimate = jax.jit(jax.vmap(estimate))

    def __call__(self, state: Any, episodes: Episodes) -> list[dict[str, float]]:
        """The columns of every seed, by name, given its greedy episodes."""
        values = self._estimate(state, episodes.first, episodes.last)
        first, last, seen, unseen = (np.asarray(value) for value in values)
        shift, ended = self._shift, (episodes.lengths, episodes.terminated)
        followed = shift.multistep_return(episodes.discounted, *ended)
        beyond = np.where(episodes.terminated, 0.0, shift.gamma**episodes.lengths * last)
        estimate, real = first.mean(axis=1), (followed + beyond).mean(axis=1)
        over, tempted = (estimate - real) / shift.scale, (unseen - seen) / shift.scale
        table = np.stack([estimate, real, over, seen, unseen, tempted], axis=1)
        return [dict(zip(COLUMNS, row, strict=True)) for row in table.tolist()]
