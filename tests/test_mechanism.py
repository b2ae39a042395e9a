"""The offline argument without constraints: its data, and where its values begin."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rewardshift.lab.trainings import agent_for
from rewardshift.paper.behaviour import CONTROLLERS, Behaviour
from rewardshift.paper.mechanism import GAMMA, OFFLINE_MECHANISM, OPTIMISM, SETTINGS


@pytest.mark.parametrize("env", CONTROLLERS)
def test_data_are_the_same_for_the_same_seed(env: str) -> None:
    behaviour = Behaviour(env, 0.5)
    first, again, other = (behaviour(60, seed) for seed in (3, 3, 4))
    assert first.digest == again.digest != other.digest
    assert len(first) == 60
    assert first.terminated[-1] or first.truncated[-1]


@pytest.mark.parametrize(
    ("env", "good"), [("CartPole-v1", 450), ("MountainCar-v0", -130), ("Pendulum-v1", -400)]
)
def test_a_controller_solves_its_task_and_randomness_undoes_it(env: str, good: float) -> None:
    solved = np.mean([Behaviour(env, 0.0)(600, seed).returns[0] for seed in range(3)])
    spoilt = np.mean([Behaviour(env, 1.0)(600, seed).returns[0] for seed in range(3)])
    assert solved > good > spoilt


@pytest.mark.parametrize(("name", "env", "_agent", "rewards", "_shares"), SETTINGS)
def test_values_begin_where_the_method_says(
    name: str, env: str, _agent: Any, rewards: tuple[float, float], _shares: Any
) -> None:
    low, high = (reward / (1 - GAMMA) for reward in rewards)
    quick = OFFLINE_MECHANISM.presets["quick"].budget
    for task_name, task in OFFLINE_MECHANISM.tasks.items():
        if not task_name.startswith(f"{name}-"):
            continue
        for optimism, method in zip(OPTIMISM, OFFLINE_MECHANISM.methods, strict=True):
            (shift,) = agent_for(method, task, quick[task_name]).members
            assert replace(shift, gamma=GAMMA).optimism(low, high) == pytest.approx(optimism)
            assert shift.terminal == ("absorbing" if task_name.endswith("absorbing") else "zero")
        assert quick[task_name].steps == (8000 if name == "Pendulum" else 4000)
