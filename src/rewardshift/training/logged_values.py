"""The values that the loops log at every evaluation, measured by the doctor's arithmetic.

Optimism shows online: an optimistic agent values untried actions above tried ones, a cautious agent
below. Members with different shifts agree where there is data and disagree where there is none.
This is the paper's argument for their disagreement as a bonus. Caution shows offline, in the values
of the policy and of unseen actions.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rewardshift.agents.base import Agent, Batch
from rewardshift.doctor.measure import means_by_tried, spread_rows, tried_actions
from rewardshift.shift import Shift
from rewardshift.training.evaluation import Episodes
from rewardshift.training.replay import Replay

REPLAY_STATES = 256  # distinct states of a replay whose actions are compared
DATA_ROWS = 512  # transitions of a data set whose actions are compared with unseen ones


def values_by_tried(
    agent: Agent, states: Any, replay: Replay, num_actions: int
) -> dict[str, list[float]]:
    """The columns of `OnlineRow` with means over states in the replay and actions.

    The values are those of the first member, on its shifted scale. The disagreement is the
    standard deviation between the members on the primal scale; it is 0 for a single member.
    A mean over no pairs is NaN. Continuous actions in the replay are tried ones, and random ones
    in the same states are untried.
    """
    rng = np.random.default_rng(replay.added)  # the sample depends on the step alone
    rows = []
    for row, records in enumerate(replay.records[:, : replay.size]):
        state = jax.tree.map(lambda leaf, row=row: leaf[row], states)
        seen, actions = records["observation"], records["action"]
        if num_actions:
            chosen, tried = tried_actions(seen, actions, num_actions, REPLAY_STATES, rng)
            values = np.asarray(agent.values(state, jnp.asarray(seen[chosen], jnp.float32)))
        else:
            chosen = rng.permutation(len(seen))[:REPLAY_STATES]
            some, taken = jnp.asarray(seen[chosen], jnp.float32), jnp.asarray(actions[chosen])
            pair = (taken, unseen_actions(taken.shape))
            values = np.stack([agent.values(state, some, each) for each in pair], axis=-1)
            tried = np.tile([True, False], (len(chosen), 1))
        bias, scale = (
            np.array([getattr(member, name) for member in agent.shifts(state)])[:, None, None]
            for name in ("bias", "scale")
        )
        primal = Shift(bias, scale, agent.gamma).to_primal(values.astype(np.float64))
        rows.append((*means_by_tried(values[0], tried), *means_by_tried(primal.std(axis=0), tried)))
    names = ("q_visited", "q_unvisited", "disagreement_visited", "disagreement_unvisited")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def unseen_actions(shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Random actions, from a seed that is unlikely to have made a data set."""
    generator = np.random.default_rng([0x5EED, 7])
    return jnp.asarray(generator.uniform(-1, 1, shape), jnp.float32)


class OfflineEstimates:
    """Compares an agent's estimates with real returns, and seen actions with unseen ones.

    Args:
        agent: The agent.
        data: The data that the agent learns from.
    """

    def __init__(self, agent: Agent, data: Batch) -> None:
        self._shift = replace(agent.members[0], gamma=agent.gamma)
        rows = spread_rows(len(data.reward), DATA_ROWS)
        observation, action = data.observation[rows], data.action[rows]
        random = unseen_actions(action.shape)

        def estimate(state: Any, first: Any, last: Any) -> Any:
            policy = [jax.vmap(lambda one: agent.value(state, one))(at) for at in (first, last)]
            actions = [agent.values(state, observation, one)[0] for one in (action, random)]
            return *policy, actions[0].mean(), actions[1].mean()

        self._estimate = jax.jit(jax.vmap(estimate))

    def __call__(self, state: Any, episodes: Episodes) -> dict[str, Sequence[float]]:
        """The columns of `OfflineRow`, given the greedy episodes."""
        values = self._estimate(state, episodes.first, episodes.last)
        first, last, seen, unseen = (np.asarray(value) for value in values)
        shift, outcomes = self._shift, episodes.outcomes
        ended, lengths = outcomes.terminated, outcomes.lengths
        seen_return = shift.multistep_return(outcomes.discounted, lengths, ended)
        beyond = np.where(ended, 0.0, shift.gamma**lengths * last)  # what follows a time limit
        estimate, followed = first.mean(axis=1), np.asarray(seen_return + beyond).mean(axis=1)
        columns = {
            "estimate": estimate,
            "shifted_return": followed,
            "overestimation": (estimate - followed) / shift.scale,
            "q_seen": seen,
            "q_unseen": unseen,
            "unseen_advantage": (unseen - seen) / shift.scale,
        }
        return {name: column.tolist() for name, column in columns.items()}
