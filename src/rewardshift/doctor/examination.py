"""The examination of an agent: the numbers of a diagnosis, measured on transitions."""

import itertools
import math
from functools import cached_property
from typing import Any

import gymnasium as gym
import numpy as np

from rewardshift.doctor.agent_view import AgentView, QFunction, values_at
from rewardshift.doctor.measure import (
    discounted_returns,
    means_by_tried,
    spread_rows,
    tried_actions,
)
from rewardshift.doctor.numbers import Belief, Ends, InitialValues, Signal, Untried
from rewardshift.doctor.transitions import History, Transitions, rows_in, take
from rewardshift.errors import InputError
from rewardshift.optimism import Bounds, value_bounds

POINTS = 512  # states in a picture and in the JSON
MOSTLY_SEEN = 0.5  # a return of which more than this is a bootstrap says little about it


class Examination:
    """An agent with its transitions; each method answers one question of a diagnosis.

    Args:
        agent: The agent.
        data: Transitions that it learned from.
        played: Transitions of its episodes; one of the two may be missing.
        states: The number of states in a sample.
        rng: The generator of the samples.
        foreign: See `Signal`.
    """

    def __init__(
        self,
        agent: AgentView,
        data: Transitions | None,
        played: Transitions | None,
        states: int,
        rng: np.random.Generator,
        foreign: float | None = None,
    ) -> None:
        self.agent, self.data, self.played = agent, data, played
        self._states, self._rng = states, rng
        both = {"data": data, "episodes": played}
        self._parts = {name: part for name, part in both.items() if part is not None}
        self.signal = self._signal(foreign)

    def _signal(self, foreign: float | None) -> Signal:
        gamma, shift = self.agent.gamma, self.agent.trained
        histories = [part.history for part in self._parts.values()]
        reward = np.concatenate([history.reward for history in histories])
        ended = np.concatenate([history.terminated for history in histories])
        trained = np.asarray(shift.reward(reward, ended))
        self.bounds, primal = (value_bounds(one, ended, gamma) for one in (trained, reward))
        # A replay rounds the rewards that it holds, with the shift.
        grain = 1e-6 * float(np.abs(trained).max()) / shift.scale
        kinds, counts = np.unique(np.round(reward / (grain or 1.0)), return_counts=True)
        common = float(kinds[counts.argmax()] * grain)
        # A reward of 0 teaches nothing by ending either: all values are 0.
        teaches = (np.abs(reward - common) > grain) | (ended & (abs(common) > grain))
        distance = _distance(histories, common, grain)
        return Signal(
            transitions=len(reward),
            highest_reward=float(reward.max()),
            informative=int(teaches.sum()),
            low=primal.low,
            high=primal.high,
            distance=distance,
            weight=None if distance is None else gamma**distance,
            largest=float(shift.scale * np.abs(reward).max()),
            foreign=foreign,
            width=self.bounds.width if teaches.any() else 0.0,
        )

    def belief(self) -> Belief | None:
        """Estimates beside returns, in the episodes, or else in data with the ends of episodes."""
        source, steps = list(self._parts.items())[-1]
        if steps.ended is None:
            return None
        followed, unseen = self._returns(steps)
        estimate = self._values(self.agent.value, steps)
        known = unseen <= MOSTLY_SEEN
        if known.any():
            followed, estimate = followed[known], estimate[known]
        over, width = float(estimate.mean() - followed.mean()), self.signal.width
        room, (low, high) = 0.1 * width, self._reachable()
        outside = (estimate > high + room) | (estimate < low - room)
        some = spread_rows(len(estimate), POINTS)
        return Belief(
            source=source,
            estimate=float(estimate.mean()),
            followed=float(followed.mean()),
            overestimation=over,
            spread=float((estimate - followed).std()),
            share=_share(over, width),
            beyond=float(outside.mean()) if width else None,
            points=tuple(zip(estimate[some].tolist(), followed[some].tolist(), strict=True)),
        )

    def _reachable(self) -> Bounds:
        """The bounds of possible returns, wider by what the start should have left."""
        low, high = self.bounds
        begun, kept = self.start.begun(self.agent.trained), self.start.kept
        return Bounds(low + kept * min(0.0, begun - low), high + kept * max(0.0, begun - high))

    def _returns(self, steps: Transitions) -> tuple[np.ndarray, np.ndarray]:
        """The return after each step on the trained scale, and its share that is not seen.

        Beyond a time limit, a return goes on with the estimate of the last state.
        """
        agent, ended = self.agent, np.array(steps.ended, bool)
        ended[-1] = True
        cut = ended & ~np.asarray(steps.terminated, bool)
        beyond = np.zeros(len(steps))
        if cut.any():
            if steps.next_observation is None:
                raise InputError("an episode was cut: returns beyond it need 'next_observation'")
            last = take(steps.next_observation, np.flatnonzero(cut))
            beyond[cut] = values_at(agent.value, last, np.asarray(agent.act(last)))
        reward = np.asarray(steps.reward, np.float64)
        shifted = np.asarray(agent.trained.reward(reward, steps.terminated))
        followed = discounted_returns(shifted, agent.gamma, ended, beyond)
        unseen = discounted_returns(np.zeros(len(steps)), agent.gamma, ended, cut * 1.0)
        return followed, unseen

    def untried(self) -> Untried | None:
        """Values of seen and unseen actions, on a sample of the data."""
        agent, data, bounds, width = self.agent, self.data, self.bounds, self.signal.width
        if data is None:
            return None
        rows = self._sample(data, self._states)
        at, action = take(data.observation, rows), np.asarray(data.action)[rows]

        def mean(actions: np.ndarray) -> float:
            return float(values_at(agent.value, at, actions).mean())

        seen, policy = mean(action), mean(np.asarray(agent.act(at)))
        beyond = max(0.0, seen - bounds.high, bounds.low - seen)
        if isinstance(agent.actions, gym.spaces.Discrete):
            tried, unseen = self._by_tried(data, agent.actions)
        else:
            tried, unseen = seen, mean(agent.random_actions(len(rows), self._rng))
        return Untried(
            seen=tried,
            unseen=unseen,
            policy=policy,
            advantage=None if unseen is None else _share(unseen - tried, width),
            pull=_share(policy - seen, width and width + beyond),
        )

    def _by_tried(
        self, data: Transitions, actions: gym.spaces.Discrete
    ) -> tuple[float, float | None]:
        """The mean values of taken and of all other actions, in distinct states."""
        # More rows than states, to know which actions were taken.
        rows = self._sample(data, 20 * self._states)
        observed, count = take(data.observation, rows), int(actions.n)
        parts = list(observed.values()) if isinstance(observed, dict) else [observed]
        flat = np.concatenate([np.reshape(part, (len(rows), -1)) for part in parts], axis=1)
        taken = np.asarray(data.action)[rows].reshape(-1) - actions.start
        chosen, tried = tried_actions(flat, taken, count, self._states, self._rng)
        every = np.tile(np.arange(count) + actions.start, len(chosen))
        values = values_at(self.agent.value, take(observed, np.repeat(chosen, count)), every)
        seen, unseen = means_by_tried(values.reshape(-1, count), tried)
        return seen, None if math.isnan(unseen) else unseen

    def ends(self) -> Ends | None:
        """The values of terminal transitions, of the first source that has any."""
        source = next((key for key, one in self._parts.items() if np.any(one.terminated)), None)
        if source is None:
            return None
        agent, part, width = self.agent, self._parts[source], self.signal.width
        counts = {key: int(one.history.terminated.sum()) for key, one in self._parts.items()}
        ended = np.asarray(part.terminated, bool)
        settled = True if part.settled is None else part.settled
        terminal, other = self._some(ended & settled), self._some(~ended & settled)
        excess = self._excess(agent.value, part, terminal)
        ordinary = self._excess(agent.value, part, other)
        before = shrinking = None
        if agent.earlier is not None and agent.earlier.updates > 0:
            earlier, updates = agent.earlier
            past = self._excess(earlier, part, terminal)
            before = _ratio(past, self._excess(earlier, part, other), width)
            if excess is not None and past and agent.lifetime is not None:
                shrinking = (1 - abs(excess / past)) * agent.lifetime / updates
        return Ends(
            stored=counts.get("data"),
            lived=counts.get("episodes"),
            source=source,
            transitions=len(terminal),
            excess=excess,
            ordinary=ordinary,
            share=_ratio(excess, ordinary, width),
            before=before,
            far=None if excess is None else _share(excess, width),
            shrinking=shrinking,
            **self._limits(),
        )

    def _limits(self) -> dict[str, Any]:
        """Where the episodes of the data end, beside the agent's own."""
        limit = at_limit = below_limit = went_on = cut = None
        if self.data is not None and len(lengths := self.data.history.lengths()):
            ends = self.data.history.ends()[1:]
            terminal = self.data.history.terminated[ends]
            cut = int((lengths[~terminal] < lengths.max()).sum())
            if terminal.any():
                limit = int(lengths[terminal].max())
                at_limit = int((lengths[terminal] == limit).sum())
                below_limit = int((limit - lengths[terminal] <= 5).sum()) - at_limit
        if limit is not None and self.played is not None:
            last = self.played.history.ends()
            own, fell = np.diff(last, prepend=-1), self.played.history.terminated[last]
            if (own >= limit).any():
                went_on = float(((own > limit) | ~fell)[own >= limit].mean())
        return {
            "limit": limit,
            "at_limit": at_limit,
            "below_limit": below_limit,
            "went_on": went_on,
            "cut": cut,
        }

    @cached_property
    def start(self) -> InitialValues:
        """The values of a fresh network, and the lifetime of their offset."""
        agent, target = self.agent, self.agent.target
        initial = spread = optimism = left = None
        if agent.fresh is not None:
            first = list(self._parts.values())[-1].first_observations
            drawn = agent.random_actions(rows_in(first), self._rng)
            primal = agent.trained.to_primal(values_at(agent.fresh, first, drawn))
            initial, spread = float(primal.mean()), float(primal.std())
            optimism = Bounds(self.signal.low, self.signal.high).optimism(initial)
        if target is not None and agent.lifetime is not None:
            left = math.exp(-target.updates / agent.lifetime)
        updates = None if target is None else target.updates
        return InitialValues(initial, spread, optimism, updates, agent.lifetime, left)

    def _values(self, value: QFunction, part: Transitions, rows: Any = slice(None)) -> np.ndarray:
        """The values of the actions taken in rows."""
        return values_at(value, take(part.observation, rows), np.asarray(part.action)[rows])

    def _excess(self, value: QFunction, part: Transitions, rows: np.ndarray) -> float | None:
        """The mean of the values of rows minus their rewards; None without any."""
        if not rows.size:
            return None
        reward = self.agent.trained.reward(np.asarray(part.reward)[rows], part.terminated[rows])
        return float((self._values(value, part, rows) - np.asarray(reward)).mean())

    def _sample(self, data: Transitions, count: int) -> np.ndarray:
        """Some rows, in their order."""
        size = min(count, len(data))
        return np.sort(self._rng.choice(len(data), size, replace=False, shuffle=False))

    def _some(self, which: np.ndarray) -> np.ndarray:
        """Some of the rows that are marked, in their order."""
        return np.sort(self._rng.permutation(np.flatnonzero(which))[: self._states])


def _distance(histories: list[History], common: float, grain: float) -> int | None:
    """The fewest steps from the beginning of an episode to something better than is common.

    Better is a larger reward, or an end where the common reward is below 0. Where it is above 0,
    ends are to be avoided, and a distance to something better says nothing.
    """
    found = []
    for history in histories if common <= grain else []:
        reward, terminated, _ = history
        better = reward > common + grain
        if common < -grain:
            better |= terminated & (reward >= common - grain)
        # The first episode may have begun earlier.
        for first, last in itertools.pairwise(history.ends()):
            steps = np.flatnonzero(better[first + 1 : last + 1])
            found += [int(steps[0]) + 1] if steps.size else []
    return min(found, default=None)


def _ratio(excess: float | None, ordinary: float | None, width: float) -> float | None:
    """The one divided by the other; None if that is unknown, or the other is about 0."""
    if excess is None or ordinary is None or not 0 < 0.01 * width < abs(ordinary):
        return None
    return excess / ordinary


def _share(value: float, whole: float) -> float | None:
    return float(value / whole) if whole else None
