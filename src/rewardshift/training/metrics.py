"""The lines of `metrics.csv`: their columns, and the values in them that are measured.

Optimism shows online: an optimistic agent values untried actions above tried ones, a cautious agent
below. Members with different shifts agree where there is data and disagree where there is none.
This is the paper's argument for their disagreement as a bonus. Caution shows offline, in the values
of the policy and of unseen actions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rewardshift.agents.base import Agent, Batch
from rewardshift.doctor.measure import means_by_tried, spread_rows, tried_actions
from rewardshift.errors import InputError, TrainingError, shown
from rewardshift.shift import Shift
from rewardshift.training.evaluation import Episodes
from rewardshift.training.replay import Replay

REPLAY_STATES = 256  # distinct states of a replay whose actions are compared
DATA_ROWS = 512  # transitions of a data set whose actions are compared with unseen ones


@dataclass(frozen=True)
class OnlineRow:
    """One line of `metrics.csv`: one seed at one evaluation.

    `evaluation_return` is the mean primal return of the greedy episodes, `training_return`
    that of the episodes finished since the last evaluation (empty without any).
    `success_rate` is the share of the greedy episodes that ended at a goal, if the task reports
    it. The next four are empty unless the budget has `diagnose`; see `values_by_tried`. `metrics`
    are those of the agent's last updates, such as `loss` and `q`, each in its own column; there
    are none in the warm-up.
    """

    seed: int
    step: int
    episodes: int
    evaluation_return: float
    training_return: float | None
    success_rate: float | None = None
    q_visited: float | None = None
    q_unvisited: float | None = None
    disagreement_visited: float | None = None
    disagreement_unvisited: float | None = None
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class OfflineRow:
    """One line of `metrics.csv`: one seed at one evaluation.

    `evaluation_return` is the mean primal return of the greedy episodes. `estimate` is the agent's
    value of its policy at the start of these episodes. `shifted_return` is the discounted and
    shifted return that followed, with the agent's own estimate after a time limit. Both are on the
    shifted scale. `q_seen` is the critics' mean value of the actions in the data, `q_unseen` that
    of random actions in the same states. `overestimation` (`estimate - shifted_return`) and
    `unseen_advantage` (`q_unseen - q_seen`) are differences in units of the primal reward: divided
    by the shift's scale. Above 0, the agent overestimates, or prefers unseen actions. SAC's
    estimate counts the entropy and the return does not. Only BCQ, CQL, SAC and other agents that
    tell the value of their policy have these six. `metrics` are those of the agent's last update,
    such as `loss` and `q`, each in its own column.
    """

    seed: int
    step: int
    evaluation_return: float
    estimate: float | None = None
    shifted_return: float | None = None
    overestimation: float | None = None
    q_seen: float | None = None
    q_unseen: float | None = None
    unseen_advantage: float | None = None
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Columns:
    """The columns of `metrics.csv`: the fixed ones, then the agent's metrics.

    Args:
        kind: The dataclass of a row: one seed at one evaluation. Its fields are the fixed columns,
            except for `metrics`: the agent's metrics by name, without those that no update has
            returned yet.
        metrics: The names of the agent's metrics, sorted.
    """

    kind: type
    metrics: tuple[str, ...]

    @property
    def fixed(self) -> tuple[str, ...]:
        """The columns that do not depend on the agent."""
        return tuple(field.name for field in fields(self.kind) if field.name != "metrics")

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, in order."""
        return self.fixed + self.metrics

    def cells(self, row: Any) -> list[float | None]:
        """The values of a row, in the order of the columns; None for an empty cell."""
        return [
            *(getattr(row, name) for name in self.fixed),
            *(row.metrics.get(name) for name in self.metrics),
        ]

    def value(self, row: Any, name: str) -> float | None:
        """The value of one column in a row."""
        return row.metrics.get(name) if name in self.metrics else getattr(row, name)

    def to_json(self, rows: Sequence[Any]) -> dict[str, Any]:
        """Rows in the form that a checkpoint keeps."""
        return {"columns": list(self.names), "rows": [self.cells(row) for row in rows]}

    def from_json(self, body: dict[str, Any]) -> list[Any]:
        """The rows of a checkpoint; raises InputError if the run had other columns."""
        if not all(isinstance(body[part], list) for part in ("columns", "rows")):
            raise ValueError(f"its rows must be lists under their columns, got {shown(body)}")
        if body["columns"] != list(self.names):
            raise InputError(
                "the agent returns other metrics than when the run began: the columns were"
                f" {', '.join(map(str, body['columns']))}, and are {', '.join(self.names)}"
            )
        rows, count = [], len(self.fixed)
        for cells in body["rows"]:
            named = zip(self.metrics, cells[count:], strict=True)
            metrics = {name: value for name, value in named if value is not None}
            rows.append(self.kind(*cells[:count], metrics=metrics))
        return rows


def finite_metrics(
    metrics: Mapping[str, Any], step: int, seeds: tuple[int, ...]
) -> list[dict[str, float]]:
    """The metrics of every seed; raises TrainingError if one is not finite."""
    seen = {name: np.asarray(values).tolist() for name, values in metrics.items()}
    for name, values in seen.items():
        if not np.isfinite(values).all():
            seed = seeds[int(np.flatnonzero(~np.isfinite(values))[0])]
            raise TrainingError(f"{name} is not finite at step {step} of seed {seed}")
    return [{name: values[row] for name, values in seen.items()} for row in range(len(seeds))]


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
            value: Any = jax.vmap(lambda one: agent.policy_value(state, one))
            seen, unseen = (agent.values(state, observation, one)[0] for one in (action, random))
            return value(first), value(last), seen.mean(), unseen.mean()

        self._estimate = jax.jit(jax.vmap(estimate))

    def __call__(self, state: Any, episodes: Episodes) -> dict[str, Sequence[float]]:
        """The columns of `OfflineRow`, given the greedy episodes."""
        values = self._estimate(state, episodes.first, episodes.last)
        first, last, seen, unseen = (np.asarray(value) for value in values)
        shift, outcomes = self._shift, episodes.outcomes
        ended, lengths = outcomes.terminated, outcomes.lengths
        within = shift.multistep_return(outcomes.discounted, lengths, ended)
        beyond = np.where(ended, 0.0, shift.gamma**lengths * last)  # what follows a time limit
        estimate, followed = first.mean(axis=1), np.asarray(within + beyond).mean(axis=1)
        columns = {
            "estimate": estimate,
            "shifted_return": followed,
            "overestimation": (estimate - followed) / shift.scale,
            "q_seen": seen,
            "q_unseen": unseen,
            "unseen_advantage": (unseen - seen) / shift.scale,
        }
        return {name: column.tolist() for name, column in columns.items()}
