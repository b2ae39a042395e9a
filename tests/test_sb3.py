"""The shift in Stable-Baselines3 and SBX: real agents, trained, and what is in their buffers."""

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest
import torch
from gymnasium.wrappers import TimeLimit
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3 import DQN, PPO, SAC, TD3, HerReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecCheckNan,
    VecFrameStack,
    VecNormalize,
)

from rewardshift import Shift, ShiftReward
from rewardshift.envs.bits import BitFlip
from rewardshift.integrations.sb3 import OverestimationCallback, VecShiftReward

GAMMA = 0.9
EXACT = Shift(-0.5, scale=2.0, gamma=GAMMA, terminal="absorbing")
SMALL: dict[str, Any] = {"policy_kwargs": {"net_arch": [16]}, "seed": 0, "device": "cpu"}


def short_cartpole() -> gym.Env[Any, Any]:
    """Episodes that sometimes terminate and sometimes run into a time limit."""
    return TimeLimit(gym.make("CartPole-v1").unwrapped, 12)


def buffered(model: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """The replay buffer of a model, the rewards in it, and where it cuts the bootstrap."""
    buffer = model.replay_buffer
    rows = slice(None) if buffer.full else slice(buffer.pos)
    return buffer, buffer.rewards[rows], buffer.dones[rows] * (1 - buffer.timeouts[rows])


# --- the wrapper ---------------------------------------------------------------------------


@given(
    bias=st.floats(-10, 10),
    scale=st.floats(0.1, 10),
    gamma=st.floats(0, 0.99),
    terminal=st.sampled_from(["zero", "absorbing"]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=25)
def test_rewards_are_shifted_and_everything_else_is_left(
    bias: float, scale: float, gamma: float, terminal: Any, seed: int
) -> None:
    venv = VecShiftReward(
        DummyVecEnv([short_cartpole] * 2), Shift(bias, scale, gamma, terminal=terminal)
    )
    twin = DummyVecEnv([short_cartpole] * 2)
    venv.seed(seed), twin.seed(seed)
    np.testing.assert_array_equal(venv.reset(), twin.reset())
    for step in range(15):
        actions = np.array([0, step % 2])  # falls; holds out until the limit
        observations, rewards, dones, infos = venv.step(actions)
        expected_observations, primal, expected_dones, twin_infos = twin.step(actions)
        np.testing.assert_array_equal(observations, expected_observations)
        np.testing.assert_array_equal(dones, expected_dones)
        for row, info in enumerate(twin_infos):
            ended = dones[row] and not info["TimeLimit.truncated"]
            credit = gamma * bias / (1 - gamma) if ended and terminal == "absorbing" else 0
            assert rewards[row] == pytest.approx(scale * primal[row] + bias + credit, rel=1e-5)
            assert infos[row]["primal_reward"] == primal[row]
            assert infos[row].get("terminated") == (ended if terminal == "absorbing" else None)
        assert rewards.dtype == np.float32


@pytest.mark.parametrize("norm_reward", [True, False])
@pytest.mark.parametrize("around", [lambda venv: venv, VecCheckNan])
def test_a_shift_outside_of_vecnormalize_is_refused(norm_reward: bool, around: Any) -> None:
    inner = VecNormalize(DummyVecEnv([short_cartpole]), norm_reward=norm_reward)
    with pytest.raises(ValueError, match=r"VecNormalize\(VecShiftReward\(venv, shift\)\)"):
        VecShiftReward(around(inner), -0.5)


def test_a_second_shift_is_refused() -> None:
    once = VecFrameStack(VecShiftReward(DummyVecEnv([short_cartpole]), -0.5), 2)
    with pytest.raises(ValueError, match=r"shifted already, by Shift\(bias=-0\.5"):
        VecShiftReward(once, -0.25)
    inside = DummyVecEnv([short_cartpole, lambda: ShiftReward(short_cartpole(), 3.0)])
    with pytest.raises(ValueError, match=r"shifted already, by Shift\(bias=3\.0"):
        VecShiftReward(inside, -0.25)


@pytest.mark.parametrize(
    ("shift", "error", "match"),
    [
        (float("nan"), ValueError, "nan"),
        (Shift(np.array([0.0, 1.0])), ValueError, "one bias"),
        ({"bias": 1.0, "offset": 2}, ValueError, "offset"),
    ],
)
def test_a_bad_shift_is_refused(shift: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        VecShiftReward(DummyVecEnv([short_cartpole]), shift)


def test_a_single_environment_is_refused() -> None:
    with pytest.raises(TypeError, match="ShiftReward takes one environment"):
        VecShiftReward(short_cartpole(), -0.5)  # type: ignore[arg-type]


def test_environments_in_processes_of_their_own() -> None:
    limited = partial(gym.make, "CartPole-v1", max_episode_steps=2)
    venv = VecShiftReward(SubprocVecEnv([limited] * 2, start_method="spawn"), EXACT)
    venv.reset()
    steps = [venv.step(np.array([0, 1])) for _ in range(3)]
    venv.close()
    assert [rewards.tolist() for _, rewards, _, _ in steps] == [[1.5, 1.5]] * 3  # no end, a limit
    assert [dones.tolist() for _, _, dones, _ in steps] == [[False] * 2, [True] * 2, [False] * 2]


def test_a_shift_in_another_process_is_found() -> None:
    spec = ShiftReward(gym.make("CartPole-v1"), 3.0).spec
    assert spec is not None
    inside = SubprocVecEnv([partial(gym.make, spec)], start_method="spawn")
    with pytest.raises(ValueError, match=r"shifted already, by Shift\(bias=3\.0"):
        VecShiftReward(inside, -0.25)
    inside.close()


# --- trained agents ------------------------------------------------------------------------


def test_dqn_stores_shifted_rewards_and_logs_primal_returns(tmp_path: Path) -> None:
    venv = VecShiftReward(make_vec_env(short_cartpole, n_envs=2, seed=0), EXACT)
    model = DQN("MlpPolicy", venv, gamma=GAMMA, learning_starts=100, **SMALL)
    model.learn(3000)
    buffer, rewards, ended = buffered(model)
    assert rewards.shape == (1500, 2)
    np.testing.assert_allclose(rewards, 2.0 - 0.5 + ended * GAMMA * -0.5 / (1 - GAMMA), rtol=1e-6)
    assert 0 < ended.sum() < buffer.dones.sum()  # ends and time limits
    assert {info["r"] == info["l"] for info in model.ep_info_buffer or ()} == {True}
    returns, lengths = evaluate_policy(model, venv, 4, return_episode_rewards=True)
    assert returns == lengths
    model.save(tmp_path / "model")
    again = DQN.load(tmp_path / "model", env=venv)
    again.learn(100, reset_num_timesteps=False)
    again.set_env(VecShiftReward(make_vec_env(short_cartpole, n_envs=2), -3.0))
    again.learn(100, reset_num_timesteps=False)
    assert set(buffered(again)[1][-10:].ravel().tolist()) == {-2.0}


def test_td3_stores_shifted_rewards() -> None:
    venv = VecShiftReward(make_vec_env("Pendulum-v1", seed=0), EXACT)
    model = TD3("MlpPolicy", venv, gamma=GAMMA, learning_starts=500, train_freq=4, **SMALL)
    model.learn(2000)
    buffer, rewards, ended = buffered(model)
    assert rewards.shape == (2000, 1)
    assert not ended.any()  # only time limits, so nothing is credited
    cos, sin, speed = buffer.observations[:2000, 0].T
    torque = 2 * buffer.actions[:2000, 0, 0]
    primal = -(np.arctan2(sin, cos) ** 2 + 0.1 * speed**2 + 0.001 * torque**2)
    np.testing.assert_allclose(rewards[:, 0], 2 * primal - 0.5, rtol=1e-4)


def her(shift: Any, **buffer: Any) -> Any:
    venv = VecShiftReward(
        make_vec_env(lambda: TimeLimit(BitFlip(bits=5), 5), n_envs=2, seed=0), shift
    )
    return DQN(
        "MultiInputPolicy",
        venv,
        gamma=GAMMA,
        learning_starts=100,
        replay_buffer_class=HerReplayBuffer,
        replay_buffer_kwargs={"goal_selection_strategy": "episode", **buffer},
        **SMALL,
    )


@pytest.mark.parametrize("shift", [EXACT, Shift(1.0)], ids=["absorbing", "zero"])
def test_hindsight_relabels_with_shifted_rewards(shift: Shift) -> None:
    model = her(shift, copy_info_dict=shift.terminal == "absorbing")
    model.learn(3000)
    batch = model.replay_buffer.sample(2000)
    goals = batch.observations["desired_goal"], batch.next_observations["achieved_goal"]
    differ = (goals[0] != goals[1]).any(dim=1).numpy()
    ended = batch.dones[:, 0].numpy()
    assert (~differ & (ended == 0)).any()  # reached in hindsight alone
    assert (differ & (ended == 1)).any()  # ended at a goal that it is not relabelled with
    credit = GAMMA * shift.bias / (1 - GAMMA) if shift.terminal == "absorbing" else 0.0
    expected = shift.scale * -differ.astype(float) + shift.bias + credit * ended
    np.testing.assert_allclose(batch.rewards[:, 0].numpy(), expected, rtol=1e-6)


def test_absorbing_hindsight_needs_the_infos() -> None:
    with pytest.raises(ValueError, match="copy_info_dict=True"):
        her(EXACT).learn(300)


def test_compute_reward_of_one_transition() -> None:
    venv = VecShiftReward(DummyVecEnv([lambda: BitFlip(bits=2)] * 2), EXACT)
    goals = {"achieved_goal": np.array([0, 1]), "desired_goal": np.array([1, 1])}
    assert venv.env_method("compute_reward", **goals, info={"terminated": False}) == [-2.5, -2.5]
    ended = venv.env_method("compute_reward", *goals.values(), {"terminated": True}, indices=1)
    assert ended == [pytest.approx(-2.5 - 4.5)]
    assert venv.env_method("get_wrapper_attr", "bits") == [2, 2]


@pytest.mark.parametrize("norm_reward", [True, False])
def test_vecnormalize_outside_keeps_the_shift(norm_reward: bool) -> None:
    shifted = VecShiftReward(make_vec_env(short_cartpole, seed=0), -3.0)
    venv = VecNormalize(shifted, norm_reward=norm_reward)
    model = DQN("MlpPolicy", venv, learning_starts=50, **SMALL)
    model.learn(200)
    assert set(buffered(model)[1].ravel().tolist()) == {-2.0}


# --- estimates beside returns --------------------------------------------------------------


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


def logged(model: Any, steps: int, callback: Any = None) -> list[float]:
    model.learn(steps, callback=callback or OverestimationCallback(), log_interval=10**6)
    names = ("q_estimate", "return_that_followed", "overestimation")
    return [model.logger.name_to_value[f"shift/{name}"] for name in names]


# Rewards shifted by -0.5 are 0.5, 1.5, 3.5; with gamma 0.5 the returns are 2.125, 3.25, 3.5.
# A limit of two steps leaves the agent in the last room, where it expects 5: 2.5 and 4.
RETURNS = [(3, (2.125 + 3.25 + 3.5) / 3), (2, (2.5 + 4) / 2)]
FROZEN: dict[str, Any] = {"gamma": 0.5, "learning_starts": 0, "gradient_steps": 0}


@pytest.mark.parametrize(("limit", "followed"), RETURNS)
def test_estimates_of_a_q_network(limit: int, followed: float) -> None:
    model = DQN(
        "MlpPolicy",
        chains(-0.5, limit),
        exploration_initial_eps=0,
        exploration_final_eps=0,
        policy_kwargs={"net_arch": []},
        **FROZEN,
    )
    values = torch.tensor([[1.0, 6.0, 0.0], [3.0, 2.0, 5.0]])
    layer = model.q_net.q_net[0]
    layer.weight.data, layer.bias.data = values, torch.zeros(2)
    expected = np.mean([3.0, 6.0, 5.0][:limit])
    callback = OverestimationCallback()
    model.learn(2 * (limit - 1), callback=callback)  # ends in the middle of an episode
    assert logged(model, 24, callback) == pytest.approx([expected, followed, expected - followed])


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
    assert logged(model, 24) == pytest.approx([expected, followed, expected - followed])


def test_critics_see_actions_as_the_buffer_holds_them() -> None:
    venv = chains(-0.5, 2, continuous=True)
    model = TD3("MlpPolicy", venv, policy_kwargs={"net_arch": []}, **FROZEN)
    actor = model.actor.mu[0]
    actor.weight.data = torch.zeros(1, 3)
    actor.bias.data = torch.atanh(torch.tensor([0.5]))  # half of the range: a torque of 1
    for critic in model.critic.q_networks:
        critic[0].weight.data = torch.tensor([[0.0, 0.0, 0.0, 10.0]])  # type: ignore[index]
        critic[0].bias.data = torch.zeros(1)  # type: ignore[index]
    assert logged(model, 24) == pytest.approx([5.0, 3.25, 1.75])


def test_a_trained_network_expects_what_the_shift_says() -> None:
    shift = Shift(-0.5, gamma=0.5, terminal="absorbing")
    model = DQN(
        "MlpPolicy",
        chains(shift),
        gamma=0.5,
        learning_rate=0.02,
        learning_starts=50,
        train_freq=1,
        target_update_interval=50,
        policy_kwargs={"net_arch": []},
        seed=0,
    )
    _, followed, over = logged(model, 3000)
    values = model.q_net(torch.eye(3)).max(dim=1).values.detach().numpy()
    np.testing.assert_allclose(values, shift.from_primal(np.array([3.0, 4.0, 4.0])), atol=0.02)
    assert followed == pytest.approx((2 + 3 + 3) / 3)
    assert over < 0  # on the way from 0 to the values, which are higher
    assert logged(model, 60)[2] == pytest.approx(0, abs=0.02)


def test_an_agent_without_q_is_refused_before_it_trains() -> None:
    model = PPO("MlpPolicy", chains(-0.5), n_steps=8, batch_size=8, **SMALL)
    with pytest.raises(ValueError, match="PPO has no Q that can be read here"):
        model.learn(8, callback=OverestimationCallback())
    assert model.num_timesteps == 0


# --- SBX -----------------------------------------------------------------------------------

with warnings.catch_warnings():  # TensorFlow Probability is a little behind JAX
    warnings.filterwarnings("ignore", "jax.core.pytype_aval_mappings", DeprecationWarning)
    import sbx


def test_sbx_trains_on_shifted_rewards() -> None:
    venv = VecShiftReward(make_vec_env(short_cartpole, seed=0), EXACT)
    model = sbx.DQN("MlpPolicy", venv, gamma=GAMMA, learning_starts=50, **SMALL)
    estimate, followed, over = logged(model, 300)
    assert over == pytest.approx(estimate - followed)
    _, rewards, ended = buffered(model)
    np.testing.assert_allclose(rewards, 1.5 + ended * GAMMA * -0.5 / (1 - GAMMA), rtol=1e-6)
    assert ended.any()


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
    greedy = {"exploration_initial_eps": 0, "exploration_final_eps": 0} if discrete else {}
    venv = chains(-0.5, 2, continuous=not discrete)
    model = algorithm("MlpPolicy", venv, policy_kwargs={"net_arch": [4]}, **FROZEN, **greedy)
    last_bias(model.policy, critic, values)
    assert logged(model, 24) == pytest.approx([5.0, 3.25, 1.75])


@pytest.mark.parametrize(
    ("algorithm", "options"), [(sbx.TQC, {}), (sbx.CrossQ, {}), (sbx.TD3, {"dropout_rate": 0.1})]
)
def test_what_cannot_be_read_of_sbx_is_refused(algorithm: Any, options: Any) -> None:
    small = {"net_arch": [4], **options}
    model = algorithm("MlpPolicy", chains(-0.5, continuous=True), policy_kwargs=small)
    with pytest.raises(ValueError, match="no Q that can be read here"):
        model.learn(8, callback=OverestimationCallback())
