"""The TD3 family on environments with known values, and its members against single agents."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from probes import random_batch

from rewardshift import TD3, OnlineBudget
from rewardshift.agents.networks import MLP
from rewardshift.envs.tasks import TaskSpec

BIASES = (-0.5, 0.0, 0.5)
SMALL = TD3(
    shift=BIASES,
    gamma=0.5,
    network=MLP((16,)),
    learning_rate=3e-3,
    batch_size=16,
    tau=0.05,
    warm_up=50,
    lead_steps=0,
)
BUDGET = OnlineBudget(steps=1500, evaluate_every=1500, evaluation_episodes=1)
KEY = jax.random.key(0)
SPEC = TaskSpec(3, "float32", action_size=2)


def of_member(tree: Any, k: int) -> Any:
    """The part of one member; what members share, a scalar, stays."""
    return jax.tree.map(lambda leaf: leaf[k : k + 1] if leaf.ndim else leaf, tree)


def assert_same(ours: Any, theirs: Any) -> None:
    for x, y in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def test_actor_and_targets_wait_for_their_turn() -> None:
    state = SMALL.init(KEY, SPEC)
    waiting, _ = SMALL.update(state, random_batch(0, actions=2), KEY, 0)
    assert_same(waiting.actors, state.actors)
    assert_same(waiting.target_critics, state.target_critics)
    moved, _ = SMALL.update(state, random_batch(0, actions=2), KEY, 1)
    assert_same(moved.critics, waiting.critics)
    actors = (moved.actors.parameters, state.actors.parameters)
    critics = (moved.target_critics, state.target_critics)
    for (after, before), least in ((actors, 1e-5), (critics, 1e-6)):
        assert not np.allclose(after.output.weight, before.output.weight, atol=least)


def test_exploration_is_random_at_first_and_noisy_then() -> None:
    state, observation = SMALL.init(KEY, SPEC), jnp.ones(3)
    greedy = SMALL.greedy(state, observation)
    draws = jnp.asarray([0.0, 0.75])
    first, later = SMALL.exploration(0, 1000), SMALL.exploration(50, 1000)
    np.testing.assert_allclose(SMALL.act(state, observation, draws, first), [-1.0, 0.5])
    middle = jnp.asarray([0.5, 0.5])
    np.testing.assert_allclose(SMALL.act(state, observation, middle, later), greedy, atol=1e-6)
    deviation = jnp.asarray([0.8413447, 0.5])  # one standard deviation up
    moved = np.asarray(SMALL.act(state, observation, deviation, later)) - np.asarray(greedy)
    np.testing.assert_allclose(moved, [0.1, 0.0], atol=1e-4)
    quiet = replace(SMALL, noise=0.0)
    assert np.isfinite(quiet.act(state, observation, draws, quiet.exploration(50, 1000))).all()


def test_the_leaders_actor_acts() -> None:
    agent = replace(SMALL, own_actors=True)
    state = agent.init(KEY, SPEC)
    actions = [
        agent.greedy(state._replace(lead=state.lead._replace(leader=jnp.asarray(k))), jnp.ones(3))
        for k in range(3)
    ]
    assert not np.allclose(actions[0], actions[1])
    assert not np.allclose(actions[1], actions[2])
