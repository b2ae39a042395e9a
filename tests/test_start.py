"""Where the networks of a run begin: told after the first evaluation, without a trace in it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_makers import random_data, save_npz
from probes import Aim, Probe, stop_at

from rewardshift import DQN, MLP, RND, SAC, TD3, Auto, OnlineBudget, train, train_offline
from rewardshift.training.doctor import doctor
from rewardshift.training.initial_values import START, read_initial_values
from rewardshift.training.offline import OfflineBudget

TINY: dict[str, Any] = {"network": MLP((8,)), "batch_size": 8, "gamma": 0.9}
ZERO = DQN(shift=(-0.5, 0.5), initial="zero", **TINY)
BUDGET = OnlineBudget(steps=90, evaluate_every=60, evaluation_episodes=1, checkpoint_every=40)


def corridor() -> Probe:
    return Probe(3, pays=(1.0, 2.0))


def aim() -> Aim:
    return Aim(3, goal=0.0)


def unpaid() -> Probe:
    return Probe(3, pays=(0.0, 0.0))


def start_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / START).read_text())


def test_networks_at_zero_begin_where_their_shifts_say(tmp_path: Path) -> None:
    train(ZERO, corridor, seeds=2, budget=BUDGET, folder=tmp_path / "run")
    start = start_of(tmp_path / "run")
    assert (start["step"], start["spread"], start["possible"]) == (60, [0.0, 0.0], [0.0, 2.0])
    np.testing.assert_allclose(start["initial"], [5.0, -5.0], rtol=1e-5)
    np.testing.assert_allclose(start["optimism"], [2.5, -2.5], rtol=1e-5)
    assert read_initial_values(tmp_path / "run") == (
        "The networks begin at 5 (spread 0) and -5 (spread 0). With the rewards so far, values can"
        " lie between 0 and 2: optimism 2.5 and -2.5."
    )


def test_it_is_the_doctors_number(tmp_path: Path) -> None:
    """At zero: the doctor looks at first states, and a run at all that it has seen."""
    agent = replace(ZERO, shift=-0.5)
    train(agent, corridor, budget=BUDGET, folder=tmp_path / "run")
    start, found = start_of(tmp_path / "run"), doctor(tmp_path / "run", env=corridor).start
    assert start["initial"] == pytest.approx([found.initial])
    assert start["optimism"] == pytest.approx([found.optimism])


@pytest.mark.parametrize(
    ("agent", "env"),
    [
        (DQN(shift="auto", normalise=True, **TINY), corridor),
        (TD3(shift=(-0.5, 0.5), warm_up=20, **TINY), aim),
        (SAC(warm_up=20, **TINY), aim),
    ],
)
def test_a_training_is_the_same_with_it(agent: Any, env: Any, tmp_path: Path) -> None:
    beside = train(agent, env, seeds=2, budget=BUDGET)  # nothing is told without a folder
    result = train(agent, env, seeds=2, budget=BUDGET, folder=tmp_path / "run")
    assert result.rows == beside.rows
    start = start_of(tmp_path / "run")
    assert np.isfinite([*start["initial"], *start["spread"]]).all()
    assert len(start["initial"]) == len(agent.members)


@pytest.mark.parametrize("at", [50, 59, 61, 85])
def test_an_interrupted_run_tells_the_same(at: int, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    agent = DQN(shift=Auto(), **TINY)
    train(agent, corridor, budget=BUDGET, folder=whole)
    assert not train(
        agent, corridor, budget=BUDGET, folder=broken, on_progress=stop_at(at)
    ).finished
    assert train(agent, corridor, budget=BUDGET, folder=broken).finished
    assert (broken / START).read_bytes() == (whole / START).read_bytes()


def test_without_rewards_it_says_so(tmp_path: Path) -> None:
    train(replace(ZERO, shift="auto"), unpaid, budget=BUDGET, folder=tmp_path / "run")
    told = "The networks begin at 5 (spread 0). With the rewards so far, every value is 0."
    assert read_initial_values(tmp_path / "run") == told


def test_an_intrinsic_reward_has_no_known_range(tmp_path: Path) -> None:
    agent = DQN(intrinsic=RND(width=8), **TINY)
    assert train(agent, corridor, budget=BUDGET, folder=tmp_path / "run").finished
    assert read_initial_values(tmp_path / "run") is None


def test_offline_the_range_is_that_of_the_data(tmp_path: Path) -> None:
    file = save_npz(tmp_path / "random.npz", random_data(corridor, 30))
    budget = OfflineBudget(updates=4, evaluate_every=2, evaluation_episodes=1)
    agent = replace(ZERO, shift=-0.5)
    train_offline(agent, file, corridor, budget=budget, folder=tmp_path / "run")
    start = start_of(tmp_path / "run")
    assert (start["step"], start["possible"]) == (2, [0.0, 2.0])
    assert start["initial"] == pytest.approx([5.0])
