"""The curiosity bonus in a replay buffer of Stable-Baselines3, beside one computed by hand."""

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from probes import short_cartpole
from sb3_contrib import QRDQN, TQC
from sb3_makers import made
from stable_baselines3 import DQN, SAC, TD3, HerReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from rewardshift import InputError, Shift
from rewardshift.envs.goals import BitFlip
from rewardshift.integrations.sb3 import RRSDQN, CuriousReplayBuffer, VecShiftReward

ROWS = 40


def filled(space: gym.Space[Any] | None = None, rows: int = ROWS, **settings: Any) -> Any:
    """A buffer with random transitions; every fifth ends an episode."""
    space = space or gym.spaces.Box(-1, 1, (3,))
    space.seed(0)
    torch.manual_seed(0)
    buffer = CuriousReplayBuffer(
        rows, space, gym.spaces.Discrete(2), device="cpu", **{"width": 8, **settings}
    )
    for step in range(rows):
        ended = np.array([step % 5 == 4])
        this, following = np.stack([space.sample()])[None], np.stack([space.sample()])[None]
        infos: list[dict[str, Any]] = [{}]
        buffer.add(this, following, np.array([0]), np.array([step / 10]), ended, infos)
    return buffer


def weights(network: Any) -> list[np.ndarray]:
    return [part.detach().numpy().astype(np.float64) for part in network.parameters()]


def forward(parts: list[np.ndarray], inputs: np.ndarray) -> np.ndarray:
    """The output of three layers."""
    for number in range(3):
        values = inputs @ parts[2 * number].T + parts[2 * number + 1]
        inputs = np.maximum(values, 0)
    return values


@pytest.mark.parametrize("shift", [0.0, -1.0, Shift(-0.5, 2.0, 0.9, terminal="absorbing")])
def test_a_sampled_bonus_by_hand(shift: Any) -> None:
    buffer = filled(shift=shift)
    fixed, predictor = weights(buffer.fixed), weights(buffer.predictor)
    np.random.seed(1)  # noqa: NPY002 - Stable-Baselines3 draws from it
    batch = buffer.sample(16)
    observations = batch.observations.numpy().astype(np.float64)
    error = forward(predictor, observations) - forward(fixed, observations)
    bonus = np.minimum((error**2).sum(axis=1), 1.0)[:, None]
    same = (buffer.observations[:, 0] == observations[:, None]).all(axis=2)
    rows = same.argmax(axis=1)
    primal = rows[:, None] / 10
    scale, bias = (1.0, shift) if isinstance(shift, float) else (2.0, -0.5)
    assert bonus.min() < 0.9 < bonus.max()
    expected = primal + scale * bonus + bias
    if not isinstance(shift, float):
        expected += (rows[:, None] % 5 == 4) * 0.9 * -0.5 / 0.1
    np.testing.assert_allclose(batch.rewards.numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(buffer.rewards[:, 0], np.arange(ROWS) / 10)  # primal


def test_the_bonus_fades_where_it_has_been() -> None:
    buffer = filled(width=64, learning_rate=1e-3)
    seen, other = torch.as_tensor(buffer.observations[:, 0]), torch.full((1, 3), 30.0)
    assert float(buffer.bonus(other)) == 1.0  # at most
    before, fixed = float(buffer.bonus(seen).mean()), weights(buffer.fixed)
    for _ in range(200):
        buffer.sample(32)
    assert float(buffer.bonus(seen).mean()) < before / 10
    assert all(map(np.array_equal, fixed, weights(buffer.fixed)))
    assert float(buffer.bonus(other)) == 1.0


def learned(algorithm: Any, env: Any = None, **kwargs: Any) -> Any:
    discrete = algorithm in (DQN, QRDQN, RRSDQN)
    more = {
        "replay_buffer_class": CuriousReplayBuffer,
        "replay_buffer_kwargs": {"shift": -1.0, "width": 16},
        "policy_kwargs": {"net_arch": [16]},
        **kwargs,
    }
    return made(
        algorithm,
        env or make_vec_env(short_cartpole if discrete else "Pendulum-v1", n_envs=2, seed=0),
        batch_size=16,
        **more,
    ).learn(100)


@pytest.mark.parametrize("algorithm", [DQN, QRDQN, TD3, SAC, TQC])
def test_agents_learn_with_it(algorithm: Any) -> None:
    plain = learned(algorithm, replay_buffer_class=None, replay_buffer_kwargs=None).replay_buffer
    buffer = learned(algorithm).replay_buffer
    # The networks and the steps before learning are those of an agent without a bonus.
    np.testing.assert_array_equal(buffer.rewards[:10], plain.rewards[:10])
    np.testing.assert_array_equal(buffer.observations[:10], plain.observations[:10])
    assert float(buffer.sample(100).rewards.max()) < buffer.rewards[:50].max()


@pytest.mark.parametrize(
    "space", [gym.spaces.Discrete(4), gym.spaces.Box(0, 255, (6, 6), np.uint8)]
)
def test_observations_as_the_agent_sees_them(space: Any) -> None:
    buffer = filled(space, width=2)
    assert buffer.predictor[0].in_features == gym.spaces.flatdim(space)
    assert 0 < float(buffer.bonus(buffer.sample(20).observations).mean()) < 1


def test_it_is_saved_and_loaded_with_the_buffer(tmp_path: Path) -> None:
    model = learned(DQN)
    model.save(tmp_path / "model")
    model.save_replay_buffer(tmp_path / "buffer")
    loaded: Any = DQN.load(tmp_path / "model", env=model.get_env(), device="cpu")
    loaded.load_replay_buffer(tmp_path / "buffer")
    samples = []
    for one in (model, loaded):
        np.random.seed(1)  # noqa: NPY002 - Stable-Baselines3 draws from it
        samples.append([one.replay_buffer.sample(32).rewards for _ in range(5)])
    assert all(map(torch.equal, *samples))
    assert loaded.replay_buffer.shift == Shift(-1.0)
    loaded.learn(50, reset_num_timesteps=False)


def test_with_members_and_a_shift_and_a_normaliser() -> None:
    """Each has its own place: the members' shifts come on top of the bonus."""
    pole = partial(make_vec_env, short_cartpole, n_envs=2)
    for model, paid in (
        (learned(RRSDQN, shifts=(-0.5, 0.5)), 1.0),
        (learned(DQN, VecShiftReward(pole(), -0.25)), 0.75),
        (learned(DQN, VecNormalize(pole())), 1.0),
    ):
        assert set(model.replay_buffer.rewards[:50].ravel()) == {paid}


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"shift": "x"}, "got 'x'"),
        ({"shift": float("nan")}, "nan"),
        ({"shift": Shift(np.zeros(2))}, "one bias"),
        ({"shift": Shift(-1.0, gamma=0.9, terminal="goal")}, "hides which ends are goals"),
        ({"shift": Shift(-1.0, terminal="absorbing")}, "needs the discount"),
        ({"width": 0}, "width must be a whole number of 1 or more"),
        ({"learning_rate": -1.0}, "learning_rate must be finite and above 0"),
    ],
)
def test_bad_settings_are_refused(settings: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        filled(**settings)


def test_goals_and_hindsight_are_refused() -> None:
    more: dict[str, Any] = {"replay_buffer_class": CuriousReplayBuffer, "device": "cpu"}
    with pytest.raises(InputError, match="no goals, which HerReplayBuffer relabels"):
        DQN("MultiInputPolicy", BitFlip(bits=4), **more)

    class Both(CuriousReplayBuffer, HerReplayBuffer):  # type: ignore[misc]
        pass

    with pytest.raises(InputError, match="no goals"):
        DQN("MultiInputPolicy", BitFlip(bits=4), **{**more, "replay_buffer_class": Both})


def test_the_example_runs() -> None:
    script = Path(__file__).parents[1] / "examples" / "scenarios_sb3.py"
    options = ["--steps", "100", "--seeds", "1", "--width", "8"]
    told = subprocess.check_output([sys.executable, str(script), *options], text=True, timeout=300)
    lines = told.splitlines()
    names = ["none", "-0.5", "+0.5", "RRS", "RND", "RND-1"]
    assert [line.split(":")[0] for line in lines[6:]] == names
