"""BCQ and CQL against computations that share nothing with them but the random numbers."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from probes import random_batch

from rewardshift.agents.base import Batch
from rewardshift.agents.bcq import BCQ
from rewardshift.agents.gaussian_policy import squash, squashed_log_density
from rewardshift.agents.networks import MLP
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
    return random_batch(0, 7, 5, 2)


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
    best, only = (
        jax.vmap(partial(one.policy_value, state))(batch.observation) for one in (many, few)
    )
    assert (best - only).mean() > 0
    action = many.greedy(state, batch.observation[0])
    pair = np.concatenate([batch.observation[0], action])
    expected = numpy_mlp(twin(state.critics.parameters, 0), pair)[0]
    assert many.policy_value(state, batch.observation[0]) == pytest.approx(expected, abs=1e-5)


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
