"""The arithmetic: the same on every kind of number, in the dtype that came in."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import equinox as eqx
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import assume, given

from rewardshift import Shift
from rewardshift.errors import InputError
from rewardshift.shift import as_shift

biases = st.floats(-100, 100)
scales = st.floats(0.01, 100)
gammas = st.floats(0, 0.999)
absorbing = Shift(-0.5, scale=2.0, gamma=0.9, terminal="absorbing")
zero = dataclasses.replace(absorbing, terminal="zero")

CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "numpy32": lambda x: np.asarray(x, np.float32),
    "numpy64": lambda x: np.asarray(x, np.float64),
    "jax": lambda x: jnp.asarray(x, jnp.float32),
    "torch": lambda x: torch.tensor(x, dtype=torch.float32),
}


def test_a_reward_is_scaled_and_moved() -> None:
    assert zero.reward(3.0) == 5.5
    assert zero.reward(3.0, terminated=True) == 5.5
    assert absorbing.reward(3.0) == 5.5


def test_absorbing_credits_what_an_absorbing_state_would_have_paid() -> None:
    assert absorbing.reward(3.0, terminated=True) == pytest.approx(5.5 + 0.9 * -0.5 / 0.1)


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("shift", [zero, absorbing])
def test_arrays_agree_with_floats_and_keep_their_dtype(kind: str, shift: Shift) -> None:
    rewards, ends = [-1.0, 0.0, 2.0], [False, True, True]
    array = CONTAINERS[kind](rewards)
    flags = torch.tensor(ends) if kind == "torch" else np.array(ends)
    expected = [shift.reward(r, t) for r, t in zip(rewards, ends, strict=True)]
    for result in (
        shift.reward(array, flags),
        shift.to_primal(shift.from_primal(shift.reward(array, flags))),
    ):
        assert type(result) is type(array)
        assert result.dtype == array.dtype
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5)
    assert shift.multistep_return(array, np.array([1, 2, 3]), flags).dtype == array.dtype


@given(
    terminal=st.sampled_from(["zero", "absorbing", "goal"]),
    numbers=st.tuples(biases, scales, gammas),
    reward=st.floats(-100, 100),
    ended=st.booleans(),
)
def test_to_primal_reward_is_the_inverse_of_reward(
    terminal: Any, numbers: tuple[float, float, float], reward: float, ended: bool
) -> None:
    shift = Shift(*numbers, terminal)
    shifted = shift.reward(reward, ended)
    # A reward so small that adding the bias loses it is not known to be a goal's.
    assume(reward == 0 or shift.scale * abs(reward) > 1e-9 * abs(shift.bias))
    size = max(abs(reward), (abs(shifted) + abs(shift.value_offset)) / shift.scale)
    try:
        assert shift.to_primal_reward(shifted, ended) == pytest.approx(reward, abs=1e-12 * size)
    except InputError:
        assert (terminal, ended) == ("goal", True)
        assert shift.bias > 0


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("terminal", ["zero", "absorbing", "goal"])
def test_primal_rewards_of_arrays(kind: str, terminal: Any) -> None:
    shift = dataclasses.replace(absorbing, terminal=terminal)
    rewards, ends = CONTAINERS[kind]([-1.0, 0.0, 2.0, 0.0, 1e-9]), [False, True, True, False, True]
    primal = shift.to_primal_reward(shift.reward(rewards, ends), ends)
    assert type(primal) is type(rewards)
    assert primal.dtype == rewards.dtype
    np.testing.assert_allclose(np.asarray(primal), np.asarray(rewards), atol=1e-6)
    if kind == "jax":
        traced = jax.jit(shift.to_primal_reward)
        both = traced(shift.reward(rewards, ends), jnp.asarray(ends))
        np.testing.assert_allclose(both, primal, atol=1e-6)


def test_primal_rewards_that_are_unknown_are_refused() -> None:
    shift = Shift(0.5, gamma=0.9, terminal="goal")
    assert shift.to_primal_reward([1.0, 6.0], [False, True]).tolist() == [0.5, 5.5]
    # Rounding puts the last one above the credit that it is.
    for one, reward in ((shift, 1.0), (shift, 0.0), (Shift(5.0, 1.0, 0.25, "goal"), 0.0)):
        with pytest.raises(InputError, match="goals and of other ends to the same numbers"):
            one.to_primal_reward(one.reward(reward, True), True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_low_precision_stays_low(dtype: str) -> None:
    array = jnp.ones(3, dtype)
    assert absorbing.reward(array, np.array([True, False, True])).dtype == dtype
    assert Shift(jnp.array([1.0, 2.0, 3.0])).reward(array).dtype == dtype
    tensor = torch.ones(3, dtype=getattr(torch, dtype))
    assert absorbing.reward(tensor, torch.tensor([True, False, True])).dtype == tensor.dtype
    assert Shift(torch.tensor([1.0, 2.0, 3.0])).reward(tensor).dtype == tensor.dtype
    assert Shift(np.array([1.0, 2.0, 3.0])).reward(tensor).dtype == tensor.dtype


def test_numpy_scalars_keep_their_dtype_whatever_the_shift_is_made_of() -> None:
    shift = Shift(np.float64(-0.5), np.float32(2.0), np.float64(0.9), "absorbing")
    assert type(shift.bias) is type(shift.scale) is type(shift.gamma) is float
    assert shift.reward(np.float32(1), np.bool_(True)).dtype == np.float32
    assert Shift(np.array([0.1, 0.2])).reward(np.float32(1)).dtype == np.float32


@pytest.mark.parametrize("integers", [3, np.array(3), jnp.array(3), torch.tensor(3)])
def test_whole_rewards_become_floats(integers: Any) -> None:
    assert float(Shift(-0.5).reward(integers)) == 2.5
    assert float(Shift(torch.tensor(-0.5)).reward(torch.tensor(3))) == 2.5


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.99, 0.9999])
@pytest.mark.parametrize(
    "as_kind",
    [
        lambda x: np.asarray(x, np.float32),
        lambda x: jnp.asarray(x, jnp.float32),
        lambda x: torch.tensor(x, dtype=torch.float32),
    ],
)
def test_a_multistep_return_of_one_reward_is_exact(gamma: float, as_kind: Any) -> None:
    shift = Shift(-1.0, gamma=gamma)
    steps = torch.tensor([1]) if "torch" in str(type(as_kind([0.0]))) else np.array([1])
    assert float(shift.multistep_return(as_kind([0.0]), steps)[0]) == pytest.approx(-1, rel=1e-6)


def test_low_precision_multistep_returns_lose_only_their_own_precision() -> None:
    shift = Shift(-1.0, gamma=0.999)
    for total in (jnp.zeros(1, jnp.bfloat16), jnp.zeros(1, jnp.float16)):
        assert float(shift.multistep_return(total, np.array([1]))[0]) == pytest.approx(-1, rel=1e-2)


def test_torch_in_every_place() -> None:
    bias = torch.tensor([0.25, 0.5], dtype=torch.bfloat16)
    assert Shift(bias).reward(torch.ones(2)).tolist() == [1.25, 1.5]
    assert Shift(bias).reward(np.ones(2, np.float32)).tolist() == [1.25, 1.5]
    assert Shift(jnp.array(0.5)).reward(torch.tensor(1)).item() == 1.5
    learnable = torch.tensor(0.5, requires_grad=True)
    Shift(learnable).reward(torch.ones(2)).sum().backward()
    assert learnable.grad is not None
    assert learnable.grad.item() == 2.0
    flags = torch.tensor([True, False])
    exact = Shift(-0.3, gamma=0.97, terminal="absorbing")
    wide = exact.reward(torch.ones(2, dtype=torch.float64), flags)
    assert wide[0].item() == pytest.approx(exact.reward(1.0, True), abs=1e-12)
    assert exact.reward(np.ones(2), flags)[0] == pytest.approx(exact.reward(1.0, True))
    total = exact.multistep_return(torch.tensor([1, 1]), torch.tensor([2, 2]), flags)
    assert total[0].item() == pytest.approx(exact.multistep_return(1.0, 2, True), rel=1e-6)
    mapped = torch.func.vmap(lambda b: Shift(b).reward(torch.ones(3)))(torch.tensor([0.0, 1.0]))
    assert mapped.tolist() == [[1.0] * 3, [2.0] * 3]


@pytest.mark.parametrize("kind", CONTAINERS)
def test_discounts_are_an_axis(kind: str) -> None:
    discounts, totals = [0.0, 0.9, 0.99], [1.0, -2.0, 3.0]
    shift = Shift(-0.5, gamma=CONTAINERS[kind](discounts), terminal="absorbing")
    expected = [
        Shift(-0.5, gamma=gamma, terminal="absorbing").multistep_return(total, 3, ended)
        for gamma, total, ended in zip(discounts, totals, [True, False, True], strict=True)
    ]
    for steps in (3, np.array([3, 3, 3])):
        result = shift.multistep_return(CONTAINERS[kind](totals), steps, [True, False, True])
        assert type(result) is type(CONTAINERS[kind](totals))
        assert result.dtype == CONTAINERS[kind](totals).dtype
        np.testing.assert_allclose(result, expected, rtol=1e-12 if kind == "numpy64" else 1e-5)


def test_members_are_an_axis() -> None:
    rewards = jnp.arange(4.0)
    biases = jnp.array([-0.5, 0.0, 0.5])

    def shifted(bias: jax.Array) -> Any:
        return Shift(bias, gamma=0.9, terminal="absorbing").reward(rewards, rewards > 2)

    traced = jax.jit(jax.vmap(shifted))(biases)
    leaves = eqx.filter_vmap(lambda s: s.reward(rewards, rewards > 2), in_axes=(eqx.if_array(0),))(
        Shift(biases, gamma=0.9, terminal="absorbing")
    )
    together = Shift(biases[:, None], gamma=0.9, terminal="absorbing").reward(rewards, rewards > 2)
    alone = np.stack([shifted(b) for b in biases])
    for result in (traced, leaves, together):
        np.testing.assert_allclose(result, alone, rtol=1e-6)


def test_a_shift_is_a_pytree_with_named_leaves_and_a_static_terminal() -> None:
    paths = [jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_leaves_with_path(absorbing)]
    assert paths == [".bias", ".scale", ".gamma"]
    assert jax.tree.map(lambda x: x, absorbing) == absorbing
    assert jax.jit(lambda s: s.initial_value)(absorbing) == pytest.approx(absorbing.initial_value)
    assert jax.tree.map(type, absorbing).terminal == "absorbing"
    assert jax.grad(zero.reward)(1.0) == 2.0


def test_a_shift_is_frozen_hashable_and_prints_itself() -> None:
    assert hash(Shift(-1, gamma=0.5)) == hash(Shift(-1.0, gamma=0.5))
    assert {Shift(1.0): "a"}[Shift(1)] == "a"
    assert eval(repr(absorbing)) == absorbing
    with pytest.raises(dataclasses.FrozenInstanceError):
        absorbing.bias = 1.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        hash(Shift(np.ones(2)))


@pytest.mark.parametrize(
    ("arguments", "quoted"),
    [
        ({"bias": float("nan")}, "nan"),
        ({"bias": np.array([0.0, np.inf])}, "inf"),
        ({"bias": 0, "scale": 0}, "0.0"),
        ({"bias": 0, "scale": -2}, "-2.0"),
        ({"bias": 0, "scale": float("inf")}, "inf"),
        ({"bias": 0, "gamma": 1}, "1.0"),
        ({"bias": 0, "gamma": -0.1}, "-0.1"),
        ({"bias": jnp.ones(2), "scale": jnp.array([1.0, -1.0])}, "-1."),
        ({"bias": torch.tensor([1.0, float("nan")])}, "nan"),
        ({"bias": 0, "terminal": "sometimes"}, "'sometimes'"),
    ],
)
def test_concrete_numbers_are_validated(arguments: dict[str, Any], quoted: str) -> None:
    with pytest.raises(ValueError, match=quoted.replace("(", r"\(")):
        Shift(**arguments)


@pytest.mark.parametrize(
    "use",
    [
        lambda s: s.value_offset,
        lambda s: s.initial_value,
        lambda s: s.to_primal(0.0),
        lambda s: s.from_primal(0.0),
        lambda s: s.optimism(0, 1),
        lambda s: s.multistep_return(0.0, 3),
    ],
)
def test_value_maps_need_the_discount(use: Any) -> None:
    with pytest.raises(ValueError, match="gamma=None"):
        use(Shift(-0.5))


@given(biases, scales, gammas, st.floats(-1e6, 1e6))
def test_the_value_maps_undo_each_other(b: float, k: float, gamma: float, q: float) -> None:
    shift = Shift(b, k, gamma)
    tolerance = 1e-9 * (abs(q) + abs(shift.value_offset) / k)
    assert shift.to_primal(shift.from_primal(q)) == pytest.approx(q, abs=tolerance)
    assert shift.from_primal(shift.initial_value) == pytest.approx(
        0, abs=1e-9 * (1 + abs(shift.value_offset))
    )
    assert shift.initial_value == pytest.approx(-b / ((1 - gamma) * k))


def test_a_shift_comes_from_a_number_a_dict_or_a_shift() -> None:
    assert as_shift(-0.5) == as_shift(np.float64(-0.5)) == as_shift({"bias": -0.5}) == Shift(-0.5)
    assert as_shift(dataclasses.asdict(absorbing)) == absorbing
    assert as_shift(absorbing) is absorbing
    with pytest.raises(ValueError, match="'offset'"):
        as_shift({"bias": 1.0, "offset": 2.0})
    with pytest.raises(ValueError, match="needs 'bias'"):
        as_shift({"scale": 1.0})
    with pytest.raises(ValueError, match="'half'"):
        as_shift("half")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", CONTAINERS)
def test_flags_that_would_broadcast_the_rewards_are_refused(kind: str) -> None:
    """A column of rewards with a row of flags would be a square."""
    column, row = CONTAINERS[kind]([[1.0]] * 64), CONTAINERS[kind]([1.0] * 64)
    with pytest.raises(InputError, match=re.escape("reward, (64, 1), or be one value, got the")):
        absorbing.reward(column, row > 0)
    with pytest.raises(InputError, match=re.escape("shape of reward, (64,)")):
        absorbing.reward(row, column > 0)
    with pytest.raises(InputError, match="shape of reward"):
        absorbing.reward(row, row[:63] > 0)
    with pytest.raises(InputError, match="terminated must have the shape of total"):
        absorbing.multistep_return(column, 3, row > 0)
    with pytest.raises(InputError, match="steps must have the shape of total"):
        zero.multistep_return(column, row, True)
    assert absorbing.reward(column, column > 0).shape == absorbing.reward(column).shape == (64, 1)


def test_members_have_rewards_of_their_own() -> None:
    """Unlike flags, biases may broadcast: one row of rewards for each member."""
    shift = Shift(np.array([[-0.5], [0.5]]), gamma=0.9, terminal="absorbing")
    assert shift.reward(np.zeros(3), np.array([True, False, True])).shape == (2, 3)


@pytest.mark.parametrize("shift", [zero, absorbing])
def test_a_list_is_an_array(shift: Shift) -> None:
    lists: tuple[Any, Any] = ([1.0, 2.0], [False, True])
    arrays = [np.array(values) for values in lists]
    np.testing.assert_array_equal(shift.reward(*lists), shift.reward(*arrays))
    np.testing.assert_array_equal(
        shift.multistep_return([1.0, 2.0], [1, 2], [False, True]),
        shift.multistep_return(arrays[0], np.array([1, 2]), arrays[1]),
    )


@pytest.mark.parametrize("kind", CONTAINERS)
def test_shifts_with_arrays_are_compared(kind: str) -> None:
    make = CONTAINERS[kind]
    assert Shift(make([1.0, 2.0])) == Shift(make([1.0, 2.0]))
    assert Shift(make([1.0, 2.0])) != Shift(make([1.0, 3.0]))
    assert Shift(make([1.0, 2.0])) != Shift(make([1.0, 2.0, 3.0])) != Shift(1.0)
    assert Shift(make([1.0]), gamma=0.9) != Shift(make([1.0]))
    assert zero != absorbing
    assert (zero == "zero") is False
    assert len({zero, dataclasses.replace(zero), absorbing}) == 2
