"""The rules that choose a shift: their arithmetic, and the end of an episode at a goal."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_auto import Paying

from rewardshift import Auto, InputError, Shift, ShiftReward
from rewardshift.auto import Seen

rewards = st.floats(-1e6, 1e6).filter(lambda reward: reward == 0 or abs(reward) > 1e-6)


@given(st.lists(st.tuples(rewards, rewards, st.booleans()), min_size=1, max_size=8))
def test_seeds_side_by_side_choose_as_each_alone(steps: list[tuple[float, float, bool]]) -> None:
    rule = Auto(1.0)
    both, alone = jax.tree.map(jnp.float32, rule.start()), [rule.start()] * 2
    for *paid, ended in steps:
        both = rule.observe(both, jnp.asarray(paid, jnp.float32), ended, 0.9)
        alone = [
            rule.observe(state, reward, ended, 0.9)
            for state, reward in zip(alone, paid, strict=True)
        ]
    together = rule.shift_at(both, 0.9)
    for seed, state in enumerate(alone):
        shift = rule.shift_at(state, 0.9)
        bias, scale = np.broadcast_to(together.bias, 2), np.broadcast_to(together.scale, 2)
        np.testing.assert_allclose((bias[seed], scale[seed]), (shift.bias, shift.scale), rtol=1e-5)


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
    rule = Auto(1.0)

    @jax.jit
    def shifted(state: Any, reward: Any) -> Any:
        return rule.shift_at(state, 0.5).reward(reward, True)

    free, paid = Seen(0.0, 0.0, 1.0), Seen(4.0, 1.0, 1.0)
    assert shifted(free, jnp.float32(0)) == -1.0
    assert shifted(paid, jnp.float32(8)) == 1.5
