"""The curiosity bonus in a replay buffer of Stable-Baselines3, beside one computed by hand."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from probes import short_cartpole
from sb3_contrib import QRDQN, TQC
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
    rows = np.array([np.flatnonzero((buffer.observations[:, 0] == row).all(axis=1))[0] for row in
                     batch.observations.numpy()])  # fmt: skip
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


@pytest.mark.parametrize(
    ("space", "inputs"),
    [(gym.spaces.Discrete(4), 4), (gym.spaces.Box(0, 255, (1, 6, 6), np.uint8), 36)],
)
def test_observations_as_the_agent_sees_them(space: Any, inputs: int) -> None:
    buffer = filled(space, width=2)
    assert buffer.predictor[0].in_features == inputs
    assert 0 < float(buffer.bonus(buffer.sample(20).observations).mean()) < 1


AGENTS = [DQN, QRDQN, TD3, SAC, TQC]


def learned(
    algorithm: Any, env: Any = None, buffer: Any = CuriousReplayBuffer, **kwargs: Any
) -> Any:
    discrete = algorithm in (DQN, QRDQN, RRSDQN)
    return algorithm(
        "MlpPolicy",
        env or make_vec_env(short_cartpole if discrete else "Pendulum-v1", n_envs=2, seed=0),
        learning_starts=20,
        batch_size=16,
        buffer_size=500,
        replay_buffer_class=buffer,
        replay_buffer_kwargs={"shift": -1.0, "width": 16} if buffer else None,
        policy_kwargs={"net_arch": [16]},
        seed=0,
        device="cpu",
        **kwargs,
    ).learn(100)


@pytest.mark.parametrize("algorithm", AGENTS)
def test_agents_learn_with_it(algorithm: Any) -> None:
    model, plain = learned(algorithm), learned(algorithm, buffer=None)
    buffer = model.replay_buffer
    # The networks and the steps before learning are those of an agent without a bonus.
    np.testing.assert_array_equal(buffer.rewards[:10], plain.replay_buffer.rewards[:10])
    np.testing.assert_array_equal(buffer.observations[:10], plain.replay_buffer.observations[:10])
    if algorithm in (DQN, QRDQN):
        assert set(buffer.rewards[:50].ravel()) == {1.0}
    assert model.ep_info_buffer[0]["l"] > 0 if model.ep_info_buffer else True
    primal = np.sort(buffer.rewards[:50].ravel())
    assert float(buffer.sample(100).rewards.max()) < primal[-1]


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
    members = learned(RRSDQN, shifts=(-0.5, 0.5))
    assert set(members.replay_buffer.rewards[:50].ravel()) == {1.0}
    shifted = learned(DQN, VecShiftReward(make_vec_env(short_cartpole, n_envs=2), -0.25))
    assert set(shifted.replay_buffer.rewards[:50].ravel()) == {0.75}
    normalised = learned(DQN, VecNormalize(make_vec_env(short_cartpole, n_envs=2)))
    assert set(normalised.replay_buffer.rewards[:50].ravel()) == {1.0}


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
    done = subprocess.run(
        [sys.executable, str(script), *options],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    names = ["none", "-0.5", "+0.5", "RRS", "RND", "RND-1"]
    assert [line.split(":")[0] for line in lines[6:]] == names
