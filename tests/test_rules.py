"""The rules that choose a shift: their arithmetic, and the end of an episode at a goal."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_auto import FIRST, Paying

from rewardshift import Auto, InputError, Shift, ShiftReward

rewards = st.floats(-1e6, 1e6).filter(lambda reward: reward == 0 or abs(reward) > 1e-6)


@given(st.lists(rewards, max_size=8), st.floats(0.0, 0.99))
def test_the_first_reward_decides_and_no_other(seen: list[float], gamma: float) -> None:
    rule, size, several = FIRST, 0.0, jnp.zeros(3)
    for reward in seen:
        size = rule.observe(size, reward, False, gamma)
        several = rule.observe(
            several, jnp.asarray([0.0, reward, reward], jnp.float32), False, gamma
        )
    first = next((abs(reward) for reward in seen if reward), 0.0)
    assert size == first
    np.testing.assert_allclose(several, [0.0, first, first], rtol=1e-6)
    (shift,) = rule.shifts(size, gamma)
    assert shift == Shift(gamma - 1, 1 / first if first else 1.0, gamma, "goal")
    # A zero-initialised value stands for one such reward.
    assert shift.initial_value == pytest.approx(first or 1.0)


@given(rewards, st.floats(0.1, 10.0))
def test_a_unit_has_a_least_size(first: float, least: float) -> None:
    rule = Auto(1.0, least=least)
    (shift,) = rule.shifts(rule.observe(0.0, first, False, 0.5), 0.5)
    assert shift.initial_value == pytest.approx(max(abs(first), least))
    seen = rule.observe(jnp.zeros(2), jnp.asarray([0.0, first], jnp.float32), False, 0.5)
    (several,) = rule.shifts(seen, 0.5)
    np.testing.assert_allclose(several.scale, [1 / least, shift.scale], rtol=1e-6)


@given(st.lists(st.just(0.0), max_size=5), rewards.filter(bool), st.booleans())
def test_what_came_before_the_choice_needs_no_other_shift(
    zeros: list[float], first: float, terminated: bool
) -> None:
    rule = FIRST
    (before,), (after,) = (rule.shifts(size, 0.9) for size in (0.0, abs(first)))
    for reward in zeros:
        assert before.reward(reward, terminated) == after.reward(reward, terminated)


def test_a_goal_ends_the_shift_and_a_fall_does_not() -> None:
    for bias in (-0.5, 0.5):
        zero, absorbing, goal = (
            Shift(bias, 2.0, 0.9, terminal) for terminal in ("zero", "absorbing", "goal")
        )
        for kind in (float, np.float32, jnp.float32):
            for reward, same in ((kind(3), zero), (kind(0), absorbing), (kind(-3), absorbing)):
                assert goal.reward(reward, True) == same.reward(reward, True)
                assert goal.reward(reward, False) == zero.reward(reward)
        paid, ended = np.array([3.0, 0.0, -1.0, 3.0]), np.array([True, True, True, False])
        credited = np.array([False, True, True, False])
        expected = np.where(credited, absorbing.reward(paid, ended), zero.reward(paid))
        assert goal.reward(paid, ended).tolist() == expected.tolist()
    with pytest.raises(InputError, match="no multi-step return"):
        goal.multistep_return(1.0, 2)
    with pytest.raises(InputError, match="needs the discount"):
        ShiftReward(Paying(), Shift(-0.5, terminal="goal"))


def test_values_of_a_compiled_rule_follow_the_state() -> None:
    rule = FIRST

    @jax.jit
    def shifted(size: Any, reward: Any) -> Any:
        return rule.shifts(size, 0.5)[0].reward(reward, True)

    assert shifted(jnp.float32(0), jnp.float32(0)) == -1.0
    assert shifted(jnp.float32(4), jnp.float32(8)) == 1.5
