"""The figure of how long a shift lasts: a table shows the law, a tiny network gives the curves."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift import lifetime
from rewardshift.lab import FIGURES, Budget, Curve, Unit
from rewardshift.paper.lifetime import fitted_lifetime, run_lifetime
from rewardshift.shift import Shift


@given(
    st.floats(0.5, 0.99), st.floats(0.01, 1.0), st.integers(1, 4), st.floats(-2, 2), st.booleans()
)
def test_a_value_that_follows_its_target_forgets_as_predicted(
    gamma: float, tau: float, every: int, bias: float, negative: bool
) -> None:
    """One state that leads to itself: its value is its target at every update."""
    shift, updates = Shift(-bias if negative else bias, gamma=gamma), 12 * every
    left, target = [], np.zeros(2)  # with and without the shift
    for update in range(updates):
        online = np.array([shift.reward(1.0), 1.0]) + gamma * target
        if (update + 1) % every == 0:
            target += tau * (online - target)
            left.append(float(shift.to_primal(target[0]) - target[1]))
    ratio = 1 - tau * (1 - gamma)
    expected = float(shift.initial_value) * ratio ** np.arange(1, len(left) + 1)
    np.testing.assert_allclose(left, expected, rtol=1e-6, atol=1e-9)
    # The lifetime is the first order of the same law.
    assert every / -np.log(ratio) == pytest.approx(lifetime(gamma, tau, every), rel=tau + 0.01)


@given(st.floats(50, 2000), st.floats(0.5, 2.0))
def test_a_fit_finds_the_lifetime_of_an_exponential(lifetime: float, start: float) -> None:
    steps = [round(lifetime * part / 4) for part in range(1, 17)]
    left = start * np.exp(-np.array(steps) / lifetime)
    spoilt = np.where(
        np.array(steps) <= 2 * lifetime, left, -1.0
    )  # what comes later does not count
    for values in (left, spoilt):
        curve = Curve("panel", "negative", 0, steps, values.tolist())
        assert fitted_lifetime(curve, round(2 * lifetime)) == pytest.approx(lifetime)


def test_the_figure_measures_the_share_that_is_left(tmp_path: Path) -> None:
    figure = FIGURES["lifetime"]
    budget = Budget(400, evaluations=4, evaluation_episodes=1, transitions=100)
    curves = run_lifetime(figure, Unit(("DQN",), (), (5, 6), budget, "zero"), tmp_path)
    assert {(curve.panel, curve.method, curve.seed) for curve in curves} == {
        ("DQN", method, seed) for method in ("predicted", "negative", "positive") for seed in (5, 6)
    }
    for curve in curves:
        assert list(curve.steps) == [100, 200, 300, 400]
        values = jnp.asarray(curve.values)
        assert values[0] > 0.7
        assert values[-1] < values[0]
        if curve.method == "predicted":
            assert curve.values[-1] == pytest.approx(np.exp(-1))
