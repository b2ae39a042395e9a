"""Constants as rows: each learns as its agent does alone; optimism as a constant, and means."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from test_sweep import BUDGET, TINY

from rewardshift import DQN, RND, TD3, Shift, train
from rewardshift.experiments.constants import biases_of
from rewardshift.experiments.rows import rows_run, train_rows
from rewardshift.report.statistics import mean_interval


@pytest.mark.parametrize(
    ("agent", "env"),
    [
        (DQN(**TINY), "CartPole-v1"),
        (
            DQN(shift=Shift(0.0, 0.5, terminal="absorbing"), n_step=3, double=True, **TINY),
            "CartPole-v1",
        ),
        (DQN(intrinsic=RND(-1.0, width=8), **TINY), "CartPole-v1"),
        (TD3(warm_up=20, **TINY), "Pendulum-v1"),
    ],
    ids=["dqn", "absorbing-n-step", "rnd", "td3"],
)
def test_a_row_learns_as_its_agent_does_alone(agent: Any, env: str) -> None:
    shifts = [replace(agent.members[0], bias=bias) for bias in (0.0, -0.5)]
    agents = [replace(agent, shift=shift) for shift in shifts]
    together = train_rows(rows_run(agents, env, (0, 3), BUDGET), None)
    for one, found in zip(agents, together, strict=True):
        alone = train(one, env, seeds=(0, 3), budget=BUDGET)
        assert [(row.seed, row.step) for row in found.rows] == [
            (row.seed, row.step) for row in alone.rows
        ]
        for ours, theirs in zip(found.rows, alone.rows, strict=True):
            assert ours.evaluation_return == pytest.approx(theirs.evaluation_return, rel=1e-4)
            assert ours.metrics == pytest.approx(theirs.metrics, rel=1e-3, abs=1e-5)


@given(
    places=st.lists(st.floats(-5, 5), min_size=1, max_size=4),
    low=st.floats(-100, 100),
    width=st.floats(0.1, 100),
    gamma=st.floats(0, 0.99),
    scale=st.floats(0.1, 10),
)
def test_a_bias_has_the_wanted_optimism(
    places: list[float], low: float, width: float, gamma: float, scale: float
) -> None:
    shift, values = Shift(0.0, scale, gamma), (low, low + width)
    for place, bias in zip(places, biases_of(places, values, shift), strict=True):
        found = replace(shift, bias=bias).optimism(*values)
        assert found == pytest.approx(place, abs=1e-5 * (1 + (abs(low) + 6 * width) / width))


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12))
def test_the_interval_of_a_mean_is_students(scores: list[float]) -> None:
    found = mean_interval(np.array(scores))
    if np.ptp(scores) > 1e-6:
        theirs = scipy.stats.ttest_1samp(scores, 0).confidence_interval(0.95)
        assert (found.low, found.high) == pytest.approx(tuple(theirs))
    assert found.mean == pytest.approx(np.mean(scores))
    assert mean_interval(np.array(scores[:1])).low is None
