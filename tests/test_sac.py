"""SAC against an implementation in torch, known values, and its members against single agents."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from probes import Aim, random_batch
from test_td3 import (
    BIASES,
    KEY,
    assert_same,
)
from test_td3 import SPEC as TASK
from test_whole_updates import (
    drawn,
    flat,
    follow,
    forward,
    layers,
    lower,
    normal,
    step,
    tensor,
    twins,
)

from rewardshift import SAC, OnlineBudget, train
from rewardshift.agents.base import Batch
from rewardshift.agents.gaussian_policy import squashed_log_density
from rewardshift.agents.networks import MLP, Learner
from rewardshift.agents.sac import SACState
from rewardshift.agents.selection import Optimistic

SMALL = SAC(
    shift=BIASES,
    gamma=0.5,
    network=MLP((16,)),
    learning_rate=3e-3,
    batch_size=16,
    tau=0.05,
    temperature=0.5,
    warm_up=50,
    lead_steps=0,
)
BUDGET = OnlineBudget(steps=1500, evaluate_every=1500, evaluation_episodes=1)
UPDATES, COUNT = 3, 6
Tensor = torch.Tensor


class TorchSAC:
    """SAC in double precision, whose policy follows the members by these weights."""

    def __init__(self, agent: SAC, state: SACState, weights: list[float]) -> None:
        self.agent, self.weights = agent, weights
        self.policy = layers(state.policy.parameters)
        pairs = [
            jax.tree.map(lambda leaf, k=k: leaf[k], state.critics.parameters) for k in range(3)
        ]
        self.critics, self.targets = [twins(p) for p in pairs], [twins(p) for p in pairs]
        self.log = torch.zeros((), dtype=torch.float64, requires_grad=True)
        rate = agent.learning_rate
        self.policy_adam = torch.optim.Adam(flat(self.policy), rate)
        self.critic_adam = torch.optim.Adam([w for pair in self.critics for w in flat(*pair)], rate)
        self.log_adam = torch.optim.Adam([self.log], rate)

    @property
    def temperature(self) -> float:
        fixed = self.agent.temperature
        return self.log.exp().item() if fixed is None else fixed

    def update(self, batch: Batch, key: Any) -> None:
        target_key, policy_key = jax.random.split(key)
        observation, following = tensor(batch.observation), tensor(batch.next_observation)
        going_on, loss = 1 - tensor(batch.terminated), torch.zeros((), dtype=torch.float64)
        with torch.no_grad():
            action, density = drawn(self.policy, following, normal(target_key, COUNT, 2))
        for shift, pair, targets in zip(
            self.agent.members, self.critics, self.targets, strict=True
        ):
            with torch.no_grad():
                value = lower(targets, following, action) - self.temperature * density
                target = tensor(batch.reward) + shift.bias + self.agent.gamma * going_on * value
            for critic in pair:
                error = forward(critic, observation, tensor(batch.action))[..., 0] - target
                loss = loss + (error**2).mean()
        step(self.critic_adam, loss)
        for pair, targets in zip(self.critics, self.targets, strict=True):
            follow(targets, pair)
        action, density = drawn(self.policy, observation, normal(policy_key, COUNT, 2))
        if self.agent.temperature is None:
            wanted = -2 if self.agent.target_entropy is None else self.agent.target_entropy
            step(self.log_adam, -self.log * (density.detach().mean() + wanted))
        values = [lower(pair, observation, action) for pair in self.critics]
        followed = sum(weight * v for weight, v in zip(self.weights, values, strict=True))
        step(self.policy_adam, (self.temperature * density - followed).mean())


MIXED = [0.25, 0.0, 0.75]  # the weights of Optimistic(0.25)


@pytest.mark.parametrize(
    ("changes", "weights"),
    [
        ({}, [0.0, 0.0, 1.0]),
        ({"temperature": None}, [0.0, 1.0, 0.0]),
        ({"temperature": None, "target_entropy": 0.5}, [1.0, 0.0, 0.0]),
        ({"temperature": 0.0, "selection": Optimistic(0.25)}, MIXED),
    ],
    ids=["fixed", "tuned", "own target", "mix of members"],
)
def test_whole_updates(changes: dict[str, Any], weights: list[float]) -> None:
    agent = replace(SMALL, network=MLP((6, 5)), tau=0.005, learning_rate=1e-2, **changes)
    state = led_by(agent.init(KEY, TASK), int(np.argmax(weights)))
    reference = TorchSAC(agent, state, weights)
    update = jax.jit(agent.update, static_argnums=3)
    for number in range(UPDATES):
        batch, key = random_batch(number, COUNT, actions=2), jax.random.key(10 + number)
        state, _ = update(state, batch, key, 0)
        reference.update(batch, key)
    pairs: list[tuple[Any, list[Tensor]]] = [(state.policy.parameters, flat(reference.policy))]
    nets = (
        (state.critics.parameters, reference.critics),
        (state.target_critics, reference.targets),
    )
    for k, i in ((0, 0), (1, 1), (2, 0)):
        for ours, theirs in nets:
            one = jax.tree.map(lambda leaf, k=k, i=i: leaf[k, i], ours)
            pairs.append((one, flat(theirs[k][i])))
    if isinstance(state.temperature, Learner):
        assert abs(float(state.temperature.parameters)) > 0.01
        pairs.append((state.temperature.parameters, [reference.log]))
    assert (agent.temperature is None) == isinstance(state.temperature, Learner)
    for learned_here, learned_there in pairs:
        for x, y in zip(jax.tree.leaves(learned_here), learned_there, strict=True):
            np.testing.assert_allclose(x, y.detach().numpy(), rtol=1e-4, atol=2e-6)


def led_by(state: SACState, k: int) -> SACState:
    return state._replace(lead=state.lead._replace(leader=jnp.asarray(k, jnp.int32)))


def run(agent: SAC, env: Any, steps: int = 1500) -> SACState:
    budget = replace(BUDGET, steps=steps, evaluate_every=steps)
    result = train(agent, env, seeds=1, budget=budget)
    return jax.tree.map(lambda leaf: leaf[0], result.state)


def density(state: SACState, observation: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Actions on a fine grid, and the policy's density there."""
    actions = np.linspace(-1, 1, 20_001)[1:-1]
    outputs = SMALL.network.apply(state.policy.parameters, jnp.asarray(observation))
    logs = squashed_log_density(
        jnp.broadcast_to(outputs, (len(actions), 2)), jnp.asarray(actions, jnp.float32)[:, None]
    )
    return actions, np.exp(np.asarray(logs, np.float64))


def entropy(state: SACState, observation: list[float]) -> float:
    """The policy's entropy, integrated over the grid."""
    actions, p = density(state, observation)
    assert np.trapezoid(p, actions) == pytest.approx(1, abs=0.01)
    return float(np.trapezoid(-p * np.log(np.maximum(p, 1e-30)), actions))


def test_the_policy_is_as_wide_as_the_temperature_says() -> None:
    """The best policy is exp(Q / temperature): here a Gaussian with variance temperature / 8."""
    agent = replace(SMALL, shift=0.5, temperature=0.2, network=MLP((32, 32)), warm_up=300)
    actions, p = density(run(agent, partial(Aim, goal=1.0), 3000), [1.0])
    mean = np.trapezoid(p * actions, actions)
    deviation = np.sqrt(np.trapezoid(p * (actions - mean) ** 2, actions))
    assert mean == pytest.approx(0, abs=0.05)
    assert deviation == pytest.approx(np.sqrt(0.2 / 8), rel=0.25)


@pytest.mark.parametrize("target", [-1.0, 0.3])
def test_a_tuned_temperature_brings_the_entropy_to_its_target(target: float) -> None:
    agent = replace(SMALL, shift=0.0, temperature=None, target_entropy=target, warm_up=300)
    agent = replace(agent, network=MLP((32, 32)), learning_rate=1e-2)
    state = run(agent, partial(Aim, goal=1.0), 3000)
    assert entropy(state, [1.0]) == pytest.approx(target, abs=0.2)


def test_the_value_is_the_leaders_or_the_mix() -> None:
    state, observation = SMALL.init(KEY, TASK), jnp.ones(3)
    all_values = SMALL.values(state, observation[None], SMALL.greedy(state, observation)[None])
    for k in range(3):
        assert_same(SMALL.policy_value(led_by(state, k), observation), all_values[k, 0])
    mixed = replace(SMALL, selection=Optimistic(0.25)).policy_value(state, observation)
    assert_same(mixed, np.asarray(MIXED) @ all_values[:, 0])


def test_exploration_is_random_at_first_and_the_policys_then() -> None:
    state, observation = SMALL.init(KEY, TASK), jnp.ones(3)
    draws = jnp.asarray([0.0, 0.75])
    first, later = SMALL.exploration(49, 1000), SMALL.exploration(50, 1000)
    np.testing.assert_allclose(SMALL.act(state, observation, draws, first), [-1.0, 0.5])
    middle = SMALL.act(state, observation, jnp.asarray([0.5, 0.5]), later)
    np.testing.assert_allclose(middle, SMALL.greedy(state, observation), atol=1e-6)
    outputs = np.asarray(SMALL.network.apply(state.policy.parameters, observation))
    mean, log_deviation = np.split(outputs, 2)
    one_deviation_up = SMALL.act(state, observation, jnp.full(2, 0.8413447), later)
    np.testing.assert_allclose(one_deviation_up, np.tanh(mean + np.exp(log_deviation)), rtol=1e-4)
    assert np.isfinite(SMALL.act(state, observation, draws, later)).all()
