"""DQN on environments with known values, and its target against a plain computation."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from probes import Probe, ending, random_batch

from rewardshift import InputError
from rewardshift.agents.base import Batch
from rewardshift.agents.dqn import DQN, DQNState
from rewardshift.agents.intrinsic import RND
from rewardshift.agents.networks import MLP
from rewardshift.envs.tasks import TaskSpec
from rewardshift.training.budgets import OnlineBudget
from rewardshift.training.runs import train

BIASES = (-0.5, 0.0, 0.5)
SMALL = DQN(shift=BIASES, gamma=0.5, network=MLP((16,)), learning_rate=3e-3, batch_size=16)
BUDGET = OnlineBudget(steps=1500, evaluate_every=1500, evaluation_episodes=1)
KEY = jax.random.key(0)
SPEC = TaskSpec(3, "float32", 2)
terminals = pytest.mark.parametrize("terminal", ["zero", "absorbing"])


@pytest.mark.parametrize("double", [False, True])
def test_the_better_of_two_actions(double: bool) -> None:
    agent = replace(SMALL, double=double)
    result = train(agent, partial(Probe, pays=(-1.0, 1.0)), seeds=1, budget=BUDGET)
    state = jax.tree.map(lambda leaf: leaf[0], result.state)
    values = agent.values(state, jnp.ones((1, 1)))[:, 0]
    expected = [[-1 + b, 1 + b] for b in BIASES]
    np.testing.assert_allclose(values, expected, atol=0.1)


def plain_target(agent: DQN, state: DQNState, batch: Batch, member: int) -> np.ndarray:
    """The target, one transition at a time."""
    target: Any = jax.tree.map(lambda leaf: leaf[member], state.target)
    online: Any = jax.tree.map(lambda leaf: leaf[member], state.online.parameters)
    result = []
    for i in range(len(batch.reward)):
        following = batch.next_observation[i]
        values = np.asarray(agent.network.apply(target, following))
        choice = np.asarray(agent.network.apply(online, following)) if agent.double else values
        n, end, b = int(batch.steps[i]), bool(batch.terminated[i]), agent.members[member].bias
        n = n if agent.n_step > 1 else 1
        reward = float(batch.reward[i]) + sum(b * agent.gamma**j for j in range(n))
        if isinstance(agent.intrinsic, RND):
            networks = (state.intrinsic.predictor.parameters, state.intrinsic.fixed)
            predicted, fixed = (agent.network.apply(one, batch.observation[i]) for one in networks)
            difference = predicted - fixed
            fresh = min(float((difference**2).sum()), 1.0)
            stored = agent.intrinsic.evaluated == "stored"
            b_all = b + agent.intrinsic.shift
            reward += (float(batch.intrinsic[i]) if stored else fresh) + agent.intrinsic.shift
        else:
            b_all = b
        if agent.members[0].terminal == "absorbing" and end:
            reward += agent.gamma**n * b_all / (1 - agent.gamma)
        result.append(reward + (0 if end else agent.gamma**n * values[choice.argmax()]))
    return np.array(result)


@terminals
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"double": True},
        {"n_step": 3},
        {"intrinsic": RND(-1.5, width=8)},
        {"intrinsic": RND(0.0, width=8, evaluated="stored")},
    ],
)
def test_the_target_by_hand(terminal: Any, changes: dict[str, Any]) -> None:
    agent = replace(ending(SMALL, terminal), **changes)
    state = agent.init(KEY, SPEC)
    state = state._replace(target=agent.init(jax.random.key(1), SPEC).online.parameters)
    batch = random_batch(2)
    fresh = isinstance(agent.intrinsic, RND) and agent.intrinsic.evaluated == "fresh"
    bonus = agent._bonus(state, batch.observation) if fresh else batch.intrinsic
    ours = agent._target(state, batch, bonus)
    for member in range(len(BIASES)):
        np.testing.assert_allclose(
            ours[member], plain_target(agent, state, batch, member), rtol=1e-4, atol=1e-5
        )


def test_scaled_inputs_are_those_of_a_scaled_task() -> None:
    """With the range of the inputs, a DQN learns from observations as from scaled ones."""
    batch = random_batch(0)
    low, high = np.array([-4.0, -3.0, -5.0]), np.array([4.0, 5.0, 3.0])
    scaled = batch._replace(
        observation=(batch.observation - low) / (high - low),
        next_observation=(batch.next_observation - low) / (high - low),
    )
    agent = replace(SMALL, network=MLP((16,), input_range=tuple(zip(low, high, strict=True))))
    ours, _ = agent.update(agent.init(KEY, SPEC), batch, KEY, 0)
    theirs, _ = SMALL.update(SMALL.init(KEY, SPEC), scaled, KEY, 0)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-7), ours, theirs)
    values = agent.values(ours, batch.observation)
    np.testing.assert_allclose(values, SMALL.values(theirs, scaled.observation), atol=1e-5)
    seen = [int(agent.greedy(ours, one)) for one in batch.observation]
    assert seen == [int(SMALL.greedy(theirs, one)) for one in scaled.observation]
    two_ranges = replace(SMALL, network=MLP(input_range=((0.0, 1.0),) * 2))
    with pytest.raises(InputError, match="one pair, or one for each of the 3 numbers"):
        train(two_ranges, partial(Probe, 3), seeds=1, budget=BUDGET)


def test_gradients_that_pile_up_are_sums() -> None:
    """Two updates with gradients that pile up: Adam sees g1, then g1 + g2."""
    states = jnp.asarray(np.random.default_rng(0).normal(size=(2, 5, 3)), jnp.float32)
    piled, clean = RND(width=8, clear_gradients=False), RND(width=8)
    state = piled.init(KEY, 3)
    error = partial(clean._error, fixed=state.fixed)
    adam = optax.adam(piled.learning_rate)
    predictor: Any = state.predictor.parameters
    moments, total = adam.init(predictor), jax.tree.map(jnp.zeros_like, predictor)
    for batch in states:
        gradient = jax.grad(lambda p, b=batch: error(p, observation=b).mean())(predictor)
        total = jax.tree.map(jnp.add, total, gradient)
        updates, moments = adam.update(total, moments)
        predictor = optax.apply_updates(predictor, updates)
        state = piled.update(state, batch)
    jax.tree.map(
        partial(np.testing.assert_allclose, rtol=1e-5), state.predictor.parameters, predictor
    )


def test_the_leader_acts_and_changes_only_between_episodes() -> None:
    agent = replace(SMALL, shift=tuple(range(50)))
    state = agent.init(KEY, SPEC)
    kept = agent.lead(state, jnp.asarray(0.99), False, 0.0)
    assert int(kept.lead.leader) == int(state.lead.leader)
    for leader in range(50):
        led = agent.lead(state, jnp.asarray((leader + 0.5) / 50), True, 0.0)
        assert int(led.lead.leader) == leader
    observation = jnp.ones(3)
    for leader in range(5):
        led = state._replace(lead=state.lead._replace(leader=jnp.asarray(leader)))
        best = agent.values(led, observation)[leader].argmax()
        assert int(agent.greedy(led, observation)) == int(best)
        assert int(agent.act(led, observation, jnp.asarray([0.5, 0.0]), 0.4)) == int(best)


def test_exploration_takes_every_action_alike() -> None:
    state, observation = SMALL.init(KEY, SPEC), jnp.ones(3)
    for action in range(SPEC.num_actions):
        draws = jnp.asarray([0.5, (action + 0.5) / SPEC.num_actions])
        assert int(SMALL.act(state, observation, draws, 0.6)) == action


def test_epsilon_follows_the_paper() -> None:
    paper = DQN()
    assert paper.exploration(0, 1000) == 0.9
    assert paper.exploration(100, 1000) == pytest.approx(0.475)
    assert paper.exploration(200, 1000) == pytest.approx(0.05)
    assert paper.exploration(900, 1000) == 0.05


# --- intrinsic rewards ---------------------------------------------------------------------


def test_rnd_gets_used_to_what_it_sees() -> None:
    rnd = RND(width=32, learning_rate=1e-3)
    state = rnd.init(KEY, 3)
    seen, unseen = jnp.ones((8, 3)), -3 * jnp.ones((8, 3))
    before = rnd.bonus(state, seen)
    for _ in range(200):
        state = rnd.update(state, seen)
    after = rnd.bonus(state, seen)
    assert (after < 0.1 * before).all()
    assert (rnd.bonus(state, unseen) > after).all()
    assert (rnd.bonus(state, 100 * unseen) == 1).all()
