"""The arithmetic behind each group of numbers in a diagnosis."""

import math

import gymnasium as gym
import numpy as np

from rewardshift.doctor.groups import Belief, Ends, Members, Motion, Signal, Start, Untried
from rewardshift.doctor.view import QFunction, Transitions, View, rows_in, take, values_at
from rewardshift.doctor.walk import returns_of
from rewardshift.optimism import Bounds, lifetime, value_bounds
from rewardshift.training.visits import visited_pairs

POINTS = 512  # states in a picture and in the JSON
NEARBY = 0.1  # the standard deviation of a nearby action, in half widths of the action space
MOSTLY_SEEN = 0.5  # a return of which more than this is a bootstrap says little about it


def signal_of(view: View, parts: list[Transitions]) -> Signal:
    """The signal in transitions of all sources."""
    reward, ended = (
        np.concatenate(column) for column in zip(*(part.rewards for part in parts), strict=True)
    )
    primal = value_bounds(reward, ended, view.gamma)
    kinds, counts = np.unique(reward, return_counts=True)
    common = kinds[counts.argmax()]
    # A reward of 0 teaches nothing by ending either: all values are 0.
    teaches = (reward != common) | (ended & bool(common != 0))
    trained = np.asarray(view.trained.reward(reward, ended))
    width = value_bounds(trained, ended, view.gamma).width if teaches.any() else 0.0
    return Signal(
        transitions=len(reward),
        lowest_reward=float(kinds[0]),
        highest_reward=float(kinds[-1]),
        terminations=int(ended.sum()),
        informative=int(teaches.sum()),
        low=primal.low,
        high=primal.high,
        width=width,
    )


def trained_bounds(view: View, parts: list[Transitions]) -> Bounds:
    """The bounds of values on the scale that the agent was trained on."""
    each = [
        value_bounds(np.asarray(view.trained.reward(*part.rewards)), part.rewards[1], view.gamma)
        for part in parts
    ]
    return Bounds(min(one.low for one in each), max(one.high for one in each))


def belief_of(view: View, data: Transitions, source: str, signal: Signal, bounds: Bounds) -> Belief:
    """Estimates beside returns, for consecutive transitions."""
    followed, share = returns_of(view, data)
    estimate = values_at(view.value, data.observation, data.action, "the agent")
    known = share <= MOSTLY_SEEN
    if known.any():
        followed, estimate = followed[known], estimate[known]
    over = estimate - followed
    room = 0.1 * signal.width
    outside = (estimate > bounds.high + room) | (estimate < bounds.low - room)
    some = np.linspace(0, len(over) - 1, min(POINTS, len(over)), dtype=np.int64)
    return Belief(
        source=source,
        states=len(over),
        estimate=float(estimate.mean()),
        followed=float(followed.mean()),
        overestimation=float(over.mean()),
        spread=float(over.std()),
        share=_share(over.mean(), signal.width),
        beyond=float(outside.mean()) if signal.width else None,
        points=tuple(zip(estimate[some].tolist(), followed[some].tolist(), strict=True)),
    )


def untried_of(
    view: View,
    data: Transitions,
    states: int,
    bounds: Bounds,
    signal: Signal,
    rng: np.random.Generator,
) -> Untried:
    """Values of seen and unseen actions, on a sample of the data."""
    rows = sampled(data, states, rng)
    seen_at, action = take(data.observation, rows), np.asarray(data.action)[rows]
    seen = values_at(view.value, seen_at, action, "the agent")
    policy = values_at(view.value, seen_at, np.asarray(view.act(seen_at)), "the agent").mean()
    beyond = max(0.0, seen.mean() - bounds.high, bounds.low - seen.mean())
    nearby = None
    if isinstance(view.actions, gym.spaces.Discrete):
        mean, unseen = _of_discrete(view, data, states, rng)
    else:
        uniform = view.uniform(len(rows), rng)
        mean, unseen = float(seen.mean()), _mean(view, seen_at, uniform)
        nearby = _mean(view, seen_at, _near(view.actions, action, rng))
    return Untried(
        states=len(rows),
        seen=mean,
        unseen=unseen,
        nearby=nearby,
        policy=float(policy),
        advantage=None if unseen is None else _share(unseen - mean, signal.width),
        pull=_share(policy - seen.mean(), signal.width and signal.width + beyond),
    )


def _of_discrete(
    view: View, data: Transitions, states: int, rng: np.random.Generator
) -> tuple[float, float | None]:
    """The mean values of taken and of all other actions, in distinct states."""
    assert isinstance(view.actions, gym.spaces.Discrete)
    rows = sampled(data, 20 * states, rng)  # more rows than states: which actions were taken?
    observed, count = take(data.observation, rows), int(view.actions.n)
    flat = np.concatenate(
        [np.asarray(part).reshape(len(rows), -1) for part in _parts(observed)], axis=1
    )
    indices = np.asarray(data.action)[rows].reshape(-1) - view.actions.start
    first, taken = visited_pairs(flat, indices, count)
    chosen = rng.permutation(len(first))[:states]
    at = take(observed, np.repeat(first[chosen], count))
    every = np.tile(np.arange(count) + view.actions.start, len(chosen))
    values = values_at(view.value, at, every, "the agent").reshape(-1, count)
    visited = taken[chosen]
    others = values[~visited]
    return float(values[visited].mean()), float(others.mean()) if others.size else None


def _parts(observed: object) -> list[np.ndarray]:
    return list(observed.values()) if isinstance(observed, dict) else [np.asarray(observed)]


def _near(space: gym.Space[object], action: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    assert isinstance(space, gym.spaces.Box)
    noise = NEARBY * (space.high - space.low) / 2 * rng.normal(size=action.shape)
    return np.clip(action + noise, space.low, space.high).astype(action.dtype)


def ends_of(
    view: View,
    data: Transitions | None,
    walked: Transitions | None,
    states: int,
    signal: Signal,
    rng: np.random.Generator,
) -> Ends | None:
    """The values of terminal transitions, of the first source that has any."""
    stored, lived = (None if one is None else int(one.rewards[1].sum()) for one in (data, walked))
    for source, part in (("data", data), ("episodes", walked)):
        if part is None or not np.any(part.terminated):
            continue
        ended = np.asarray(part.terminated, bool)
        settled = np.ones(len(part), bool) if part.settled is None else part.settled
        terminal, other = (_some(which & settled, states, rng) for which in (ended, ~ended))
        excess, ordinary = (_excess(view, view.value, part, rows) for rows in (terminal, other))
        return Ends(
            source=source,
            transitions=len(terminal),
            stored=stored,
            lived=lived,
            excess=excess,
            shrinking=_shrinking(view, part, terminal, excess),
            ordinary=ordinary,
            share=_ratio(excess, ordinary, 0.01 * signal.width),
            far=None if excess is None else _share(excess, signal.width),
        )
    return None


def _some(which: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Some of the rows that are marked, in their order."""
    return np.sort(rng.permutation(np.flatnonzero(which))[:count])


def _excess(view: View, value: QFunction, part: Transitions, rows: np.ndarray) -> float | None:
    """The mean of the values of rows minus their rewards; None without any."""
    if not rows.size:
        return None
    at, action = take(part.observation, rows), np.asarray(part.action)[rows]
    reward = view.trained.reward(np.asarray(part.reward)[rows], part.terminated[rows])
    values = values_at(value, at, action, "the agent")
    return float((values - np.asarray(reward)).mean())


def _shrinking(
    view: View, part: Transitions, rows: np.ndarray, excess: float | None
) -> float | None:
    """The share by which the excess of rows shrinks in a lifetime, by the earlier Q function."""
    felt, earlier = _lifetime(view), view.earlier
    if felt is None or earlier is None or earlier.updates < 1 or excess is None:
        return None
    before = _excess(view, earlier.value, part, rows)
    return (1 - abs(excess / before)) * felt / earlier.updates if before else None


def _ratio(excess: float | None, ordinary: float | None, least: float) -> float | None:
    """The one divided by the other; None if that is unknown or about 0."""
    if excess is None or ordinary is None or not 0 < least < abs(ordinary):
        return None
    return excess / ordinary


def start_of(view: View, firsts: object, possible: Bounds, rng: np.random.Generator) -> Start:
    """The values of a fresh network, and the lifetime of their offset."""
    initial = spread = None
    if view.fresh is not None:
        drawn = view.uniform(rows_in(firsts), rng)
        found = view.trained.to_primal(values_at(view.fresh, firsts, drawn, "a fresh network"))
        initial, spread = float(found.mean()), float(found.std())
    felt, left = _lifetime(view), None
    if view.target is not None and felt is not None:
        left = math.exp(-view.target.updates / felt)
    optimism = None if initial is None else possible.optimism(initial)
    return Start(initial, spread, optimism, felt, left)


def _lifetime(view: View) -> float | None:
    """The lifetime of an offset, in updates."""
    if view.target is None:
        return None
    return lifetime(view.gamma, view.target.tau, max(1, round(view.target.every)))


def members_of(
    view: View, data: Transitions, states: int, signal: Signal, rng: np.random.Generator
) -> Members | None:
    """The disagreement of members about the actions in the data and about random ones."""
    if view.members is None:
        return None
    rows = sampled(data, states, rng)
    at = take(data.observation, rows)
    seen = values_at(view.members, at, np.asarray(data.action)[rows], "a member")
    if len(seen) == 1:
        return None
    unseen = values_at(view.members, at, view.uniform(len(rows), rng), "a member")
    about, beyond = (float(values.std(axis=0).mean()) for values in (seen, unseen))
    return Members(len(seen), about, beyond, _share(about, signal.high - signal.low))


def motion_of(
    view: View, data: Transitions, states: int, rng: np.random.Generator
) -> Motion | None:
    """The change of values since the earlier Q function."""
    if view.earlier is None or view.earlier.updates < 1:
        return None
    rows = sampled(data, states, rng)
    at, action = take(data.observation, rows), np.asarray(data.action)[rows]
    now = values_at(view.value, at, action, "the agent")
    then = values_at(view.earlier.value, at, action, "the earlier agent")
    per_1000 = float(np.abs(now - then).mean() * 1000 / view.earlier.updates)
    if view.target is None:
        return Motion(per_1000, None, None)
    reward = np.asarray(view.trained.reward(*data.rewards))
    moves = 1000 * view.target.tau / view.target.every
    allowed = float(moves * np.abs(reward).max())
    return Motion(per_1000, allowed, _share(per_1000, allowed))


def sampled(data: Transitions, count: int, rng: np.random.Generator) -> np.ndarray:
    """Some rows, in their order."""
    size = min(count, len(data))
    return np.sort(rng.choice(len(data), size, replace=False, shuffle=False))


def _mean(view: View, observations: object, actions: np.ndarray) -> float:
    return float(values_at(view.value, observations, actions, "the agent").mean())


def _share(value: float, whole: float) -> float | None:
    return float(value / whole) if whole else None
