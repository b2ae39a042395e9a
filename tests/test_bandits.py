"""Selections that learn: laws of their rules, and runs that use them."""

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from probes import Probe
from test_td3_runs import AIM, stopped_and_resumed

from rewardshift import DQN, MLP, SAC, TD3, InputError, OnlineBudget, train
from rewardshift.agents.bandits import ExponentialWeights, SlidingUCB
from rewardshift.agents.selection import (
    SELECTIONS,
    Drawing,
    Learning,
    Mixing,
    first_lead,
    next_lead,
)

TINY: dict[str, Any] = {"network": MLP((4,)), "batch_size": 4, "lead_steps": 0}
CORRIDOR = partial(Probe, 3, pays=(1.0, 0.0))
LEARNING: list[Any] = [ExponentialWeights(), SlidingUCB()]
by_name = pytest.mark.parametrize("selection", LEARNING, ids=lambda s: type(s).__name__)
EPISODES, MEMBERS = 12, 3
episodes = st.lists(
    st.tuples(st.integers(0, MEMBERS - 1), st.floats(-1e4, 1e4, width=16)),
    min_size=EPISODES,
    max_size=EPISODES,
)


@partial(jax.jit, static_argnums=(0, 3))
def taught(selection: Any, leaders: Any, returns: Any, members: int = MEMBERS) -> Any:
    """The weights or bounds of the members after episodes that they led."""

    def episode(memory: Any, now: Any) -> Any:
        return selection.learn(memory, *now), None

    memory, _ = jax.lax.scan(episode, selection.start(members), (leaders, returns))
    rule = selection.chances if isinstance(selection, ExponentialWeights) else selection.bounds
    return rule(memory)


@partial(jax.jit, static_argnums=0)
def leaders_over(selection: Any, returns: Any, draws: Any) -> Any:
    """Who leads each of the episodes, whose returns are given for every member."""
    lead = first_lead(selection, returns.shape[1], draws[0])

    def episode(lead: Any, now: Any) -> Any:
        paid, draw = now
        ended = (jnp.asarray(True), paid[lead.leader])
        return next_lead(lead, selection, draw, ended, (1, 0)), lead.leader

    return jax.lax.scan(episode, lead, (returns, draws))[1]


def simulated(selection: Any, means: Any, seed: int, noise: float = 0.3) -> np.ndarray:
    """The leaders of episodes with random returns around the mean of each member, by episode."""
    generator = np.random.default_rng(seed)
    returns = generator.normal(means, noise).astype(np.float32)
    return np.asarray(leaders_over(selection, returns, generator.random(len(returns), np.float32)))


def split(told: list[tuple[int, float]]) -> tuple[Any, Any]:
    leaders, returns = zip(*told, strict=True)
    return np.array(leaders, np.int32), np.array(returns, np.float32)


@given(episodes)
@settings(max_examples=60, deadline=None)
def test_exponential_weights_are_probabilities(told: list[tuple[int, float]]) -> None:
    weights = taught(ExponentialWeights(), *split(told))
    assert weights.sum() == pytest.approx(1.0, abs=1e-5)
    assert (weights >= 0).all()


@by_name
@given(told=episodes, order=st.permutations(range(MEMBERS)))
@settings(max_examples=40, deadline=None)
def test_members_are_only_names(
    selection: Any, told: list[tuple[int, float]], order: list[int]
) -> None:
    leaders, returns = split(told)
    renamed = taught(selection, np.array(order, np.int32)[leaders], returns)
    np.testing.assert_allclose(
        renamed[np.array(order)], taught(selection, leaders, returns), rtol=1e-4, atol=1e-5
    )


@by_name
@given(told=episodes, power=st.integers(-20, 20))
@settings(max_examples=40, deadline=None)
def test_the_unit_of_returns_does_not_matter(
    selection: Any, told: list[tuple[int, float]], power: int
) -> None:
    leaders, returns = split(told)
    scaled = taught(selection, leaders, np.float32(2.0**power) * returns)
    np.testing.assert_allclose(scaled, taught(selection, leaders, returns), rtol=1e-4, atol=1e-5)


@given(
    returns=st.lists(st.floats(-1e4, 1e4, width=16), min_size=5, max_size=5),
    seed=st.integers(0, 99),
    selection=st.sampled_from([SlidingUCB(), SlidingUCB(window=1), SlidingUCB(0.0)]),
)
@settings(max_examples=60, deadline=None)
def test_ucb_tries_every_member_once_before_any_twice(
    returns: list[float], seed: int, selection: SlidingUCB
) -> None:
    paid = np.tile(np.array(returns, np.float32)[:, None], 5)
    draws = np.random.default_rng(seed).random(5, np.float32)
    assert sorted(leaders_over(selection, paid, draws).tolist()) == [0, 1, 2, 3, 4]


def test_the_bound_is_that_of_sliding_window_ucb() -> None:
    """Seven episodes, of which the last five count."""
    leaders = np.array([2, 2, 0, 1, 0, 1, 0], np.int32)
    returns = np.array([9.0, 9.0, 1.0, 4.0, 2.0, 5.0, 6.0], np.float32)
    spread = np.std(returns[2:])
    first = 3.0 / spread + 2 * np.sqrt(np.log(5) / 3)
    second = 4.5 / spread + 2 * np.sqrt(np.log(5) / 2)
    bounds = taught(SlidingUCB(2.0, 5), leaders, returns)
    assert bounds[2] == np.inf
    assert bounds[1] - bounds[0] == pytest.approx(second - first, rel=1e-5)


def test_the_feedback_is_the_standardised_improvement() -> None:
    leaders = np.array([0, 1, 2], np.int32)
    returns = np.array([5.0, 7.0, 6.0], np.float32)  # improvements 2 and -1: -1 deviation
    chances = taught(ExponentialWeights(0.1, 0.9, 5, 0.3), leaders, returns)
    weights = np.exp([0.0, 0.0, -0.1 * 3])  # divided by the probability, a third
    np.testing.assert_allclose(chances, 0.7 * weights / weights.sum() + 0.1, rtol=1e-5)


@by_name
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_a_member_that_brings_more_leads_most_often(selection: Any, scale: float) -> None:
    means = np.tile(scale * np.array([0.0, 1.0, 0.5]), (1000, 1))
    for seed in range(3):
        shares = np.bincount(simulated(selection, means, seed, 0.3 * scale), minlength=3) / 1000
        assert shares.argmax() == 1
        assert shares.min() > 0.02  # nobody is given up


@by_name
def test_what_is_learned_is_forgotten(selection: Any) -> None:
    """The best member changes after half of the episodes."""
    means = np.repeat([[0.0, 1.0], [1.0, 0.0]], 500, axis=0)
    leaders = simulated(selection, means, 0)
    assert np.bincount(leaders[:500]).argmax() == 1
    assert np.bincount(leaders[600:]).argmax() == 0


@by_name
def test_equal_returns_let_everyone_lead(selection: Any) -> None:
    leaders = simulated(selection, np.full((900, 3), 0.1), 0, noise=0.0)
    np.testing.assert_allclose(np.bincount(leaders) / 900, 1 / 3, atol=0.05)


def test_nothing_is_learned_within_an_episode() -> None:
    for selection in LEARNING:
        lead = first_lead(selection, 2, jnp.asarray(0.7))
        inside = (jnp.asarray(False), jnp.asarray(3.0))
        kept = next_lead(lead, selection, jnp.asarray(0.1), inside, (1, 0))
        jax.tree.map(np.testing.assert_array_equal, kept.memory, lead.memory)
        assert kept.leader == lead.leader


@pytest.mark.parametrize(
    ("agent", "env"),
    [
        (DQN(shift=(-0.5, 0.0, 0.5), selection=SlidingUCB(), **TINY), CORRIDOR),
        (TD3(shift=(-0.5, 0.5), selection=ExponentialWeights(), warm_up=30, **TINY), AIM),
        (SAC(shift=(-0.5, 0.5), selection=SlidingUCB(), warm_up=30, **TINY), AIM),
    ],
    ids=["DQN", "TD3", "SAC"],
)
def test_a_stopped_run_ends_the_same(agent: Any, env: Any, tmp_path: Path) -> None:
    memory = stopped_and_resumed(agent, tmp_path, env).state.lead.memory
    start = agent.selection.start(len(agent.members))
    assert any(
        not np.array_equal(now[0], before, equal_nan=True)
        for now, before in zip(jax.tree.leaves(memory), jax.tree.leaves(start), strict=True)
    )


def test_seeds_choose_apart() -> None:
    budget = OnlineBudget(steps=60, evaluate_every=60, evaluation_episodes=1)
    agent = DQN(shift=(-0.5, 0.0, 0.5), selection=ExponentialWeights(), **TINY)
    both = train(agent, CORRIDOR, budget=budget, seeds=(1, 2))
    alone = train(agent, CORRIDOR, budget=budget, seeds=(2,))
    leads = [jax.tree.map(lambda leaf: leaf[-1], run.state.lead) for run in (both, alone)]
    jax.tree.map(np.testing.assert_array_equal, *leads)


def test_a_selection_follows_one_protocol() -> None:
    learning = {name for name, kind in SELECTIONS.items() if isinstance(kind(), Learning)}
    assert learning == {"exponential-weights", "sliding-ucb"}
    for kind in SELECTIONS.values():
        assert sum(isinstance(kind(), one) for one in (Drawing, Learning, Mixing)) == 1


@pytest.mark.parametrize(
    ("kind", "changes", "match"),
    [
        (ExponentialWeights, {"rate": 0.0}, "rate must be finite and above 0"),
        (ExponentialWeights, {"decay": 1.5}, "decay must be in"),
        (ExponentialWeights, {"window": 0}, "window must be a whole number of 1 or more"),
        (SlidingUCB, {"width": -1.0}, "width must be finite and 0 or more"),
        (SlidingUCB, {"window": 0}, "window must be a whole number of 1 or more"),
    ],
)
def test_bad_numbers_are_refused(kind: Any, changes: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        kind(**changes)


@given(st.integers(0, 2**31 - 1), st.sampled_from([2, 3, 10]), st.booleans())
@settings(max_examples=20, deadline=None)
def test_a_member_that_leads_for_many_episodes_breaks_nothing(
    seed: int, members: int, falling: bool
) -> None:
    """Every chance stays a share, and no member loses its own, however long another one leads."""
    rng = np.random.default_rng(seed)
    returns = -(np.arange(200.0) ** 2) if falling else np.cumsum(rng.normal(size=200))
    leaders = np.repeat(rng.integers(members, size=10), 20)
    chances = np.asarray(taught(ExponentialWeights(), leaders, returns.astype("f4"), members))
    assert chances.sum() == pytest.approx(1, abs=1e-5)
    assert (chances >= 0.099 / members).all()
