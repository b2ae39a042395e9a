"""What `"auto"` chose, after a model and its buffer are loaded, and models that do not fit a shift.

The first reward is another after every reset, so a unit of the training itself would be another.
"""

from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import sbx
from probes import short_cartpole
from stable_baselines3 import DQN, TD3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecEnv,
    VecEnvWrapper,
    VecNormalize,
)

from rewardshift import Auto, Shift, ShiftReward
from rewardshift.errors import InputError
from rewardshift.integrations.sb3 import VecShiftReward, check
from rewardshift.integrations.sb3_doctor import DoctorCallback, agent_view, doctor

GAMMA = 0.9
EXACT = Shift(-0.5, scale=2.0, gamma=GAMMA, terminal="absorbing")


def small(**changed: Any) -> dict[str, Any]:
    network = {"policy_kwargs": {"net_arch": [16]}, "device": "cpu"}
    return {**network, "gamma": GAMMA, "learning_starts": 20, "train_freq": 10, **changed}


def paying(more: float = 20.0) -> gym.Env[Any, Any]:
    """Pendulum costs up to 16.3 a step; here each pays something."""
    return gym.wrappers.TransformReward(gym.make("Pendulum-v1"), lambda cost: float(cost) + more)


def pendulum(
    shift: Any = "auto", gamma: float | None = GAMMA, seed: int = 0, make: Any = paying
) -> VecShiftReward:
    return VecShiftReward(make_vec_env(make, n_envs=2, seed=seed), shift, gamma)


def saved(folder: Path, venv: VecEnv, kind: Any = TD3) -> Any:
    model = kind("MlpPolicy", venv, **small(seed=0))
    model.learn(100)
    model.save(folder / "model")
    model.save_replay_buffer(folder / "buffer")
    return model


def loaded(folder: Path, venv: VecEnv, kind: Any = TD3, **options: Any) -> Any:
    model = kind.load(folder / "model", env=venv, device="cpu", **options)
    model.load_replay_buffer(folder / "buffer")
    return model


def primal_of(model: Any, shift: Shift) -> tuple[np.ndarray, np.ndarray]:
    """The primal rewards by the stored observations and actions, and by the stored rewards."""
    buffer = model.replay_buffer
    rows = slice(0, buffer.pos)
    cos, sin, speed = np.moveaxis(buffer.observations[rows], -1, 0)
    torque = 2 * buffer.actions[rows, :, 0]
    told = -(np.arctan2(sin, cos) ** 2 + 0.1 * speed**2 + 0.001 * torque**2)
    return told + 20, shift.to_primal_reward(buffer.rewards[rows])


@pytest.mark.parametrize("kind", [TD3, sbx.TD3])
@pytest.mark.parametrize("around", [lambda venv: venv, VecNormalize])
def test_a_loaded_model_goes_on_with_the_unit(tmp_path: Path, kind: Any, around: Any) -> None:
    first, second = pendulum(), pendulum(seed=5)
    saved(tmp_path, around(first), kind)
    model = loaded(tmp_path, around(second), kind)
    model.learn(100, reset_num_timesteps=False)
    assert second.shift == first.shift
    assert second.shift.scale != 1  # chosen
    told, stored = primal_of(model, first.shift)
    assert stored.shape == (100, 2)
    np.testing.assert_allclose(stored, told, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("around", [lambda: pendulum(seed=5), lambda: None])
def test_the_doctor_knows_the_unit_of_a_loaded_model(tmp_path: Path, around: Any) -> None:
    """Before the model learns again, and without environments."""
    first = saved(tmp_path, pendulum())
    model = loaded(tmp_path, around())
    with paying() as env:
        looks = [doctor(one, env, episodes=1, states=16) for one in (first, model)]
    assert agent_view(model).shift == agent_view(first).shift == first.env.shift
    assert looks[0].signal == looks[1].signal


@pytest.mark.parametrize(
    ("first", "second", "match"),
    [
        ("auto", lambda: pendulum(Auto(1.0)), "put VecShiftReward"),
        ("auto", lambda: pendulum(make=lambda: paying(30.0)), "put VecShiftReward"),
        ("auto", lambda: pendulum(-0.5, None), "put VecShiftReward"),
        ("auto", lambda: pendulum(Shift(-0.5, gamma=GAMMA), None), "put VecShiftReward"),
        ("auto", lambda: make_vec_env("Pendulum-v1", n_envs=2), "have none: put VecShiftReward"),
        (-0.5, pendulum, "50 stored steps, and no record .* in place of 'auto'"),
    ],
)
def test_another_shift_than_that_of_the_buffer_is_refused(
    tmp_path: Path, first: Any, second: Any, match: str
) -> None:
    chosen = saved(tmp_path, pendulum(first, GAMMA if first == "auto" else None)).env.shift
    model = loaded(tmp_path, second())
    with pytest.raises(InputError, match=match) as refused:
        model.learn(10, callback=DoctorCallback(paying()), reset_num_timesteps=False)
    assert first != "auto" or f"'scale': {chosen.scale}" in str(refused.value)
    assert model.replay_buffer.size() == 50


def test_the_chosen_shift_may_be_given_as_a_number(tmp_path: Path) -> None:
    chosen = saved(tmp_path, pendulum()).env.shift
    venv = pendulum(chosen, None)
    loaded(tmp_path, venv).learn(10, reset_num_timesteps=False)
    assert venv.shift == chosen


def test_one_wrapper_serves_several_new_models() -> None:
    venv = pendulum()
    for seed in (0, 1):
        model: Any = TD3("MlpPolicy", venv, **small(seed=seed))
        model.learn(20)
        model.learn(20, reset_num_timesteps=False)
        assert Shift(**model.reward_shift) == venv.shift


def single_auto() -> gym.Env[Any, Any]:
    return ShiftReward(gym.make("CartPole-v1"), "auto", gamma=GAMMA)


SPAWNED = partial(SubprocVecEnv, start_method="spawn")


@pytest.mark.parametrize("kind", [DummyVecEnv, SPAWNED])
def test_environments_that_choose_one_by_one_choose_the_same(kind: Any) -> None:
    venv = kind([single_auto] * 2)
    first, second = (metadata["reward_shift"] for metadata in venv.get_attr("metadata"))
    assert first == second == Shift(-0.5, 1.0, GAMMA, "goal")
    DQN("MlpPolicy", venv, **small()).learn(30)
    venv.close()


class Doubled(VecEnvWrapper):
    """A wrapper that changes rewards."""

    def __init__(self) -> None:
        super().__init__(DummyVecEnv([paying]))

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> Any:
        observations, rewards, dones, infos = self.venv.step_wait()
        return observations, 2 * rewards, dones, infos


@pytest.mark.parametrize("around", [lambda: SPAWNED([paying]), Doubled])
def test_environments_that_cannot_be_reached_need_a_number(around: Any) -> None:
    venv = around()
    with pytest.raises(InputError, match="suggest_shift"):
        VecShiftReward(venv, "auto", gamma=GAMMA)
    venv.close()


@pytest.mark.parametrize("callback", [None, DoctorCallback("CartPole-v1")])
def test_time_limits_stored_as_ends_are_refused(callback: Any) -> None:
    """A credit is missing there, and the agent does not bootstrap."""
    venv = VecShiftReward(DummyVecEnv([short_cartpole]), EXACT)
    limits: dict[str, Any] = {"replay_buffer_kwargs": {"handle_timeout_termination": False}}
    model = DQN("MlpPolicy", venv, **small(**limits))
    with pytest.raises(InputError, match="handle_timeout_termination=False"):
        model.learn(10, callback=callback)
    inside = DummyVecEnv([lambda: ShiftReward(short_cartpole(), EXACT)])
    with pytest.raises(InputError, match="handle_timeout_termination=False"):
        check(DQN("MlpPolicy", inside, **small(**limits)))
    fine = VecShiftReward(DummyVecEnv([short_cartpole]), -0.5)
    DQN("MlpPolicy", fine, **small(**limits)).learn(10)
