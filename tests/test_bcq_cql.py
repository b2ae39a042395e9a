"""BCQ and CQL against computations that share nothing with them but the random numbers."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from rewardshift import Shift
from rewardshift.agents.base import Batch
from rewardshift.agents.bcq import BCQ
from rewardshift.agents.cql import CQL, CQLState
from rewardshift.agents.gaussian_policy import squash, squashed_log_density
from rewardshift.agents.learner import CACHED, mean_and_grad
from rewardshift.agents.networks import (
    MLP,
    Layer,
    MLPParameters,
    apply_mlp,
    init_mlp,
    twin_values,
)
from rewardshift.envs.tasks import TaskSpec

SPEC = TaskSpec(5, "float32", action_size=2)
KEY = jax.random.key(3)


def numpy_mlp(mlp: Any, inputs: np.ndarray) -> np.ndarray:
    """A network in double precision, one layer after the other."""
    *hidden, last = [
        (np.asarray(w, np.float64), np.asarray(b, np.float64)) for w, b in (*mlp.hidden, mlp.output)
    ]
    for weight, bias in hidden:
        inputs = np.maximum(inputs @ weight.T + bias, 0)
    return inputs @ last[0].T + last[1]


def twin(critics: Any, which: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[which], critics)


@pytest.fixture(scope="module")
def batch() -> Batch:
    generator = np.random.default_rng(0)
    count = 7
    return Batch(
        observation=jnp.asarray(generator.normal(size=(count, 5)), jnp.float32),
        action=jnp.asarray(generator.uniform(-1, 1, (count, 2)), jnp.float32),
        reward=jnp.asarray(generator.normal(size=count), jnp.float32),
        next_observation=jnp.asarray(generator.normal(size=(count, 5)), jnp.float32),
        terminated=jnp.asarray(np.arange(count) % 3 == 0),
        steps=jnp.ones(count, jnp.int32),
        intrinsic=jnp.zeros(count),
    )


@pytest.mark.parametrize("terminal", ["zero", "absorbing"])
def test_the_target_of_bcq(terminal: Any, batch: Batch) -> None:
    agent = BCQ(
        shift=Shift(8.0, 2.0, terminal=terminal), network=MLP((16, 12)), proposer=MLP((20, 20))
    )
    state = agent.init(KEY, SPEC)
    state = state._replace(  # apart from the networks they start as
        target_actor=jax.tree.map(lambda leaf: 1.5 * leaf, state.actor.parameters),
        target_critics=jax.tree.map(lambda leaf: 0.7 * leaf + 0.1, state.critics.parameters),
    )
    latents = np.clip(np.asarray(jax.random.normal(KEY, (7, 10, 4)), np.float64), -0.5, 0.5)
    following = np.repeat(np.asarray(batch.next_observation, np.float64)[:, None], 10, axis=1)
    decoder = state.proposer.parameters.decoder
    proposed = np.tanh(numpy_mlp(decoder, np.concatenate([following, latents], -1)))
    pairs = np.concatenate([following, proposed], -1)
    moved = np.clip(proposed + 0.05 * np.tanh(numpy_mlp(state.target_actor, pairs)), -1, 1)
    pairs = np.concatenate([following, moved], -1)
    one, two = (numpy_mlp(twin(state.target_critics, i), pairs)[..., 0] for i in (0, 1))
    value = (0.75 * np.minimum(one, two) + 0.25 * np.maximum(one, two)).max(axis=1)
    terminated = np.asarray(batch.terminated)
    after = 0.99 * 8.0 / 0.01 if terminal == "absorbing" else 0.0
    expected = 2.0 * np.asarray(batch.reward) + 8.0 + np.where(terminated, after, 0.99 * value)
    np.testing.assert_allclose(agent._target(state, batch, KEY), expected, rtol=1e-5, atol=1e-5)


def test_bcq_proposes_actions_like_those_in_the_data(batch: Batch) -> None:
    """All data have the action (0.6, -0.6), and after some updates so do the proposals."""
    agent = BCQ(network=MLP((8,)), proposer=MLP((32, 32)))
    narrow = batch._replace(action=jnp.tile(jnp.array([0.6, -0.6]), (7, 1)))
    state = agent.init(KEY, SPEC)
    update = jax.jit(agent.update, static_argnums=3)
    for number in range(300):
        state, _ = update(state, narrow, jax.random.key(number), 0)
    proposed = agent._propose(state.proposer.parameters, batch.observation, KEY, 50)
    assert np.abs(np.asarray(proposed) - [0.6, -0.6]).mean() < 0.05
    action = jax.vmap(lambda observation: agent.greedy(state, observation))(batch.observation)
    assert np.abs(np.asarray(action) - [0.6, -0.6]).max() < 0.15  # the actor may add 0.05


def test_bcq_acts_alike_on_equal_observations_and_unlike_on_others(batch: Batch) -> None:
    agent = BCQ(network=MLP((8,)), proposer=MLP((8,)), perturbation=0.0)
    state = agent.init(KEY, SPEC)
    act = jax.jit(agent.greedy)
    first, second = batch.observation[0], batch.observation[1]
    np.testing.assert_array_equal(act(state, first), act(state, first))
    swapped = first[jnp.array([1, 0, 2, 3, 4])]  # the same numbers in another order
    assert len({tuple(np.asarray(act(state, o)).tolist()) for o in (first, second, swapped)}) == 3


def test_the_best_of_bcqs_candidates_is_taken(batch: Batch) -> None:
    agent = BCQ(network=MLP((8,)), proposer=MLP((8,)))
    state = agent.init(KEY, SPEC)
    many, few = agent, BCQ(network=MLP((8,)), proposer=MLP((8,)), acting_candidates=1)
    value = jax.vmap(lambda o: many.value(state, o) - few.value(state, o))(batch.observation)
    assert value.mean() > 0
    action = many.greedy(state, batch.observation[0])
    pair = np.concatenate([batch.observation[0], action])
    expected = numpy_mlp(twin(state.critics.parameters, 0), pair)[0]
    assert many.value(state, batch.observation[0]) == pytest.approx(expected, abs=1e-5)


def updated(agent: Any, state: Any, batch: Batch) -> tuple[Any, Any]:
    """After one update, compiled as a whole: operation by operation takes longer."""
    return jax.jit(lambda *of: agent.update(*of, 0))(state, batch, KEY)


def cql(**settings: Any) -> tuple[CQL, CQLState]:
    agent = CQL(**{"network": MLP((16, 12)), **settings})
    return agent, agent.init(KEY, SPEC)


@given(
    st.lists(st.floats(-3, 3, width=32), min_size=2, max_size=2),
    st.floats(-3, 1, width=32),
    st.floats(-2, 2, width=32),
)
def test_the_density_of_a_squashed_action(
    means: list[float], log_deviation: float, noise: float
) -> None:
    outputs = jnp.array([*means, log_deviation, log_deviation], jnp.float32)
    action, log_density = squash(outputs, jnp.full(2, noise, jnp.float32))
    raw = np.array(means) + np.exp(log_deviation) * noise
    normal = scipy.stats.norm.logpdf(raw, means, np.exp(log_deviation))
    expected = (normal + 2 * np.log(np.cosh(raw))).sum()
    assert log_density == pytest.approx(expected, rel=1e-4, abs=1e-3)
    if np.abs(raw).max() < 2:  # where tanh can be turned back in single precision
        again = squashed_log_density(outputs, action)
        assert again == pytest.approx(expected, rel=1e-2, abs=1e-2)


def numpy_candidates(agent: CQL, state: CQLState, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """The penalty's actions and the logs of their densities, in double precision from the noise."""
    random_key, *keys = jax.random.split(KEY, 3)
    shape = (len(batch.reward), agent.candidates, 2)
    actions = [np.asarray(jax.random.uniform(random_key, shape, minval=-1.0), np.float64)]
    log_densities = [np.full(shape[:2], 2 * np.log(0.5))]
    for key, seen in zip(keys, (batch.observation, batch.next_observation), strict=True):
        mean, log_deviation = np.split(
            numpy_mlp(state.policy.parameters, np.asarray(seen))[:, None], 2, -1
        )
        noise = np.asarray(jax.random.normal(key, shape), np.float64)
        action = np.tanh(mean + np.exp(log_deviation) * noise)
        normal = scipy.stats.norm.logpdf(noise) - log_deviation
        actions.append(action)
        log_densities.append((normal - np.log(1 - action**2)).sum(axis=-1))
    return np.concatenate(actions, axis=1), np.concatenate(log_densities, axis=1)


def test_the_penalty_of_cql(batch: Batch) -> None:
    agent, state = cql(candidates=3, weight=5.0)
    ours, densities = agent._candidates(state, batch, KEY)
    assert ours.shape == (7, 9, 2)
    own = twin_values(agent.network, state.critics.parameters, batch.observation, batch.action)
    others = twin_values(agent.network, state.critics.parameters, batch.observation, ours)
    excess = agent._excess(own, others, densities)
    seen, taken = (np.asarray(part, np.float64) for part in (batch.observation, batch.action))
    actions, log_densities = numpy_candidates(agent, state, batch)
    pairs = np.concatenate([np.repeat(seen[:, None], 9, axis=1), actions], -1)
    for i in (0, 1):
        critic = twin(state.critics.parameters, i)
        value = numpy_mlp(critic, np.concatenate([seen, taken], -1))[:, 0]
        soft = scipy.special.logsumexp(numpy_mlp(critic, pairs)[..., 0] - log_densities, axis=1)
        assert excess[i] == pytest.approx(5.0 * (soft - value).mean(), rel=1e-5)


def test_the_densities_of_the_penalty_are_those_of_the_draws(batch: Batch) -> None:
    agent, state = cql(candidates=4)
    actions, log_densities = agent._candidates(state, batch, KEY)
    np.testing.assert_allclose(log_densities[:, :4], 2 * np.log(0.5), rtol=1e-6)
    for part, source in ((slice(4, 8), "observation"), (slice(8, 12), "next_observation")):
        outputs = numpy_mlp(state.policy.parameters, np.asarray(getattr(batch, source)))[:, None]
        mean, deviation = outputs[..., :2], np.exp(outputs[..., 2:])
        drawn = np.asarray(actions[:, part], np.float64)
        normal = scipy.stats.norm.logpdf(np.arctanh(drawn), mean, deviation)
        expected = (normal - np.log(1 - drawn**2)).sum(axis=-1)
        np.testing.assert_allclose(log_densities[:, part], expected, rtol=1e-3, atol=1e-3)


def test_the_target_of_cql(batch: Batch) -> None:
    agent, state = cql(shift=1.0)
    noise = jax.random.normal(KEY, (7, 2))
    following = np.asarray(batch.next_observation)
    action, _ = squash(jnp.asarray(numpy_mlp(state.policy.parameters, following)), noise)
    pairs = np.concatenate([following, np.asarray(action)], -1)
    value = np.minimum(*(numpy_mlp(twin(state.target_critics, i), pairs)[:, 0] for i in (0, 1)))
    expected = np.asarray(batch.reward) + 1.0 + 0.99 * np.where(batch.terminated, 0, value)
    np.testing.assert_allclose(agent._target(state, batch, KEY), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("count", "size", "parts"),
    [(12, CACHED, 1), (12, CACHED + 1, 2), (12, 5 * CACHED, 4), (7, 5 * CACHED, 1)],
)
def test_the_gradient_of_a_batch_in_parts_is_that_of_the_whole(
    count: int, size: int, parts: int
) -> None:
    critics = init_mlp(KEY, (2, 4, 1))
    inputs = jax.random.normal(KEY, (count, 2))
    target = jnp.arange(count, dtype=jnp.float32)

    lengths = []

    def loss(critics: MLPParameters, part: Any) -> tuple[Any, dict[str, Any]]:
        lengths.append(len(part[0]))
        values = apply_mlp(critics, part[0])[:, 0]
        return ((values - part[1]) ** 2).mean(), {"values": values.mean()}

    expected = jax.value_and_grad(loss, has_aux=True)(critics, (inputs, target))
    result = mean_and_grad(loss, critics, (inputs, target), size=size)
    assert lengths[0] == count
    assert set(lengths[1:]) == {count // parts}
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5), result, expected)


@pytest.mark.parametrize(("threshold", "direction"), [(0.0, 1), (1000.0, -1)])
def test_the_tuned_penalty_moves_towards_its_threshold(
    threshold: float, direction: int, batch: Batch
) -> None:
    agent, state = cql(threshold=threshold)
    after, _ = updated(agent, state, batch)
    assert np.sign(after.penalty.parameters) == direction


def test_a_fixed_penalty_stays(batch: Batch) -> None:
    agent, state = cql()
    after, _ = updated(agent, state, batch)
    assert after.penalty.parameters == 0


def test_the_temperature_rises_where_there_is_too_little_entropy(batch: Batch) -> None:
    agent, state = cql()
    policy = state.policy.parameters

    def with_bias(bias: Any) -> Any:
        changed = policy._replace(output=policy.output._replace(bias=bias))
        return state._replace(policy=state.policy._replace(parameters=changed))

    bias = policy.output.bias
    after, _ = updated(agent, with_bias(bias.at[2:].set(-5.0)), batch)
    assert after.temperature.parameters > 0
    after, _ = updated(agent, with_bias(bias.at[2:].set(-0.2).at[:2].set(0.0)), batch)
    assert after.temperature.parameters < 0


def test_cql_imitates_first_and_improves_later(batch: Batch) -> None:
    """With critics that like large actions, and data with small ones."""

    def action(cloning: int) -> float:
        agent, state = cql(network=MLP((8,)), cloning_updates=cloning, policy_rate=1e-2)
        critics = state.critics.parameters
        (first, bias), output = critics.hidden[0], critics.output
        liking = Layer(jnp.zeros_like(first).at[..., 5:].set(1.0), jnp.full_like(bias, 2.0))
        output = output._replace(weight=jnp.ones_like(output.weight))
        critics = critics._replace(hidden=(liking,), output=output)
        low = batch._replace(action=jnp.full((7, 2), -0.8))
        update = jax.jit(agent.update, static_argnums=3)
        for number in range(60):
            state = state._replace(critics=state.critics._replace(parameters=critics))
            state, _ = update(state, low, jax.random.key(number), 0)
        return float(jax.vmap(lambda o: agent.greedy(state, o))(batch.observation).mean())

    assert action(cloning=1000) == pytest.approx(-0.8, abs=0.15)
    assert action(cloning=0) > 0.3


def test_states_are_trees_of_arrays(batch: Batch) -> None:
    agents: tuple[Any, ...] = (BCQ(network=MLP((4,)), proposer=MLP((4,))), CQL(network=MLP((4,))))
    for agent in agents:
        state = agent.init(KEY, SPEC)
        after, metrics = jax.eval_shape(partial(agent.update, turn=0), state, batch, KEY)
        assert set(metrics) == {"loss", "q"}
        shapes = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(state)]
        assert shapes == [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(after)]
