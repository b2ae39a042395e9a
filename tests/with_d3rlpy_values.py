"""Values of d3rlpy's agents on the primal scale; see `with_d3rlpy.py`."""

from pathlib import Path
from typing import Any

import d3rlpy
import numpy as np
import pytest
from d3rlpy.algos import CQLConfig, DiscreteDecisionTransformerConfig, DQNConfig
from d3rlpy.preprocessing import ConstantShiftRewardScaler, MultiplyRewardScaler
from d3rlpy_makers import (
    EVERY,
    EXACT,
    GAMMA,
    ZERO,
    empty_folder,  # noqa: F401  a fixture of every test
    fit,
    replay,
    train,
)

from rewardshift import Shift
from rewardshift.errors import InputError
from rewardshift.integrations.d3rlpy import from_d3rlpy, shift_dataset, to_d3rlpy


def both_ways(shift: Shift, *, ends: bool, scaler: bool) -> tuple[np.ndarray, np.ndarray]:
    """Primal values of training with a shift, and of training from another initial value."""
    raw = replay(ends=ends)
    agent = fit(raw, to_d3rlpy(shift)) if scaler else fit(shift_dataset(raw, shift))
    other = fit(raw, lower=shift.value_offset)
    return from_d3rlpy(agent, shift)(*EVERY), other.predict_value(*EVERY)


@pytest.mark.parametrize(
    ("terminal", "ends", "scaler"),
    [("absorbing", True, False), ("zero", False, False), ("zero", False, True)],
)
def test_a_shift_is_another_initial_value(terminal: Any, ends: bool, scaler: bool) -> None:
    ours, theirs = both_ways(Shift(-0.5, 1.0, GAMMA, terminal), ends=ends, scaler=scaler)
    assert np.ptp(theirs) > 0.3  # something was learned
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)


def test_with_zero_and_terminal_states_it_is_not() -> None:
    ours, theirs = both_ways(Shift(-0.5, 1.0, GAMMA), ends=True, scaler=True)
    assert np.abs(ours - theirs).max() > 0.5


def test_a_saved_agent_comes_back_with_its_scaler(tmp_path: Path) -> None:
    agent = fit(replay(), to_d3rlpy(ZERO), steps=10)
    agent.save(str(tmp_path / "agent.d3"))
    loaded = d3rlpy.load_learnable(str(tmp_path / "agent.d3"))
    assert loaded.reward_scaler == ConstantShiftRewardScaler(-0.5, 2.0, multiply_first=True)
    values = from_d3rlpy(loaded, Shift(-0.5, 2.0))(*EVERY)  # the discount is the agent's
    np.testing.assert_array_equal(values, from_d3rlpy(agent, ZERO)(*EVERY))
    np.testing.assert_allclose(values, (agent.predict_value(*EVERY) + 5.0) / 2.0, atol=1e-5)


def test_values_of_continuous_actions() -> None:
    rng = np.random.default_rng(0)
    observations, actions = rng.normal(size=(2, 40, 3)).astype(np.float32)
    dataset = d3rlpy.dataset.MDPDataset(
        observations, actions, rng.normal(size=40), np.arange(40) % 10 == 9
    )
    agent = CQLConfig(batch_size=4, gamma=GAMMA, reward_scaler=to_d3rlpy(ZERO)).create()
    train(agent, dataset, 2)
    values = from_d3rlpy(agent, ZERO)(observations, actions)
    np.testing.assert_allclose(
        ZERO.from_primal(values), agent.predict_value(observations, actions), atol=1e-5
    )


@pytest.mark.parametrize(
    ("config", "shift", "match"),
    [
        (DQNConfig(gamma=0.99), ZERO, r"gamma=0.99, but the shift is Shift\(bias=-0.5"),
        (DQNConfig(gamma=GAMMA, reward_scaler=to_d3rlpy(1.0)), ZERO, "trained with .*1.0"),
        (DQNConfig(gamma=GAMMA, reward_scaler=MultiplyRewardScaler(2.0)), ZERO, "trained with"),
        (DQNConfig(gamma=GAMMA, reward_scaler=to_d3rlpy(ZERO)), EXACT, "terminal"),
        (DiscreteDecisionTransformerConfig(), -0.5, "with a Q function"),
    ],
)
def test_values_that_would_be_wrong_are_refused(config: Any, shift: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        from_d3rlpy(config.create(), shift)
