"""Observations on a common scale, and what `TD3` sees of them and does."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rewardshift import TD3
from rewardshift.agents.normaliser import Normaliser, init_normaliser, normalise, take_note
from rewardshift.envs.tasks import TaskSpec
from rewardshift.networks import MLP
from rewardshift.replay import Batch

AGENT = TD3(network=MLP((8,)), batch_size=8, warm_up=20, normalise=True, random_actions=0.3)


def test_scales_stay_right_far_from_zero_and_over_long_training() -> None:
    """A mean of 1,000 with a deviation of 1, which moves after a quarter of the steps."""
    noise = np.random.default_rng(0).normal(size=(400_000, 1)).astype(np.float32)
    seen = (1000 + noise + (np.arange(len(noise)) > 100_000)[:, None]).astype(np.float32)
    normaliser, _ = jax.lax.scan(
        lambda n, x: (take_note(n, x), None),
        init_normaliser(TaskSpec(1, "float32")),
        jnp.asarray(seen),
    )
    exact = (seen[:100].astype(np.float64) - seen.mean(dtype=np.float64)) / seen.std(
        dtype=np.float64
    )
    np.testing.assert_allclose(normalise(normaliser, jnp.asarray(seen[:100])), exact, atol=0.01)


def test_observations_are_scaled_by_what_was_seen() -> None:
    seen = np.random.default_rng(0).normal(3.0, [0.5, 2.0, 0.0], (500, 3)).astype(np.float32)
    spec = TaskSpec(3, "float32")
    normaliser = init_normaliser(spec)
    normaliser, _ = jax.lax.scan(
        lambda n, x: (take_note(n, x), None), normaliser, jnp.asarray(seen)
    )
    deviation = np.maximum(seen.std(axis=0), 0.01)
    expected = np.clip((seen - seen.mean(axis=0)) / deviation, -5, 5)
    np.testing.assert_allclose(normalise(normaliser, jnp.asarray(seen)), expected, atol=1e-3)
    far = normalise(normaliser, jnp.asarray([[1e6, -1e6, 3.0]]))
    np.testing.assert_allclose(far, [[5.0, -5.0, 0.0]], atol=1e-3)
    assert np.isfinite(normalise(init_normaliser(spec), jnp.asarray(seen))).all()


def test_goals_have_the_scale_of_what_is_achieved() -> None:
    """Also where always the same one is desired: what is relabelled must not be at the edge."""
    achieved = np.random.default_rng(0).normal(0.0, 2.0, 500).astype(np.float32)
    seen = np.stack([10 * achieved, achieved, np.full(500, 4.0, np.float32)], axis=1)
    normaliser, _ = jax.lax.scan(
        lambda n, x: (take_note(n, x), None),
        init_normaliser(TaskSpec(3, "float32", action_size=1, goal_size=1)),
        jnp.asarray(seen),
    )
    both = np.concatenate([achieved, np.full(500, 4.0)])
    mean = np.array([10 * achieved.mean(), both.mean(), both.mean()])
    deviation = np.array([10 * achieved.std(), both.std(), both.std()])
    one = np.array([10.0, 1.0, -2.0])
    scaled, expected = normalise(normaliser, jnp.asarray(one)), (one - mean) / deviation
    np.testing.assert_allclose(scaled, expected, atol=1e-3)


def test_an_update_sees_what_is_scaled() -> None:
    """One on raw data equals one on data that were scaled beforehand."""
    spec = TaskSpec(5, "float32", action_size=2)
    generator = np.random.default_rng(0)
    seen = generator.normal(3.0, 2.0, (50, 5)).astype(np.float32)
    state = AGENT.init(jax.random.key(0), spec)
    for observation in seen:
        state, _ = AGENT.observe(state, jnp.asarray(observation))
    batch = Batch(
        observation=jnp.asarray(seen[:8]),
        action=jnp.asarray(generator.uniform(-1, 1, (8, 2)).astype(np.float32)),
        reward=jnp.ones(8),
        next_observation=jnp.asarray(seen[8:16]),
        terminated=jnp.zeros(8, bool),
        steps=jnp.ones(8, jnp.int32),
        intrinsic=jnp.zeros(8),
        lot=jnp.zeros(8, jnp.uint32),
    )
    assert isinstance(state.normaliser, Normaliser)
    scaled = batch._replace(
        observation=normalise(state.normaliser, batch.observation),
        next_observation=normalise(state.normaliser, batch.next_observation),
    )
    plain = replace(AGENT, normalise=False)
    key, bare = jax.random.key(1), state._replace(normaliser=())
    ours, _ = AGENT.update(state, batch, key, 1)
    theirs, _ = plain.update(bare, scaled, key, 1)
    jax.tree.map(np.testing.assert_array_equal, ours._replace(normaliser=()), theirs)


def test_some_actions_are_random_and_the_others_are_near_the_greedy_one() -> None:
    agent = replace(AGENT, noise=0.0)
    spec = TaskSpec(5, "float32", action_size=2)
    state = agent.init(jax.random.key(0), spec)
    observation = jnp.ones(5)
    greedy = agent.greedy(state, observation)
    draws = np.random.default_rng(0).random((2000, agent.draws(spec)), np.float32)
    act = jax.jit(jax.vmap(lambda d, e: agent.act(state, observation, d, e), in_axes=(0, None)))
    actions = np.asarray(act(draws, False))
    other = np.abs(actions - greedy).max(axis=1) > 1e-5
    assert other.mean() == pytest.approx(0.3, abs=0.04)
    assert np.abs(actions[other].mean(axis=0)).max() < 0.1
    assert (np.abs(act(draws, True) - greedy).max(axis=1) > 1e-5).all()
