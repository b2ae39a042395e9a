"""The mechanism made visible: the values of untried actions beside those of tried ones.

An optimistic agent values untried actions above tried ones, a cautious agent below. Members
with different shifts agree where there is data and disagree where there is none. This is the
paper's argument for their disagreement as a bonus.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from rewardshift.agents.base import Agent, as_floats
from rewardshift.shift import Shift
from rewardshift.training.replay import Replay
from rewardshift.training.visits import visited_pairs

SAMPLES = 256


class VisitedValues(NamedTuple):
    """Means over pairs of a state from the replay and an action, for each seed.

    The values are those of the first member, on its shifted scale. The disagreement is the
    standard deviation between the members on the primal scale; it is 0 for a single member.
    A mean over no pairs is NaN.
    """

    q_visited: np.ndarray
    q_unvisited: np.ndarray
    disagreement_visited: np.ndarray
    disagreement_unvisited: np.ndarray


def look_at_visited(agent: Agent, states: Any, replay: Replay, num_actions: int) -> VisitedValues:
    """The values on a sample of the states in the replay of every seed."""
    rng = np.random.default_rng(replay.added)  # the sample depends on the step alone
    rows = []
    for row, records in enumerate(replay.records[:, : replay.size]):
        seen = records["observation"]
        first, taken = visited_pairs(seen, records["action"], num_actions)
        chosen = rng.permutation(len(first))[:SAMPLES]
        state = jax.tree.map(lambda leaf, row=row: leaf[row], states)
        values = np.asarray(agent.values(state, as_floats(jax.numpy.asarray(seen[first[chosen]]))))
        axes = (slice(None), None, None)
        biases, scales = (
            np.array([getattr(member, name) for member in agent.shifts(state)])[axes]
            for name in ("bias", "scale")
        )
        primal = Shift(biases, scales, agent.gamma).to_primal(values.astype(np.float64))
        spread = primal.std(axis=0)
        visited = taken[chosen]
        rows.append([_mean(m[v]) for m in (values[0], spread) for v in (visited, ~visited)])
    return VisitedValues(*np.array(rows).T)


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else float("nan")
