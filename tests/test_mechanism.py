"""The offline argument without constraints: its data, and where its values begin."""

from dataclasses import replace

import numpy as np
import pytest

from rewardshift.paper.behaviour import CONTROLLERS, Behaviour
from rewardshift.paper.mechanism import GAMMA, OPTIMISM, TASKS, MechanismBudget


@pytest.mark.parametrize("env", CONTROLLERS)
def test_data_are_the_same_for_the_same_seed(env: str) -> None:
    behaviour = Behaviour(env, 0.5)
    first, again, other = (behaviour.record(60, seed) for seed in (3, 3, 4))
    assert first.digest == again.digest != other.digest
    assert len(first) == 60
    assert first.terminated[-1] or first.truncated[-1]


@pytest.mark.parametrize(
    ("env", "good"), [("CartPole-v1", 450), ("MountainCar-v0", -130), ("Pendulum-v1", -400)]
)
def test_a_controller_solves_its_task_and_randomness_undoes_it(env: str, good: float) -> None:
    solved = np.mean([Behaviour(env, 0.0).record(600, seed).returns[0] for seed in range(3)])
    spoilt = np.mean([Behaviour(env, 1.0).record(600, seed).returns[0] for seed in range(3)])
    assert solved > good > spoilt


@pytest.mark.parametrize("name", TASKS)
def test_values_begin_where_the_method_says(name: str) -> None:
    task = TASKS[name]
    low, high = (reward / (1 - GAMMA) for reward in task.reward_range)
    for optimism in OPTIMISM:
        agent = task.configure(optimism)
        (shift,) = agent.members
        assert replace(shift, gamma=GAMMA).optimism(low, high) == pytest.approx(optimism)
        assert shift.terminal == ("absorbing" if name.endswith("absorbing") else "zero")
    assert MechanismBudget().offline(agent).updates == (8000 if "Pendulum" in name else 4000)
