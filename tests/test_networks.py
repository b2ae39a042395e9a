"""Networks: their outputs, their initial values, and agents that use them."""

from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from probes import stop_at

from rewardshift import (
    BCQ,
    CQL,
    DQN,
    MLP,
    SAC,
    TD3,
    InputError,
    OnlineBudget,
    resume,
    train,
)
from rewardshift.envs.tasks import TaskSpec, probe_spec
from rewardshift.training.run_folder import load

KEY = jax.random.key(0)
FLAT = TaskSpec(3, "float32")
MINIGRID = "MiniGrid-Empty-Random-6x6-v0"


def tensor(array: Any) -> torch.Tensor:
    return torch.tensor(np.asarray(array, np.float32))


def test_a_perceptron_is_torchs() -> None:
    network = MLP((5, 4))
    parameters = network.init(KEY, FLAT, 2, 3, "random")
    observation, others = jax.random.normal(KEY, (6, 3)), jax.random.uniform(KEY, (6, 2))
    values = torch.cat([tensor(observation), tensor(others)], dim=-1)
    for layer in parameters.hidden:
        values = (values @ tensor(layer.weight).T + tensor(layer.bias)).relu()
    values = values @ tensor(parameters.output.weight).T + tensor(parameters.output.bias)
    ours = network.apply(parameters, observation, others)
    np.testing.assert_allclose(ours, values.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("network", [MLP(()), MLP((5,))], ids=["linear", "one layer"])
def test_candidates_are_others_one_by_one(network: MLP) -> None:
    parameters = network.init(KEY, FLAT, 2, 3, "random")
    observation = jax.random.normal(KEY, (6, FLAT.features))
    others = jax.random.normal(KEY, (6, 4, 2))
    together = network.apply(parameters, observation, others)
    assert together.shape == (6, 4, 3)
    for k in range(4):
        alone = network.apply(parameters, observation, others[:, k])
        np.testing.assert_allclose(together[:, k], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [TD3, SAC, BCQ, CQL])
def test_values_start_at_zero_to_the_letter(kind: Any) -> None:
    spec = TaskSpec(3, "float32", action_size=2)
    observation, action = jnp.ones((5, 3)), jnp.ones((5, 2))
    for initial in ("zero", "random"):
        agent = kind(network=MLP((8,)), initial=initial)
        state = agent.init(KEY, spec)
        values = np.asarray(agent.values(state, observation, action))
        assert (values == 0).all() == (initial == "zero")
    assert np.abs(agent.greedy(state, observation[0])).max() > 0  # the policy is random


def test_a_dqn_starts_at_zero_and_leaves_it() -> None:
    agent = DQN(network=MLP((8,)), initial="zero", batch_size=8)
    state = agent.init(KEY, TaskSpec(3, "float32", num_actions=2))
    assert not np.asarray(agent.values(state, jnp.ones((5, 3)))).any()
    result = train(agent, "CartPole-v1", budget=OnlineBudget(steps=30))
    first = jax.tree.map(lambda leaf: leaf[0], result.state)
    assert np.asarray(agent.values(first, jnp.ones((5, 4)))).all()


def test_images_stay_images(tmp_path: Path) -> None:
    """Trained with uint8 in the replay, stopped, resumed bit for bit, and loaded."""
    assert probe_spec(MINIGRID) == TaskSpec(147, "uint8", 7, shape=(7, 7, 3))
    agent = DQN(network=MLP((8,), ((0, 10),)), batch_size=8, shift=(-0.5, 0.0))
    budget = OnlineBudget(steps=60, evaluate_every=30, evaluation_episodes=1, checkpoint_every=20)
    start = partial(train, agent, MINIGRID, seeds=2, budget=budget)
    assert not start(folder=tmp_path, on_progress=stop_at(45)).finished
    jax.tree.map(np.testing.assert_array_equal, resume(tmp_path).state, start().state)
    env = gym.make(MINIGRID)
    image = env.reset(seed=0)[0]["image"]
    assert 0 <= int(load(tmp_path, 0).act(image.reshape(-1))) < 7


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MLP((16, 0)), r"hidden must be up to 100 whole numbers of 1 or .* got \(16, 0\)"),
        (lambda: MLP(input_range=((1.0, 1.0),)), "a lower and a higher number"),
        (lambda: MLP(input_range=((0.0, float("inf")),)), "input_range must be pairs"),
    ],
)
def test_bad_networks_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
