"""Lifetimes that the doctor tells, against simulations of the rules of target networks."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sbx
from sb3_contrib import QRDQN
from stable_baselines3 import DQN, SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure
from test_doctor_sb3 import discrete, made

import rewardshift
from rewardshift.integrations.sb3_doctor import agent_view

GAMMA = 0.98


def offset(network: Any) -> float:
    return float(next(iter(network.parameters())).detach().flatten()[0])


def fill(network: Any, value: float) -> None:
    for parameter in network.parameters():
        parameter.data.fill_(value)


def simulated(model: Any, online: Any, target: Any, calls: int, updates: int, n_step: int) -> float:
    """The lifetime of an offset in updates, with the model's own rule for its target network.

    Networks hold the offset alone; a round of training sets the online one to its target.
    """
    model.set_logger(configure(None, []))
    fill(online, 1.0)
    fill(target, 1.0)
    done = 0
    while offset(target) > np.exp(-3):
        for _ in range(calls):
            model._on_step()
        fill(online, GAMMA**n_step * offset(target))
        done += updates
    return float(-done / np.log(offset(target)))


@pytest.mark.parametrize("algorithm", [DQN, QRDQN])
@pytest.mark.parametrize(
    ("envs", "settings", "calls", "updates"),
    [
        (1, {"train_freq": 4, "target_update_interval": 40}, 4, 1),
        (1, {"train_freq": 16, "gradient_steps": 8, "target_update_interval": 600}, 16, 8),
        # Copies between two rounds of training change nothing.
        (1, {"train_freq": 256, "gradient_steps": 128, "target_update_interval": 10}, 256, 128),
        (1, {"train_freq": 12, "target_update_interval": 3, "tau": 0.05}, 12, 1),
        (2, {"train_freq": 8, "gradient_steps": -1, "target_update_interval": 20}, 8, 16),
        (1, {"train_freq": 4, "target_update_interval": 40, "n_steps": 5}, 4, 1),
    ],
)
def test_the_lifetime_of_a_dqn_is_that_of_its_target_rule(
    algorithm: Any, envs: int, settings: dict[str, Any], calls: int, updates: int
) -> None:
    more = {"gamma": GAMMA, "learning_starts": 0, "policy_kwargs": {"net_arch": []}, **settings}
    model = made(algorithm, make_vec_env(discrete, n_envs=envs), **more)
    told = agent_view(model).lifetime
    online = model.q_net if algorithm is DQN else model.quantile_net
    target = model.q_net_target if algorithm is DQN else model.quantile_net_target
    found = simulated(model, online, target, calls, updates, settings.get("n_steps", 1))
    # A lifetime is the first order of the exponential.
    assert told == pytest.approx(found, rel=0.1)


def test_episodes_between_two_rounds_of_training() -> None:
    settings = {"gamma": GAMMA, "train_freq": (1, "episode"), "target_update_interval": 20}
    model = made(DQN, gradient_steps=2, **settings)
    assert agent_view(model).lifetime is None  # nobody knows how long an episode is
    # An episode has four steps, so there are five rounds between two copies.
    assert agent_view(model.learn(80)).lifetime == pytest.approx(5 * 2 / (1 - GAMMA))


@pytest.mark.parametrize(
    ("updates", "interval", "every"), [(1, 8, 1.0), (4, 2, 2.0), (5, 2, 5 / 3)]
)
def test_sac_moves_its_target_network_in_the_first_update_of_a_round(
    updates: int, interval: int, every: float
) -> None:
    settings = {"gradient_steps": updates, "train_freq": 1, "target_update_interval": interval}
    model = made(SAC, gamma=GAMMA, tau=0.5, learning_rate=0.0, **settings).learn(22)
    fill(model.critic_target, 0.0)
    model.train(updates, batch_size=8)
    moves = np.log2(1 / (1 - offset(model.critic_target) / offset(model.critic)))
    assert updates / moves == pytest.approx(every, rel=1e-3)
    assert agent_view(model).lifetime == pytest.approx(every / (0.5 * (1 - GAMMA)))


@pytest.mark.parametrize("algorithm", [sbx.TD3, sbx.SAC])
def test_sbx_moves_its_target_network_in_every_update(algorithm: Any) -> None:
    model = made(algorithm, gamma=GAMMA, tau=0.5, learning_rate=0.0, policy_delay=4).learn(22)
    state = model.policy.qf_state
    nothing = jax.tree.map(jnp.zeros_like, state.target_params)
    model.policy.qf_state = state.replace(target_params=nothing)
    model.train(batch_size=8, gradient_steps=3)
    online, target = (
        jax.tree.leaves(getattr(model.policy.qf_state, name))[-1]
        for name in ("params", "target_params")
    )
    np.testing.assert_allclose(target, (1 - 0.5**3) * online, rtol=1e-5)
    assert agent_view(model).lifetime == pytest.approx(1 / (0.5 * (1 - GAMMA)))


@pytest.mark.parametrize("n_step", [1, 5])
def test_the_lifetime_of_our_dqn_with_several_rewards_in_a_target(n_step: int) -> None:
    agent = rewardshift.DQN(gamma=0.99, tau=0.005, n_step=n_step)
    offset, updates = 1.0, 0
    while offset > np.exp(-1):
        offset += agent.tau * (agent.gamma**n_step * offset - offset)
        updates += 1
    assert agent.lifetime == pytest.approx(updates, rel=0.01)
