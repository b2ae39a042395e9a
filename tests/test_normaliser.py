"""Observations on a common scale, and what agents see of them and do."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import Probe, random_batch
from test_agent_runs import stopped_and_resumed

from rewardshift import DQN, SAC, TD3, InputError, load
from rewardshift.agents.base import Batch
from rewardshift.agents.networks import MLP
from rewardshift.agents.normaliser import Normaliser
from rewardshift.envs.tasks import TaskSpec

SMALL: dict[str, Any] = {"network": MLP((8,)), "batch_size": 8, "normalise": True}
AGENT = TD3(**SMALL, warm_up=20, random_actions=0.3)


def test_scales_stay_right_far_from_zero_and_over_long_training() -> None:
    """A mean of 1,000 with a deviation of 1, which moves after a quarter of the steps."""
    noise = np.random.default_rng(0).normal(size=(400_000, 1)).astype(np.float32)
    seen = (1000 + noise + (np.arange(len(noise)) > 100_000)[:, None]).astype(np.float32)
    normaliser, _ = jax.lax.scan(
        lambda n, x: (n.add(x), None),
        Normaliser.start(TaskSpec(1, "float32")),
        jnp.asarray(seen),
    )
    exact = (seen[:100].astype(np.float64) - seen.mean(dtype=np.float64)) / seen.std(
        dtype=np.float64
    )
    np.testing.assert_allclose(normaliser.scale(jnp.asarray(seen[:100])), exact, atol=0.01)


def test_observations_are_scaled_by_what_was_seen() -> None:
    seen = np.random.default_rng(0).normal(3.0, [0.5, 2.0, 0.0], (500, 3)).astype(np.float32)
    spec = TaskSpec(3, "float32")
    normaliser = Normaliser.start(spec)
    normaliser, _ = jax.lax.scan(lambda n, x: (n.add(x), None), normaliser, jnp.asarray(seen))
    deviation = np.maximum(seen.std(axis=0), 0.01)
    expected = np.clip((seen - seen.mean(axis=0)) / deviation, -5, 5)
    np.testing.assert_allclose(normaliser.scale(jnp.asarray(seen)), expected, atol=1e-3)
    far = normaliser.scale(jnp.asarray([[1e6, -1e6, 3.0]]))
    np.testing.assert_allclose(far, [[5.0, -5.0, 0.0]], atol=1e-3)
    assert np.isfinite(Normaliser.start(spec).scale(jnp.asarray(seen))).all()


def test_goals_have_the_scale_of_what_is_achieved() -> None:
    """Also where always the same one is desired: what is relabelled must not be at the edge."""
    achieved = np.random.default_rng(0).normal(0.0, 2.0, 500).astype(np.float32)
    seen = np.stack([10 * achieved, achieved, np.full(500, 4.0, np.float32)], axis=1)
    normaliser, _ = jax.lax.scan(
        lambda n, x: (n.add(x), None),
        Normaliser.start(TaskSpec(3, "float32", action_size=1, goal_size=1)),
        jnp.asarray(seen),
    )
    both = np.concatenate([achieved, np.full(500, 4.0)])
    mean = np.array([10 * achieved.mean(), both.mean(), both.mean()])
    deviation = np.array([10 * achieved.std(), both.std(), both.std()])
    one = np.array([10.0, 1.0, -2.0])
    scaled, expected = normaliser.scale(jnp.asarray(one)), (one - mean) / deviation
    np.testing.assert_allclose(scaled, expected, atol=1e-3)


def looked_around(agent: Any, seen: np.ndarray) -> Any:
    """A fresh state of the agent after it has acted on these observations."""
    actions: dict[str, Any] = {"action_size": 2} if agent.continuous else {"num_actions": 2}
    state = agent.init(jax.random.key(0), TaskSpec(5, "float32", **actions))
    for observation in seen:
        state, _ = agent.observe(state, jnp.asarray(observation))
    return state


def some_batch(agent: Any, seen: np.ndarray) -> Batch:
    batch = random_batch(1, 8, 5, 2 if agent.continuous else 0)
    return batch._replace(
        observation=jnp.asarray(seen[:8]), next_observation=jnp.asarray(seen[8:16])
    )


assert_close = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6)
SEEN = np.random.default_rng(0).normal(3.0, 2.0, (20, 5)).astype(np.float32)
every_agent = pytest.mark.parametrize(
    "agent", [AGENT, SAC(**SMALL), DQN(**SMALL, double=True)], ids=lambda a: type(a).__name__
)


@every_agent
def test_an_agent_sees_what_is_scaled(agent: Any) -> None:
    """Updates, values and actions on raw data equal those on data that were scaled beforehand."""
    state, batch = looked_around(agent, SEEN), some_batch(agent, SEEN)
    assert isinstance(state.normaliser, Normaliser)
    scaled = batch._replace(
        observation=state.normaliser.scale(batch.observation),
        next_observation=state.normaliser.scale(batch.next_observation),
    )
    plain = replace(agent, normalise=False)
    key, bare = jax.random.key(1), state._replace(normaliser=())
    turn = agent.period - 1
    ours, _ = agent.update(state, batch, key, turn)
    theirs, _ = plain.update(bare, scaled, key, turn)
    jax.tree.map(np.testing.assert_array_equal, ours._replace(normaliser=()), theirs)
    actions = (batch.action,) if agent.continuous else ()
    assert_close(
        agent.values(state, batch.observation, *actions),
        plain.values(bare, scaled.observation, *actions),
    )
    one, same = batch.observation[0], scaled.observation[0]
    assert_close(agent.greedy(state, one), plain.greedy(bare, same))
    draws = jnp.full(agent.draws(TaskSpec(5, "float32", 2, 2)), 0.4)
    explore = False if agent.continuous else 0.1
    assert_close(agent.act(state, one, draws, explore), plain.act(bare, same, draws, explore))


def test_a_stopped_run_goes_on_and_its_policy_keeps_the_scale(tmp_path: Path) -> None:
    agent = DQN(network=MLP((4,)), batch_size=4, normalise=True, shift=(-0.5, 0.5))
    resumed = stopped_and_resumed(agent, tmp_path, partial(Probe, 3, pays=(1.0, 0.0)))
    assert (np.asarray(resumed.state.normaliser.seen) >= 2 * 160).all()
    policy = resumed.policy()
    loaded = load(tmp_path / "cut")
    observation = np.eye(3, dtype=np.float32)[0]
    np.testing.assert_array_equal(loaded.act(observation), policy.act(observation))
    row = jax.tree.map(lambda leaf: leaf[0], resumed.state)
    assert int(policy.act(observation)) == int(agent.greedy(row, jnp.asarray(observation)))


def test_two_scales_at_once_are_refused() -> None:
    network = MLP((4,), input_range=((0, 1),))
    for agent in (DQN, TD3, SAC):
        with pytest.raises(InputError, match=r"normalise .* needs input_range=\(\), got \(\(0.0"):
            agent(network=network, normalise=True)


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
