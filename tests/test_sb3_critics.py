"""The Q functions that the doctor reads in models of Stable-Baselines3, sb3-contrib and SBX."""

from functools import partial
from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest
import sbx
import torch
from sb3_contrib import QRDQN, TQC
from sb3_makers import continuous, made
from stable_baselines3 import DDPG, DQN, SAC, TD3

from rewardshift import InputError
from rewardshift.integrations.sb3_critics import policy_actions, q_function
from rewardshift.integrations.sb3_doctor import DoctorCallback, agent_view

SEEN = np.eye(4, dtype=np.float32)
TABLE = [[1.0, 6.0, 0.0, 2.0], [3.0, 2.0, 5.0, 2.0]]


def constant(layer: Any, values: Any) -> None:
    """Makes the outputs of a linear layer constant."""
    layer.weight.data.zero_()
    layer.bias.data = torch.tensor(values, dtype=torch.float32)


def table(model: Any) -> None:
    model.q_net.q_net[0].weight.data = torch.tensor(TABLE)
    model.q_net.q_net[0].bias.data = torch.zeros(2)


def quantiles(model: Any) -> None:
    """Two quantiles of two actions, 1 below and 3 above the values of the first action."""
    layer = model.quantile_net.quantile_net[0]
    layer.weight.data = torch.tensor([TABLE[0]] * 4)
    layer.bias.data = torch.tensor([-1.0, -1.0, 3.0, 3.0])


def critics(model: Any, *values: Any) -> None:
    for network, one in zip(model.critic.q_networks, values, strict=True):
        constant(network[0], one)


def of_sbx(model: Any, critic: str, values: Any) -> None:
    state = model.policy.qf_state
    parameters = jax.tree.map(np.zeros_like, state.params)
    layers = parameters["params"][critic] if critic else parameters["params"]
    layers[max(layers)]["bias"] = np.array(values)
    model.policy.qf_state = state.replace(params=parameters)


PAIR = "VmapContinuousCritic_0"


@pytest.mark.parametrize(
    ("algorithm", "fix", "expected"),
    [
        (DQN, table, [1.0, 2.0, 0.0, 2.0]),  # of the actions 0, 1, 0, 1
        (QRDQN, quantiles, np.array(TABLE[0]) + 1.0),
        (sbx.DQN, partial(of_sbx, critic="", values=[1.0, 5.0]), [1.0, 5.0, 1.0, 5.0]),
        (DDPG, lambda model: critics(model, [7.0]), [7.0] * 4),
        (TD3, lambda model: critics(model, [7.0], [3.0]), [3.0] * 4),  # the smaller one
        (SAC, lambda model: critics(model, [3.0], [7.0]), [3.0] * 4),
        (sbx.TD3, partial(of_sbx, critic=PAIR, values=[[7.0], [5.0]]), [5.0] * 4),
        # The mean of the quantiles of both critics.
        (TQC, lambda model: critics(model, [1.0, 2.0, 6.0], [5.0, 6.0, 10.0]), [5.0] * 4),
    ],
)
def test_values_are_read_of_every_kind(algorithm: Any, fix: Any, expected: Any) -> None:
    layers: dict[str, Any] = {"net_arch": [4] if algorithm.__module__.startswith("sbx") else []}
    layers |= {"n_quantiles": {QRDQN: 2, TQC: 3}[algorithm]} if algorithm in (QRDQN, TQC) else {}
    model = made(algorithm, policy_kwargs=layers)
    fix(model)
    discrete = isinstance(model.action_space, gym.spaces.Discrete)
    actions = np.array([0, 1, 0, 1]) if discrete else np.zeros((4, 1), np.float32)
    np.testing.assert_allclose(q_function(model)(SEEN, actions), expected, rtol=1e-6)


def test_actions_are_as_the_replay_holds_them() -> None:
    model = made(TD3, policy_kwargs={"net_arch": []})  # of actions from -1 to 3
    constant(model.actor.mu[0], [np.arctanh(0.5)])
    actions = policy_actions(model, SEEN)
    np.testing.assert_allclose(actions, np.full((4, 1), 0.5), rtol=1e-6)
    np.testing.assert_allclose(agent_view(model).env_action(actions[0]), [2.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("algorithm", "options"), [(sbx.CrossQ, {}), (sbx.TD3, {"dropout_rate": 0.1})]
)
def test_an_agent_without_q_is_refused_before_it_trains(algorithm: Any, options: Any) -> None:
    model = made(algorithm, policy_kwargs={"net_arch": [4], **options})
    with pytest.raises(InputError, match=f"{algorithm.__name__} has no Q that can be read here"):
        model.learn(8, callback=DoctorCallback(continuous()))
    assert model.num_timesteps == 0
