"""The shift in Stable-Baselines3 and SBX: real agents, trained, and what is in their buffers."""

from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import sbx
from gymnasium.wrappers import TimeLimit
from hypothesis import given, settings
from hypothesis import strategies as st
from probes import short_cartpole
from stable_baselines3 import DQN, PPO, HerReplayBuffer
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
from rewardshift.envs.goals import BitFlip
from rewardshift.errors import InputError
from rewardshift.integrations.sb3 import VecShiftReward, check
from rewardshift.integrations.sb3_doctor import DoctorCallback

GAMMA = 0.9
EXACT = Shift(-0.5, scale=2.0, gamma=GAMMA, terminal="absorbing")
SMALL: dict[str, Any] = {"policy_kwargs": {"net_arch": [16]}, "seed": 0, "device": "cpu"}


def buffered(model: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """The replay buffer of a model, the rewards in it, and where it cuts the bootstrap."""
    buffer = model.replay_buffer
    rows = slice(None) if buffer.full else slice(buffer.pos)
    return buffer, buffer.rewards[rows], buffer.dones[rows] * (1 - buffer.timeouts[rows])


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
        DummyVecEnv([short_cartpole] * 2), Shift(bias, scale, gamma, terminal=terminal), warn=False
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


def plain() -> DummyVecEnv:
    return DummyVecEnv([short_cartpole])


OUTSIDE = r"VecNormalize\(VecShiftReward\(venv, shift\)\)"


@pytest.mark.parametrize(
    ("make", "shift", "match"),
    [
        (plain, float("nan"), "nan"),
        (plain, Shift(np.array([0.0, 1.0])), "one bias"),
        (plain, {"bias": 1.0, "offset": 2}, "offset"),
        (short_cartpole, -0.5, "ShiftReward takes one environment"),
        (lambda: VecNormalize(plain()), -0.5, OUTSIDE),
        (lambda: VecCheckNan(VecNormalize(plain(), norm_reward=False)), -0.5, OUTSIDE),
        (
            lambda: VecFrameStack(VecShiftReward(plain(), -0.5), 2),
            1.0,
            r"already, by Shift\(bias=-0",
        ),
        (lambda: shifted_inside(Shift(3.0)), -0.5, r"shifted already, by Shift\(bias=3\.0"),
    ],
)
def test_what_cannot_be_wrapped_is_refused(make: Any, shift: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        VecShiftReward(make(), shift)


def test_environments_in_processes_of_their_own() -> None:
    limited = partial(gym.make, "CartPole-v1", max_episode_steps=2)
    shifted: Any = ShiftReward(gym.make("CartPole-v1"), 3.0).spec
    venv = VecShiftReward(SubprocVecEnv([limited], start_method="spawn"), EXACT)
    venv.reset()
    steps = [venv.step(np.array([0])) for _ in range(3)]
    venv.close()
    assert [float(rewards[0]) for _, rewards, _, _ in steps] == [1.5] * 3  # a limit is no end
    assert [bool(dones[0]) for _, _, dones, _ in steps] == [False, True, False]
    inside = SubprocVecEnv([partial(gym.make, shifted)], start_method="spawn")
    with pytest.raises(InputError, match=r"shifted already, by Shift\(bias=3\.0"):
        VecShiftReward(inside, -0.25)
    inside.close()


@pytest.mark.parametrize("kind", [DQN, sbx.DQN])
def test_a_replay_holds_shifted_rewards_and_the_log_primal_returns(
    kind: Any, tmp_path: Path
) -> None:
    venv = VecShiftReward(make_vec_env(short_cartpole, n_envs=2, seed=0), EXACT)
    model = kind("MlpPolicy", venv, gamma=GAMMA, learning_starts=100, **SMALL)
    model.learn(1000)
    buffer, rewards, ended = buffered(model)
    assert rewards.shape == (500, 2)
    np.testing.assert_allclose(rewards, 2.0 - 0.5 + ended * GAMMA * -0.5 / (1 - GAMMA), rtol=1e-6)
    assert 0 < ended.sum() < buffer.dones.sum()  # ends and time limits
    assert {info["r"] == info["l"] for info in model.ep_info_buffer or ()} == {True}
    returns, lengths = evaluate_policy(model, venv, 4, return_episode_rewards=True)
    assert returns == lengths
    model.save(tmp_path / "model")
    again = kind.load(tmp_path / "model", env=venv)
    again.learn(100, reset_num_timesteps=False)
    again.set_env(VecShiftReward(make_vec_env(short_cartpole, n_envs=2), -3.0))
    again.learn(100, reset_num_timesteps=False)
    assert set(buffered(again)[1][-10:].ravel().tolist()) == {-2.0}


@pytest.mark.parametrize("shift", [EXACT, Shift(1.0)], ids=["absorbing", "zero"])
def test_hindsight_relabels_with_shifted_rewards(shift: Shift) -> None:
    def her(**buffer: Any) -> Any:
        made = make_vec_env(lambda: TimeLimit(BitFlip(bits=5), 5), n_envs=2, seed=0)
        model = DQN(
            "MultiInputPolicy",
            VecShiftReward(made, shift),
            gamma=GAMMA,
            learning_starts=100,
            replay_buffer_class=HerReplayBuffer,
            replay_buffer_kwargs={"goal_selection_strategy": "episode", **buffer},
            **SMALL,
        )
        return model.learn(1500)

    if shift.terminal == "absorbing":
        with pytest.raises(InputError, match="copy_info_dict=True"):
            her()
    batch = her(copy_info_dict=shift.terminal == "absorbing").replay_buffer.sample(2000)
    goals = batch.observations["desired_goal"], batch.next_observations["achieved_goal"]
    differ = (goals[0] != goals[1]).any(dim=1).numpy()
    ended = batch.dones[:, 0].numpy()
    assert (~differ & (ended == 0)).any()  # reached in hindsight alone
    assert (differ & (ended == 1)).any()  # ended at a goal that it is not relabelled with
    credit = GAMMA * shift.bias / (1 - GAMMA) if shift.terminal == "absorbing" else 0.0
    expected = shift.scale * -differ.astype(float) + shift.bias + credit * ended
    np.testing.assert_allclose(batch.rewards[:, 0].numpy(), expected, rtol=1e-6)


def test_compute_reward_of_one_transition() -> None:
    venv = VecShiftReward(DummyVecEnv([lambda: BitFlip(bits=2)] * 2), EXACT)
    goals = {"achieved_goal": np.array([0, 1]), "desired_goal": np.array([1, 1])}
    assert venv.env_method("compute_reward", **goals, info={"terminated": False}) == [-2.5, -2.5]
    ended = venv.env_method("compute_reward", *goals.values(), {"terminated": True}, indices=1)
    assert ended == [pytest.approx(-2.5 - 4.5)]
    assert venv.env_method("get_wrapper_attr", "bits") == [2, 2]


def test_vecnormalize_outside_keeps_the_shift() -> None:
    venv = VecNormalize(VecShiftReward(make_vec_env(short_cartpole, seed=0), -3.0))
    model = DQN("MlpPolicy", venv, learning_starts=50, **SMALL).learn(100)
    assert set(buffered(model)[1].ravel().tolist()) == {-2.0}


def shifted_outside(shift: Shift) -> VecNormalize:
    return VecNormalize(VecShiftReward(DummyVecEnv([short_cartpole] * 2), shift), norm_reward=False)


def shifted_inside(shift: Shift) -> DummyVecEnv:
    return DummyVecEnv([lambda: ShiftReward(short_cartpole(), shift)] * 2)


@pytest.mark.parametrize("around", [shifted_outside, shifted_inside])
@pytest.mark.parametrize("kind", [DQN, sbx.DQN])
def test_a_discount_that_is_not_the_models_is_refused(around: Any, kind: Any) -> None:
    """The buffer would hold -49 where -4 is right: the credit of an end depends on the discount."""
    model = kind("MlpPolicy", around(EXACT), gamma=0.99, **SMALL)
    with pytest.raises(InputError, match=r"gamma=0.99.*gamma=0.9, terminal='absorbing'"):
        check(model)
    ours = DoctorCallback("CartPole-v1")
    for callback in (None, ours) if around is shifted_outside else (ours,):
        with pytest.raises(InputError, match="needs the same discount"):
            model.learn(4, callback=callback)
    assert model.num_timesteps == 0
    check(kind("MlpPolicy", around(EXACT), gamma=GAMMA, **SMALL))
    check(kind("MlpPolicy", around(Shift(-0.5, gamma=GAMMA)), gamma=0.99, **SMALL))
    check(kind("MlpPolicy", DummyVecEnv([short_cartpole]), gamma=0.99, **SMALL))


def test_only_a_model_with_environments_is_checked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a model"):
        check(short_cartpole())  # type: ignore[arg-type]
    DQN("MlpPolicy", DummyVecEnv([short_cartpole]), **SMALL).save(tmp_path / "model")
    model = DQN.load(tmp_path / "model", device="cpu")
    with pytest.raises(InputError, match="set_env"):
        check(model)
    model.set_env(VecShiftReward(DummyVecEnv([short_cartpole]), EXACT))
    with pytest.raises(InputError, match="needs the same discount"):
        check(model)


def test_auto_chooses_one_shift_for_all_environments() -> None:
    venv = VecShiftReward(make_vec_env("CartPole-v1", n_envs=2), "auto", gamma=0.5)
    venv.reset()
    _, rewards, _, infos = venv.step(np.array([0, 1]))
    assert rewards.tolist() == [0.5, 0.5]
    assert infos[0]["primal_reward"] == 1.0
    assert venv.shift == Shift(-0.5, 1.0, 0.5, "goal")
    check(DQN("MlpPolicy", venv, gamma=0.5))
    check(PPO("MlpPolicy", venv, gamma=0.5, device="cpu"))
    with pytest.raises(InputError, match="needs the same discount"):
        check(DQN("MlpPolicy", venv, gamma=0.9))


@pytest.mark.parametrize(
    ("task", "bias", "words"),
    [("FrozenLake-v1", -0.5, "to end episodes"), ("CartPole-v1", 0.5, "to avoid this end")],
)
def test_an_end_that_the_shift_favours_is_told_once(task: str, bias: float, words: str) -> None:
    def run(make: Any, **settings: Any) -> None:
        venv = VecShiftReward(make_vec_env(make, n_envs=2, seed=0), bias, **settings)
        model = DQN("MlpPolicy", venv, learning_starts=1000, **SMALL)
        model.learn(300)

    with pytest.warns(UserWarning, match=words) as told:
        run(task)
    assert len(told) == 1
    run(task, warn=False)  # a warning fails
    run(lambda: gym.make("CartPole-v1", max_episode_steps=2))  # a time limit is not an end
