"""The compiled steps of online training, for every row at once.

They are functions and not methods of the trainer: JAX caches static arguments, and a cached trainer
would keep its replay from being freed.
"""

from functools import partial
from typing import Any

import jax

from rewardshift.agents.base import Agent
from rewardshift.training.metrics import as_scalars
from rewardshift.training.replay import RecordLayout


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def begin(agent: Agent, state: Any, observation: Any, draws: Any, explore: Any) -> Any:
    """The first action of every row."""

    def row(state: Any, observation: Any, draws: Any) -> Any:
        state, bonus = agent.observe(state, observation)
        return state, agent.act(state, observation, draws[1:], explore), bonus

    return jax.vmap(row)(state, observation, draws)


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def update_and_act(
    what: tuple[Agent, RecordLayout, int],
    state: Any,
    sampled: Any,
    now: Any,
    explore: Any,
) -> Any:
    """One step of every row: an update on the sampled batch, if there is one, then an action."""
    agent, layout, turn = what

    def row(state: Any, sampled: Any, now: Any) -> Any:
        observation, draws, ended, cut, (total, reward) = now
        metrics: dict[str, Any] = {}
        state = agent.adapt(state, reward, cut)
        if sampled is not None:
            packed, key = sampled
            update_key = jax.random.wrap_key_data(key)
            state, returned = agent.update(state, layout.unpack(packed), update_key, turn)
            metrics = as_scalars(returned)
            state = agent.lead(state, draws[0], ended, total)
        state, bonus = agent.observe(state, observation)
        return state, agent.act(state, observation, draws[1:], explore), bonus, metrics

    return jax.vmap(row)(state, sampled, now)
