"""Constants as rows: each learns as its agent does alone; and the means of a response."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from test_sweep import BUDGET, TINY

from rewardshift import DQN, RND, TD3, Shift, train
from rewardshift.report.statistics import mean_interval
from rewardshift.training.runs import online_run


@pytest.mark.parametrize(
    ("agent", "env"),
    [
        (DQN(**TINY), "CartPole-v1"),
        (
            DQN(shift=Shift(0.0, 0.5, terminal="absorbing"), n_step=3, double=True, **TINY),
            "CartPole-v1",
        ),
        (DQN(intrinsic=RND(-1.0, width=8), **TINY), "CartPole-v1"),
        (DQN(reward_range=(0.0, 1.0), **TINY), "CartPole-v1"),
        (TD3(warm_up=20, **TINY), "Pendulum-v1"),
    ],
    ids=["dqn", "absorbing-n-step", "rnd", "bounded", "td3"],
)
def test_a_row_learns_as_its_agent_does_alone(agent: Any, env: str) -> None:
    biases, seeds = (0.0, -0.5), (0, 3)
    together = online_run(agent, env, seeds, BUDGET, biases=biases).start(None).rows
    for place, bias in enumerate(biases):
        one = replace(agent, shift=replace(agent.members[0], bias=bias))
        alone = train(one, env, seeds=seeds, budget=BUDGET).rows
        found = [row for number, row in enumerate(together) if number // 2 % 2 == place]
        assert [(row.seed, row.step) for row in found] == [(row.seed, row.step) for row in alone]
        for ours, theirs in zip(found, alone, strict=True):
            assert ours.evaluation_return == pytest.approx(theirs.evaluation_return, rel=1e-4)
            assert ours.metrics == pytest.approx(theirs.metrics, rel=1e-3, abs=1e-5)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12))
def test_the_interval_of_a_mean_is_students(scores: list[float]) -> None:
    found = mean_interval(np.array(scores))
    if np.ptp(scores) > 1e-6:
        theirs = scipy.stats.ttest_1samp(scores, 0).confidence_interval(0.95)
        assert (found.low, found.high) == pytest.approx(tuple(theirs))
    assert found.mean == pytest.approx(np.mean(scores))
    assert mean_interval(np.array(scores[:1])).low is None
