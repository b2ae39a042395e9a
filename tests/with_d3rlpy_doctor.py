"""The doctor for algorithms of d3rlpy; see `with_d3rlpy.py`."""

from typing import Any

import d3rlpy
import gymnasium as gym
import numpy as np
import pytest
from d3rlpy.algos import DiscreteDecisionTransformerConfig, DQNConfig, TD3Config
from d3rlpy.preprocessing import ClipRewardScaler
from d3rlpy_makers import (
    EVERY,
    GAMMA,
    STATES,
    ZERO,
    empty_folder,  # noqa: F401  a fixture of every test
    fit,
    replay,
    train,
)

from rewardshift import Shift
from rewardshift.errors import InputError
from rewardshift.integrations.d3rlpy import shift_dataset, to_d3rlpy
from rewardshift.integrations.d3rlpy_doctor import doctor, evaluators


class FourStates(gym.Env[np.ndarray, Any]):
    """Walks through four states, each of which pays 1, and terminates."""

    observation_space = gym.spaces.Box(0, 1, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, Any]:
        super().reset(seed=seed)
        self.at = 0
        return STATES[0], {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.at += 1
        return STATES[min(self.at, 3)], 1.0, self.at == 4, False, {}


def test_values_of_the_data_on_the_scale_of_the_scaler() -> None:
    raw = replay()
    agent = fit(raw, to_d3rlpy(ZERO), steps=50)
    found = doctor(agent, raw)
    assert found.belief is not None
    assert found.belief.source == "data"
    assert (found.shift.bias, found.shift.scale, found.shift.gamma) == (-0.5, 2.0, GAMMA)
    assert found.signal.transitions == raw.transition_count
    assert found.ends is not None
    assert found.start.lifetime == pytest.approx(100)
    assert found.start.left == pytest.approx(np.exp(-0.5))
    assert found.untried is not None


@pytest.mark.parametrize("terminal", ["absorbing", "goal"])
def test_a_shifted_data_set_is_read_on_the_primal_scale(terminal: Any) -> None:
    raw, shift = replay(), Shift(-0.5, 2.0, GAMMA, terminal)
    plain = doctor(fit(raw, steps=20), raw).signal
    shifted = doctor(fit(shift_dataset(raw, shift), steps=20), shift_dataset(raw, shift))
    assert shifted.shift == shift
    assert shifted.signal.low == pytest.approx(plain.low, abs=1e-5)
    assert shifted.signal.high == pytest.approx(plain.high, abs=1e-5)


def test_episodes_in_an_environment() -> None:
    agent = fit(replay(), steps=10)
    found = doctor(agent, replay(), FourStates(), episodes=2)
    assert found.belief is not None
    assert (found.belief.source, len(found.belief.points)) == ("episodes", 8)
    returns = [sum(GAMMA**k for k in range(left)) for left in (4, 3, 2, 1)]
    assert found.belief.followed == pytest.approx(np.mean(returns))


def test_continuous_actions() -> None:
    rng = np.random.default_rng(0)
    observations, actions = rng.uniform(-1, 1, size=(2, 40, 3)).astype(np.float32)
    dataset = d3rlpy.dataset.MDPDataset(
        observations, actions, rng.normal(size=40), np.arange(40) % 10 == 9
    )
    agent = TD3Config(batch_size=4, gamma=GAMMA).create()
    train(agent, dataset, 4)
    untried = doctor(agent, dataset).untried
    assert untried is not None
    assert untried.unseen is not None


def test_fit_goes_on_with_the_same_bits_and_logs_numbers() -> None:
    def values(seen: bool) -> tuple[np.ndarray, Any]:
        d3rlpy.seed(5)
        raw = replay()
        agent = DQNConfig(batch_size=8, gamma=GAMMA).create()
        history = agent.fit(
            raw,
            n_steps=20,
            n_steps_per_epoch=10,
            show_progress=False,
            evaluators=evaluators(FourStates(), episodes=1) if seen else {},
        )
        return agent.predict_value(*EVERY), history

    alone, _ = values(False)
    seen, history = values(True)
    np.testing.assert_array_equal(alone, seen)
    for _, numbers in history:
        assert np.isfinite(numbers["doctor_belief_overestimation"])
        assert np.isfinite(numbers["doctor_untried_pull"])
        assert np.isnan(numbers["doctor_untried_advantage"])  # every action was taken


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: doctor(DQNConfig().create(), replay()), "no networks yet"),
        (lambda: doctor(DiscreteDecisionTransformerConfig().create(), replay()), "a Q function"),
        (lambda: doctor(fit(replay(), steps=1), EVERY), "needs the data set"),
        (lambda: doctor(fit(replay(), steps=1), replay(), gym.make("Pendulum-v1")), "not fit"),
        (lambda: evaluators(numbers=["belief/beauty"]), "no number 'belief/beauty'; there are"),
        (
            lambda: doctor(fit(replay(), ClipRewardScaler(-0.1, 0.1), steps=1), replay()),
            "is not a shift",
        ),
    ],
)
def test_what_cannot_be_diagnosed_is_refused(call: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        call()
