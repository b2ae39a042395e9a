"""Lifetimes that the doctor tells, against simulations of the rules of target networks."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sbx
from sb3_contrib import QRDQN
from sb3_makers import discrete, made
from stable_baselines3 import DQN, SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure

from rewardshift.integrations.sb3_doctor import agent_view

GAMMA = 0.98


def offset(network: Any) -> float:
    return float(next(iter(network.parameters())).detach().flatten()[0])


def fill(network: Any, value: float) -> None:
    for parameter in network.parameters():
        parameter.data.fill_(value)


def simulated(model: Any, calls: int, updates: int, n_step: int) -> float:
    """The lifetime of an offset in updates, with the model's own rule for its target network.

    Networks hold the offset alone; a round of training sets the online one to its target.
    """
    name = "q_net" if isinstance(model, DQN) else "quantile_net"
    online, target = getattr(model, name), getattr(model, f"{name}_target")
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
    # A lifetime is the first order of the exponential.
    found = simulated(model, calls, updates, settings.get("n_steps", 1))
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


def test_sbx_moves_its_target_network_in_every_update() -> None:
    model = made(sbx.TD3, gamma=GAMMA, tau=0.5, learning_rate=0.0, policy_delay=4).learn(22)
    state = model.policy.qf_state
    nothing = jax.tree.map(jnp.zeros_like, state.target_params)
    model.policy.qf_state = state.replace(target_params=nothing)
    model.train(batch_size=8, gradient_steps=3)
    state = model.policy.qf_state
    online, target = (jax.tree.leaves(one)[-1] for one in (state.params, state.target_params))
    np.testing.assert_allclose(target, (1 - 0.5**3) * online, rtol=1e-5)
    assert agent_view(model).lifetime == pytest.approx(1 / (0.5 * (1 - GAMMA)))
