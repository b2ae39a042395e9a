"""The doctor for models of Stable-Baselines3, sb3-contrib and SBX: right, and without a trace."""

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import sbx
import torch
from gymnasium.wrappers import TimeLimit
from probes import Probe
from sb3_contrib import QRDQN, TQC
from sb3_makers import continuous, discrete, made, task
from stable_baselines3 import DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
from test_doctor import names

from rewardshift import Shift, ShiftReward
from rewardshift.errors import InputError
from rewardshift.integrations.sb3 import VecShiftReward
from rewardshift.integrations.sb3_doctor import DoctorCallback, doctor

MODELS = [DQN, DDPG, TD3, SAC, QRDQN, TQC, sbx.DQN, sbx.TD3, sbx.SAC]


@pytest.mark.parametrize("algorithm", MODELS, ids=lambda one: one.__module__.split(".")[-1])
def test_every_model_has_numbers(algorithm: Any) -> None:
    found: Any = doctor(made(algorithm).learn(60), task(algorithm), episodes=2)
    assert len(found.belief.points) == 8
    assert found.signal.transitions == 60 + 8
    assert (found.start.initial is None) == algorithm.__module__.startswith("sbx")
    assert found.untried is not None
    assert found.start.lifetime is not None
    assert found.signal.informative > 0


def parameters(model: Any) -> list[np.ndarray]:
    return [value.numpy() for value in model.policy.state_dict().values()]


@pytest.mark.parametrize("algorithm", [DQN, TD3, SAC, QRDQN, TQC], ids=lambda one: one.__name__)
def test_training_goes_on_with_the_same_bits(algorithm: Any) -> None:
    """With a diagnosis between two calls of `learn`, and with some in each."""
    alone = made(algorithm).learn(60).learn(60, reset_num_timesteps=False)
    seen = made(algorithm)  # only now: it seeds the generators that all models share
    callback = DoctorCallback(task(algorithm), 25, episodes=1)
    seen.learn(60, callback=callback)
    doctor(seen, task(algorithm))
    seen.learn(60, callback=callback, reset_num_timesteps=False)
    for one, other in zip(parameters(alone), parameters(seen), strict=True):
        np.testing.assert_array_equal(one, other)
    for name in ("observations", "actions", "rewards", "dones"):
        stored = (getattr(model.replay_buffer, name) for model in (alone, seen))
        np.testing.assert_array_equal(*stored)


@pytest.mark.parametrize("wrapped", ["venv", "env", "told"])
def test_values_on_the_scale_of_the_shift(wrapped: str) -> None:
    shift = Shift(-0.5, 2.0)
    inside = (lambda: ShiftReward(discrete(), shift)) if wrapped != "venv" else discrete
    venv: Any = make_vec_env(inside)
    venv = VecShiftReward(venv, shift) if wrapped == "venv" else venv
    model = made(DQN, venv, gamma=0.5, policy_kwargs={"net_arch": []}, gradient_steps=0).learn(60)
    # Rewards of 0, 0, 0, 1 are -0.5, -0.5, -0.5, 1.5 to the agent; its values are 1 above theirs.
    values = [1.0 + value for value in (-0.6875, -0.375, 0.25, 1.5)]
    model.q_net.q_net[0].weight.data = torch.tensor([values, values])
    model.q_net.q_net[0].bias.data = torch.zeros(2)
    given = shift if wrapped == "told" else None
    found: Any = doctor(model, discrete(), shift=given, episodes=2)
    assert found.belief.overestimation == found.ends.excess == pytest.approx(1.0)
    assert found.belief.spread == pytest.approx(0.0, abs=1e-6)
    assert (found.signal.low, found.signal.high) == pytest.approx((0.0, 1.0))


def test_a_normaliser_outside_of_the_shift_is_told() -> None:
    venv = VecNormalize(VecShiftReward(make_vec_env(discrete), -0.5))
    found = doctor(made(DQN, venv).learn(100), discrete(), episodes=1)
    assert "normaliser" in names(found)
    sigma = np.sqrt(venv.ret_rms.var + venv.epsilon)
    assert found.shift.bias == pytest.approx(-0.5 / sigma)
    assert (found.signal.highest_reward, found.signal.foreign) == (1.0, 0.0)
    quiet = made(DQN, VecNormalize(make_vec_env(discrete))).learn(60)
    assert "normaliser" not in names(doctor(quiet, discrete()))


def test_the_older_half_of_a_replay_that_went_around() -> None:
    model = made(DQN, buffer_size=5).learn(24)  # it holds the steps 19 to 23
    found: Any = doctor(model, discrete(), episodes=1)
    assert found.ends.stored == 2  # 19 and 23: every fourth step is terminal
    assert found.ends.transitions == 1  # 19


@pytest.mark.parametrize("terminal", ["absorbing", "goal"])
@pytest.mark.parametrize("pays", [1.0, 0.0])
def test_rewards_and_optimism_are_primal_whatever_ends_are_credited(
    terminal: Any, pays: float
) -> None:
    paying = partial(Probe, 4, pays=(pays, pays))
    venv = VecShiftReward(make_vec_env(paying), Shift(-0.1, gamma=0.99, terminal=terminal))
    found = doctor(made(DQN, venv, gamma=0.99).learn(60), paying(), episodes=2)
    assert found.signal.low == pytest.approx(0.0, abs=1e-5)
    assert found.signal.highest_reward == pytest.approx(pays, abs=1e-5)
    assert found.signal.informative == (15 + 2 if pays else 0)  # no other reward, up to rounding
    if pays:
        assert found.start.optimism == pytest.approx(10, abs=0.5)
        assert found.signal.foreign == 0.0


def test_discrete_observations() -> None:
    model = made(DQN, make_vec_env("FrozenLake-v1")).learn(60)
    assert doctor(model, "FrozenLake-v1", episodes=1).untried is not None


@pytest.mark.parametrize("as_ends", [True, False])
def test_time_limits_of_several_environments_in_a_replay_that_went_around(as_ends: bool) -> None:
    venv = make_vec_env(lambda: TimeLimit(discrete(), 3), n_envs=2)
    limits = {"replay_buffer_kwargs": {"handle_timeout_termination": not as_ends}}
    model = made(DQN, venv, buffer_size=40, **limits).learn(100)
    found: Any = doctor(model, discrete() if as_ends else TimeLimit(discrete(), 3), episodes=2)
    assert ("time limits" in names(found)) == as_ends
    if as_ends:
        assert (found.ends.limit, found.ends.went_on) == (3, 1.0)
    else:
        assert found.ends is None


def test_the_callback_logs_and_keeps_a_history() -> None:
    model = made(TD3)
    callback = DoctorCallback(continuous(), 40, episodes=1)
    model.learn(100, callback=callback, log_interval=10**6)
    (first, before), (last, now) = callback.history
    assert (first, last) == (40, 80)
    assert [found.scalars().get("ends/before") is None for found in (before, now)] == [True, False]
    logged = model.logger.name_to_value
    over = now.scalars()["belief/overestimation"]
    assert logged["doctor/belief/overestimation"] == pytest.approx(over)
    assert {f"doctor/start/{name}" for name in ("initial", "spread", "optimism")} <= set(logged)


def with_other_critics() -> Any:
    """A model whose critics are of a class that nobody knows."""
    model = made(SAC)
    model.policy.critic = torch.nn.Identity()
    return model


def in_its_own_environment() -> None:
    env = discrete()
    doctor(made(DQN, env).learn(30), env)


SUPPORTED = "DQN, DDPG, TD3 and SAC of Stable-Baselines3 or SBX, and TQC and QR-DQN of sb3-contrib"
ANY: Any = "a value of another type"


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: doctor(made(DQN), discrete()), "DQN has no replay"),
        (lambda: doctor(PPO("MlpPolicy", discrete(), device="cpu"), discrete()), "on policy"),
        (lambda: doctor(ANY, discrete()), "expected a model .* got 'a value"),
        (lambda: doctor(made(DQN).learn(30), Probe(5, pays=(1.0, 1.0))), "act on observations"),
        (lambda: doctor(made(DQN).learn(30), "Pendulum-v1"), "does not fit the environment"),
        (lambda: doctor(made(DQN).learn(30), "None-v0"), "no environment 'None-v0'"),
        (lambda: doctor(made(DQN).learn(30), gym.make_vec("CartPole-v1")), "one Gymnasium"),  # type: ignore[arg-type]
        (in_its_own_environment, "environment of its own"),
        (lambda: doctor(made(sbx.TQC), continuous()), f"TQC has no Q .*{SUPPORTED}"),
        (lambda: doctor(with_other_critics(), continuous()), f"SAC has no Q .*{SUPPORTED}"),
        (lambda: DoctorCallback(discrete(), 0), "every must be .* got 0"),
        (lambda: made(DQN).learn(30, DoctorCallback("None-v0")), "no environment"),
        (lambda: made(DQN).learn(30, DoctorCallback("Pendulum-v1")), "does not fit"),
    ],
)
def test_what_cannot_be_diagnosed_is_refused(call: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        call()
