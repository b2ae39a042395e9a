"""What agents of Stable-Baselines3 and SBX expect, beside the returns that follow."""

from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest
import sbx
import torch
from gymnasium.wrappers import TimeLimit
from stable_baselines3 import DQN, SAC, TD3
from stable_baselines3.common.env_util import make_vec_env

from rewardshift import InputError
from rewardshift.integrations.sb3 import VecShiftReward
from rewardshift.integrations.sb3_doctor import DoctorCallback, doctor


class Chain(gym.Env[np.ndarray, Any]):
    """Three rooms in a row, which pay 1, 2 and 4 to whoever leaves them; then it is over."""

    def __init__(self, *, continuous: bool = False) -> None:
        self.observation_space = gym.spaces.Box(0, 1, (3,))
        self.action_space = gym.spaces.Box(-2, 2, (1,)) if continuous else gym.spaces.Discrete(2)
        self.room = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, Any]:
        super().reset(seed=seed)
        self.room = 0
        return np.eye(3, dtype=np.float32)[0], {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.room += 1
        room = np.eye(4, 3, dtype=np.float32)[self.room]
        return room, 2.0 ** (self.room - 1), self.room == 3, False, {}


def chains(shift: Any, limit: int = 3, **kinds: Any) -> VecShiftReward:
    return VecShiftReward(make_vec_env(lambda: TimeLimit(Chain(**kinds), limit), n_envs=2), shift)


def looked(model: Any, limit: int) -> list[float]:
    """The estimates of a model that has played, the returns, and the difference."""
    continuous = isinstance(model.action_space, gym.spaces.Box)
    env = TimeLimit(Chain(continuous=continuous), limit)
    found: Any = doctor(model.learn(24), env, episodes=2)
    return [found.belief.estimate, found.belief.followed, found.belief.overestimation]


# Rewards shifted by -0.5 are 0.5, 1.5, 3.5; with gamma 0.5 the returns are 2.125, 3.25, 3.5.
# A limit of two steps leaves the agent in the last room, where it expects 5: 2.5 and 4.
RETURNS = [(3, (2.125 + 3.25 + 3.5) / 3), (2, (2.5 + 4) / 2)]
FROZEN: dict[str, Any] = {"gamma": 0.5, "learning_starts": 0, "gradient_steps": 0}


@pytest.mark.parametrize(("limit", "followed"), RETURNS)
def test_estimates_of_a_q_network(limit: int, followed: float) -> None:
    model = DQN("MlpPolicy", chains(-0.5, limit), policy_kwargs={"net_arch": []}, **FROZEN)
    values = torch.tensor([[1.0, 6.0, 0.0], [3.0, 2.0, 5.0]])
    layer = model.q_net.q_net[0]
    layer.weight.data, layer.bias.data = values, torch.zeros(2)
    expected = np.mean([3.0, 6.0, 5.0][:limit])
    assert looked(model, limit) == pytest.approx([expected, followed, expected - followed])


@pytest.mark.parametrize(("limit", "followed"), RETURNS)
@pytest.mark.parametrize("algorithm", [TD3, SAC])
def test_estimates_of_critics(algorithm: Any, limit: int, followed: float) -> None:
    model = algorithm(
        "MlpPolicy",
        chains(-0.5, limit, continuous=True),
        policy_kwargs={"net_arch": []},
        **FROZEN,
    )
    for critic, above in zip(model.critic.q_networks, (7.0, 0.0), strict=True):
        critic[0].weight.data = torch.tensor([[3.0, 6.0, 5.0, 0.0]])
        critic[0].bias.data = torch.tensor([above])
    expected = np.mean([3.0, 6.0, 5.0][:limit])
    assert looked(model, limit) == pytest.approx([expected, followed, expected - followed])


def test_critics_see_actions_as_the_buffer_holds_them() -> None:
    venv = chains(-0.5, 2, continuous=True)
    model = TD3("MlpPolicy", venv, policy_kwargs={"net_arch": []}, **FROZEN)
    actor = model.actor.mu[0]
    actor.weight.data = torch.zeros(1, 3)
    actor.bias.data = torch.atanh(torch.tensor([0.5]))  # half of the range: a torque of 1
    for critic in model.critic.q_networks:
        critic[0].weight.data = torch.tensor([[0.0, 0.0, 0.0, 10.0]])  # type: ignore[index]
        critic[0].bias.data = torch.zeros(1)  # type: ignore[index]
    assert looked(model, 2) == pytest.approx([5.0, 3.25, 1.75])


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [(sbx.CrossQ, {}), (sbx.TD3, {"dropout_rate": 0.1})],
)
def test_an_agent_without_q_is_refused_before_it_trains(algorithm: Any, options: Any) -> None:
    small = {"net_arch": [4], **options}
    model = algorithm("MlpPolicy", chains(-0.5, continuous=True), policy_kwargs=small)
    with pytest.raises(InputError, match=f"{algorithm.__name__} has no Q that can be read here"):
        model.learn(8, callback=DoctorCallback(Chain(continuous=True)))
    assert model.num_timesteps == 0


def last_bias(policy: Any, critic: str, values: Any) -> None:
    """Makes the values of SBX's networks constant: weights of zero and a bias at the end."""
    parameters = jax.tree.map(np.zeros_like, policy.qf_state.params)
    layers = parameters["params"][critic] if critic else parameters["params"]
    layers[max(layers)]["bias"] = np.array(values)
    policy.qf_state = policy.qf_state.replace(params=parameters)


@pytest.mark.parametrize(
    ("algorithm", "critic", "values"),
    [(sbx.DQN, "", [1.0, 5.0]), (sbx.TD3, "VmapContinuousCritic_0", [[7.0], [5.0]])],
)
def test_estimates_of_sbx(algorithm: Any, critic: str, values: Any) -> None:
    discrete = algorithm is sbx.DQN
    venv = chains(-0.5, 2, continuous=not discrete)
    model = algorithm("MlpPolicy", venv, policy_kwargs={"net_arch": [4]}, **FROZEN)
    last_bias(model.policy, critic, values)
    assert looked(model, 2) == pytest.approx([5.0, 3.25, 1.75])
