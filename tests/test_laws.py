"""The laws of the paper, as properties: where they hold exactly, and where they do not."""

from typing import Any, NamedTuple

import equinox as eqx
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import assume, given, settings

from rewardshift import Shift, equivalent_bias, optimistic_value

seeds = st.integers(0, 2**32 - 1)

# --- 1: the best policy stays, and every value moves by b / (1 - gamma) --------------------


class Task(NamedTuple):
    """A random finite task: `ends[s']` says that entering s' ends the episode."""

    chance: np.ndarray  # [state, action, next state]
    reward: np.ndarray  # [state, action, next state]
    ends: np.ndarray  # [next state]


def random_task(seed: int, states: int, actions: int, *, terminal: bool) -> Task:
    rng = np.random.default_rng(seed)
    chance = rng.dirichlet(np.full(states, 0.3), size=(states, actions))
    ends = rng.random(states) < 0.3 if terminal else np.zeros(states, bool)
    return Task(chance, rng.normal(size=chance.shape), ends)


def solve(task: Task, gamma: float, shift: Shift) -> np.ndarray:
    """Optimal values by policy iteration with exact solves, independent of the library's own."""
    rewards = shift.reward(task.reward, np.broadcast_to(task.ends, task.reward.shape))
    expected = (task.chance * rewards).sum(-1)
    onward = task.chance * ~task.ends
    rows = np.arange(len(expected))
    policy = np.zeros(len(expected), int)
    while True:
        matrix = np.eye(len(expected)) - gamma * onward[rows, policy]
        q = expected + gamma * onward @ np.linalg.solve(matrix, expected[rows, policy])
        improves = q.max(1) > q[rows, policy] + 1e-12 * np.abs(q).max()
        if not improves.any():
            return q
        policy = np.where(improves, q.argmax(1), policy)


@given(
    seeds,
    st.integers(1, 6),
    st.integers(1, 4),
    st.booleans(),
    st.floats(0, 0.99),
    st.floats(1e-2, 1e2),
    st.floats(-1e2, 1e2),
)
def test_absorbing_moves_every_optimal_value_by_the_same_offset(
    seed: int, states: int, actions: int, terminal: bool, gamma: float, k: float, b: float
) -> None:
    task = random_task(seed, states, actions, terminal=terminal)
    shift = Shift(b, k, gamma, "absorbing")
    primal = solve(task, gamma, Shift(0.0))
    shifted = solve(task, gamma, shift)
    size = k * np.abs(primal).max() + abs(shift.value_offset)
    np.testing.assert_allclose(shifted, shift.from_primal(primal), rtol=0, atol=1e-9 * size)
    best = np.sort(primal, axis=1)
    lead = best[:, -1] - best[:, -2] if actions > 1 else np.full(states, np.inf)
    unique = k * lead > 1e-8 * size
    np.testing.assert_array_equal(shifted.argmax(1)[unique], primal.argmax(1)[unique])


@given(seeds, st.floats(0, 0.99), st.floats(-1e2, 1e2))
def test_without_terminal_states_zero_is_exact_too(seed: int, gamma: float, b: float) -> None:
    task = random_task(seed, 5, 3, terminal=False)
    shift = Shift(b, 1.0, gamma, "zero")
    expected = shift.from_primal(solve(task, gamma, Shift(0.0)))
    size = np.abs(expected).max() + abs(shift.value_offset)
    np.testing.assert_allclose(solve(task, gamma, shift), expected, rtol=0, atol=1e-9 * size)


# --- 3: a shift is another initial value ---------------------------------------------------

GAMMA, STEPS, FEATURES, ACTIONS = 0.9, 300, 3, 2


class Batches(NamedTuple):
    """Fixed experience, a batch per step, a third of it terminal."""

    observation: Any
    action: Any
    reward: Any
    next_observation: Any
    terminated: Any


def random_batches(seed: int) -> Batches:
    rng = np.random.default_rng(seed)
    shape = (STEPS, 8)
    return Batches(
        rng.normal(size=(*shape, FEATURES)),
        rng.integers(ACTIONS, size=shape),
        rng.normal(size=shape),
        rng.normal(size=(*shape, FEATURES)),
        rng.random(shape) < 1 / 3,
    )


@eqx.filter_jit
def fit(network: eqx.nn.MLP, shift: Shift, data: Batches, optimiser: Any) -> eqx.nn.MLP:
    """Q-learning with a target network that follows; returns the parameters of every step."""
    parameters, static = eqx.partition(network, eqx.is_inexact_array)

    def values(parameters: Any, observations: Any) -> Any:
        return jax.vmap(eqx.combine(parameters, static))(observations)

    def loss(parameters: Any, target: Any, batch: Batches) -> Any:
        following = jnp.where(
            batch.terminated, 0.0, values(target, batch.next_observation).max(axis=1)
        )
        goal = shift.reward(batch.reward, batch.terminated) + GAMMA * following
        chosen = jnp.take_along_axis(
            values(parameters, batch.observation), batch.action[:, None], axis=1
        )[:, 0]
        return jnp.mean((chosen - goal) ** 2)

    def step(carry: Any, batch: Batches) -> Any:
        parameters, target, state = carry
        gradient = jax.grad(loss)(parameters, target, batch)
        updates, state = optimiser.update(gradient, state, parameters)
        parameters = optax.apply_updates(parameters, updates)
        target = jax.tree.map(lambda t, p: t + 0.05 * (p - t), target, parameters)
        return (parameters, target, state), parameters

    start = (parameters, parameters, optimiser.init(parameters))
    return jax.lax.scan(step, start, data)[1]


def output_bias(network: Any) -> Any:
    return network.layers[-1].bias


def both_ways(bias: float, terminal: Any, seed: int, optimiser: Any) -> tuple[Any, Any, float]:
    """Parameters of training with r + b from Q_0, and with r from Q_0 - b / (1 - gamma)."""
    shift = Shift(bias, 1.0, GAMMA, terminal)
    network = eqx.nn.MLP(FEATURES, ACTIONS, 8, 1, key=jax.random.key(seed), activation=jnp.tanh)
    moved = eqx.tree_at(output_bias, network, output_bias(network) - shift.value_offset)
    data = random_batches(seed)
    return (
        fit(network, shift, data, optimiser),
        fit(moved, Shift(0.0, 1.0, GAMMA, terminal), data, optimiser),
        shift.value_offset,
    )


OPTIMISERS = {
    "sgd": optax.sgd(0.05),
    "adam": optax.adam(1e-2),
    "clipped": optax.chain(optax.clip_by_global_norm(0.1), optax.sgd(0.05)),
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize("bias", [-5.0, -0.02, 0.5, 8.0])
def test_a_shift_equals_an_initial_value_for_a_network(name: str, bias: float) -> None:
    shifted, primal, offset = both_ways(bias, "absorbing", 1, OPTIMISERS[name])
    np.testing.assert_allclose(
        output_bias(shifted), output_bias(primal) + offset, rtol=1e-9, atol=1e-9 * abs(offset)
    )
    for ours, theirs in zip(jax.tree.leaves(shifted), jax.tree.leaves(primal), strict=True):
        assert ours.dtype == jnp.float64
        if ours is not output_bias(shifted):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * np.abs(ours).max())


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", OPTIMISERS)
def test_with_zero_and_terminal_states_it_does_not(name: str) -> None:
    shifted, primal, _ = both_ways(-0.5, "zero", 1, OPTIMISERS[name])
    assert np.abs(shifted.layers[0].weight[-1] - primal.layers[0].weight[-1]).max() > 1e-2


@pytest.mark.usefixtures("x64")
def test_with_weight_decay_it_does_not_either() -> None:
    decayed = optax.chain(optax.add_decayed_weights(1e-2), optax.sgd(0.05))
    shifted, primal, _ = both_ways(-0.5, "absorbing", 1, decayed)
    assert np.abs(shifted.layers[0].weight[-1] - primal.layers[0].weight[-1]).max() > 1e-4


def learn_table(initial: np.ndarray, shift: Shift, seed: int) -> np.ndarray:
    """Q-learning on a table along random transitions; the tables of every step."""
    rng = np.random.default_rng(seed)
    q, history = initial.copy(), []
    for _ in range(STEPS):
        s, a, n = rng.integers(4), rng.integers(2), rng.integers(4)
        reward, terminated = rng.normal(), rng.random() < 0.3
        target = shift.reward(reward, terminated) + GAMMA * (not terminated) * q[n].max()
        q[s, a] += 0.5 * (target - q[s, a])
        history.append(q.copy())
    return np.array(history)


@given(seeds, st.floats(-100, 100))
def test_a_shift_equals_an_initial_value_for_a_table(seed: int, bias: float) -> None:
    initial = np.random.default_rng(seed).normal(size=(4, 2))
    shift = Shift(bias, 1.0, GAMMA, "absorbing")
    shifted = learn_table(initial, shift, seed)
    primal = learn_table(initial - shift.value_offset, Shift(0.0), seed)
    tolerance = 1e-9 * (1 + abs(shift.value_offset))
    np.testing.assert_allclose(shifted, primal + shift.value_offset, rtol=0, atol=tolerance)


@given(seeds, st.floats(0.1, 100), st.sampled_from([-1, 1]))
def test_for_a_table_with_zero_it_does_not(seed: int, size: float, sign: int) -> None:
    shift = Shift(sign * size, 1.0, GAMMA, "zero")
    shifted = learn_table(np.zeros((4, 2)), shift, seed)
    primal = learn_table(np.zeros((4, 2)) - shift.value_offset, Shift(0.0), seed)
    assert np.abs(shifted[-1] - primal[-1] - shift.value_offset).max() > 1e-3 * size


# --- 4: Proposition 1, under its own assumptions -------------------------------------------


@given(
    seeds, st.floats(0, 50), st.floats(-50, 0), st.floats(0, 1), st.floats(0, 0.99), st.booleans()
)
def test_proposition_1_for_tabular_and_linear_estimators(
    seed: int, b_plus: float, b_minus: float, beta: float, gamma: float, tabular: bool
) -> None:
    rng = np.random.default_rng(seed)
    features = np.eye(6) if tabular else rng.normal(size=(6, 4))
    returns = rng.normal(size=6)  # fixed Monte-Carlo estimates of the primal values
    initial = rng.normal(size=features.shape[1])
    order = rng.integers(6, size=100)

    def primal_values(bias: float) -> np.ndarray:
        shift, weights = Shift(bias, gamma=gamma), np.array(initial)
        for row in order:
            error = features[row] @ weights - shift.from_primal(returns[row])
            weights -= 2 * 0.02 * error * features[row]
        return np.asarray(shift.to_primal(features @ weights))

    mix = optimistic_value(primal_values(b_plus), primal_values(b_minus), beta)
    single = primal_values(equivalent_bias(b_plus, b_minus, beta))
    size = 1 + (b_plus - b_minus) / (1 - gamma)
    np.testing.assert_allclose(mix, single, rtol=0, atol=1e-9 * size)


# --- 5: Remark 2, the deterministic policy gradient ----------------------------------------


@pytest.mark.usefixtures("x64")
@settings(max_examples=10)
@given(seeds, st.floats(0.1, 10), st.floats(-10, 10))
def test_the_exact_policy_gradient_scales_by_k_and_does_not_see_b(
    seed: int, k: float, b: float
) -> None:
    rng = np.random.default_rng(seed)
    a, c = 0.5 * rng.normal(size=(3, 3)), rng.normal(size=(3, 2))
    theta = jnp.asarray(rng.normal(size=(2, 3)))
    starts = jnp.asarray(rng.normal(size=(5, 3)))
    ours = policy_gradient(theta, starts, a, c, Shift(b, k, 0.8))
    primal = policy_gradient(theta, starts, a, c, Shift(0.0, 1.0, 0.8))
    assume(np.abs(primal).max() > 1e-6)
    np.testing.assert_allclose(ours / k, primal, rtol=1e-9, atol=1e-9 * np.abs(primal).max())


@jax.jit
def policy_gradient(theta: Any, starts: Any, a: Any, c: Any, shift: Shift) -> Any:
    """The gradient of Silver et al., with Q summed up exactly: 0.8^200 is below 1e-19."""

    def policy(theta: Any, state: Any) -> Any:
        return jnp.tanh(theta @ state)

    def q(state: Any, action: Any) -> Any:
        def step(carry: Any, _: None) -> Any:
            state, action, discount = carry
            reward = shift.reward(-jnp.sum(state**2) - 0.1 * jnp.sum(action**2))
            state = jnp.tanh(a @ state + c @ action)
            return (state, policy(theta, state), 0.8 * discount), discount * reward

        return jax.lax.scan(step, (state, action, 1.0), None, length=200)[1].sum()

    def one(state: Any) -> Any:
        action, pull_back = jax.vjp(lambda t: policy(t, state), theta)
        return pull_back(jax.grad(q, argnums=1)(state, action))[0]

    return jax.vmap(one)(starts).mean(0)


# --- 6: multi-step returns -----------------------------------------------------------------


@given(
    st.lists(st.floats(-100, 100), min_size=1, max_size=12),
    st.booleans(),
    st.sampled_from(["zero", "absorbing"]),
    st.floats(0, 0.999),
    st.floats(0.01, 100),
    st.floats(-100, 100),
)
def test_a_multistep_return_shifts_like_its_rewards(
    rewards: list[float], terminated: bool, terminal: Any, gamma: float, k: float, b: float
) -> None:
    shift, n = Shift(b, k, gamma, terminal), len(rewards)
    total = sum(gamma**i * r for i, r in enumerate(rewards))
    expected = sum(
        gamma**i * shift.reward(r, terminated and i == n - 1) for i, r in enumerate(rewards)
    )
    size = k * sum(map(abs, rewards)) + abs(shift.value_offset)
    result = shift.multistep_return(total, n, terminated)
    assert result == pytest.approx(expected, abs=1e-9 * (1 + size))
    if not (terminated and terminal == "absorbing"):
        offset = b * (1 - gamma**n) / (1 - gamma)
        assert result == pytest.approx(k * total + offset, abs=1e-9 * (1 + size))
