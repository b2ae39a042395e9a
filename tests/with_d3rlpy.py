"""d3rlpy itself, in its own virtual environment (`make d3rlpy`), with the Gymnasium that it pins.

The name of this file keeps it out of the other tests, whose environment has no d3rlpy.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import d3rlpy
import gymnasium as gym
import numpy as np
import pytest
import torch
from d3rlpy.algos import (
    CQLConfig,
    DiscreteDecisionTransformerConfig,
    DQNConfig,
)
from d3rlpy.dataset import (
    Episode,
    FIFOBuffer,
    FrameStackTransitionPicker,
    InfiniteBuffer,
    MixedReplayBuffer,
    MultiStepTransitionPicker,
    ReplayBuffer,
    SparseRewardTransitionPicker,
)
from d3rlpy.logging import NoopAdapterFactory
from d3rlpy.models import VectorEncoderFactory
from d3rlpy.preprocessing import ConstantShiftRewardScaler, MultiplyRewardScaler

from rewardshift import Shift, ShiftReward, VectorShiftReward
from rewardshift.errors import InputError
from rewardshift.integrations.d3rlpy import from_d3rlpy, shift_dataset, to_d3rlpy

GAMMA = 0.9
ZERO = Shift(-0.5, 2.0, GAMMA)
EXACT = Shift(-0.5, 2.0, GAMMA, "absorbing")
STATES = np.eye(4, dtype=np.float32)
EVERY = np.repeat(STATES, 2, axis=0), np.tile([0, 1], 4)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """d3rlpy writes logs to where it runs. Its small networks are fastest on one core."""
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def episodes(*, ends: bool = True) -> list[Episode]:
    """Episodes of a random task with four states; two in three terminate, if any does."""
    rng = np.random.default_rng(1)
    return [
        Episode(
            observations=STATES[rng.integers(4, size=length)],
            actions=rng.integers(2, size=(length, 1)),
            rewards=rng.normal(size=(length, 1)).astype(np.float32),
            terminated=ends and length % 3 > 0,
        )
        for length in range(2, 14)
    ]


def replay(picker: Any = None, buffer: Any = None, *, ends: bool = True) -> ReplayBuffer:
    return ReplayBuffer(
        InfiniteBuffer() if buffer is None else buffer,
        transition_picker=picker,
        episodes=episodes(ends=ends),
    )


def transitions(dataset: ReplayBuffer) -> Iterator[Any]:
    for index in range(dataset.transition_count):
        yield dataset.transition_picker(*dataset.buffer[index])


def fit(dataset: ReplayBuffer, scaler: Any = None, lower: float = 0.0, steps: int = 200) -> Any:
    """A small DQN from the same parameters and on the same batches, with outputs lowered by it."""
    d3rlpy.seed(3)
    agent = DQNConfig(
        batch_size=16,
        gamma=GAMMA,
        learning_rate=1e-2,
        target_update_interval=10,
        encoder_factory=VectorEncoderFactory([8]),
        reward_scaler=scaler,
    ).create()
    agent.build_with_dataset(dataset)
    for networks in (agent.impl.modules.q_funcs, agent.impl.modules.targ_q_funcs):
        for network in networks:
            torch.nn.init.constant_(network._fc.bias, -lower)
    d3rlpy.seed(4)
    train(agent, dataset, steps)
    return agent


def train(agent: Any, dataset: ReplayBuffer, steps: int) -> None:
    agent.fit(
        dataset,
        n_steps=steps,
        n_steps_per_epoch=steps,
        show_progress=False,
        logger_adapter=NoopAdapterFactory(),
    )


# --- the scaler ----------------------------------------------------------------------------


def test_the_scaler_is_the_arithmetic_of_the_shift() -> None:
    scaler = to_d3rlpy(ZERO)
    assert isinstance(scaler, ConstantShiftRewardScaler)
    rewards = np.random.default_rng(0).normal(size=(50, 1)).astype(np.float32)
    expected = ZERO.reward(rewards)
    assert expected.dtype == np.float32
    np.testing.assert_array_equal(scaler.transform_numpy(rewards), expected)
    np.testing.assert_array_equal(scaler.transform(torch.tensor(rewards)).numpy(), expected)
    back = scaler.reverse_transform_numpy(expected)
    np.testing.assert_allclose(back, rewards, rtol=0, atol=1e-6)
    assert to_d3rlpy(-0.5).transform_numpy(1.0) == 0.5


def test_training_with_the_scaler_is_training_with_shifted_rewards() -> None:
    scaled = fit(replay(), to_d3rlpy(ZERO), steps=50)
    shifted = fit(shift_dataset(replay(), ZERO), steps=50)
    np.testing.assert_array_equal(scaled.predict_value(*EVERY), shifted.predict_value(*EVERY))


def test_frames_may_be_stacked() -> None:
    to_d3rlpy(-0.5).fit_with_transition_picker(episodes(), FrameStackTransitionPicker(2))


@pytest.mark.parametrize(
    "picker", [MultiStepTransitionPicker(3, GAMMA), SparseRewardTransitionPicker(-10.0)]
)
def test_sums_of_rewards_are_refused_before_anything_happens(picker: Any, tmp_path: Path) -> None:
    agent = DQNConfig(reward_scaler=to_d3rlpy(-0.5)).create()
    train(agent, replay(), 1)  # once is not for ever
    with pytest.raises(InputError, match=f"a {type(picker).__name__} may put several rewards"):
        agent.fit(replay(picker), n_steps=1)
    assert not list(tmp_path.iterdir())


def test_a_decision_transformer_is_refused(tmp_path: Path) -> None:
    agent = DiscreteDecisionTransformerConfig(reward_scaler=to_d3rlpy(-0.5)).create()
    with pytest.raises(InputError, match="Decision Transformer has them: use shift_dataset"):
        agent.fit(replay(), n_steps=1)
    assert not list(tmp_path.iterdir())


def test_absorbing_is_no_scaler() -> None:
    with pytest.raises(InputError, match=r"does not know what is terminal.*use shift_dataset"):
        to_d3rlpy(EXACT)


# --- the data set --------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [ZERO, EXACT])
def test_a_data_set_is_shifted_step_by_step(shift: Shift) -> None:
    dataset = replay()
    shifted = shift_dataset(dataset, shift)
    paid = []
    for ours, theirs, kept in zip(shifted.episodes, dataset.episodes, episodes(), strict=True):
        assert ours.observations is theirs.observations
        assert ours.terminated == theirs.terminated
        moved = ours.rewards - (2.0 * theirs.rewards - 0.5)
        assert ours.rewards.dtype == np.float32
        np.testing.assert_allclose(moved[:-1], 0.0, atol=1e-6)
        paid.append(float(moved[-1, 0]))
        np.testing.assert_array_equal(theirs.rewards, kept.rewards)
    credit = -0.5 * GAMMA / (1 - GAMMA) if shift.terminal == "absorbing" else 0.0
    expected = [credit * episode.terminated for episode in dataset.episodes]
    np.testing.assert_allclose(paid, expected, atol=1e-5)
    assert 0 < sum(episode.terminated for episode in dataset.episodes) < len(paid)


@pytest.mark.parametrize("shift", [ZERO, EXACT])
def test_multi_step_returns_are_right_with_it_and_wrong_with_a_scaler(shift: Shift) -> None:
    dataset = replay(MultiStepTransitionPicker(3, GAMMA))
    scaler = to_d3rlpy(ZERO)
    wrong = 0
    shifted = transitions(shift_dataset(dataset, shift))
    for ours, theirs in zip(shifted, transitions(dataset), strict=True):
        expected = shift.multistep_return(theirs.reward, theirs.interval, bool(theirs.terminal))
        np.testing.assert_allclose(ours.reward, expected, rtol=0, atol=1e-5)
        scaled = scaler.transform_numpy(theirs.reward)
        wrong += not np.allclose(scaled, expected, rtol=0, atol=1e-2)
    assert wrong > dataset.transition_count / 2


def test_a_decision_transformer_is_told_sums_of_shifted_rewards() -> None:
    shifted = shift_dataset(replay(), ZERO)
    sliced = shifted.trajectory_slicer(shifted.episodes[5], 3, 4)
    primal = episodes()[5].rewards
    expected = [(2.0 * primal[start:] - 0.5).sum() for start in range(4)]
    np.testing.assert_allclose(sliced.returns_to_go[:, 0], expected, atol=1e-5)
    agent = DiscreteDecisionTransformerConfig(
        encoder_factory=VectorEncoderFactory([8]), num_heads=1, num_layers=1, context_size=4
    ).create()
    train(agent, shifted, 2)


def test_a_buffer_that_forgets_keeps_what_it_has() -> None:
    dataset = replay(buffer=FIFOBuffer(limit=20))
    shifted = shift_dataset(dataset, ZERO)
    assert shifted.transition_count == dataset.transition_count == 20
    for ours, theirs in zip(transitions(shifted), transitions(dataset), strict=True):
        np.testing.assert_array_equal(ours.reward, ZERO.reward(theirs.reward))
        np.testing.assert_array_equal(ours.next_observation, theirs.next_observation)
    assert shifted.dataset_info == dataset.dataset_info


def test_a_second_shift_is_refused() -> None:
    shifted = shift_dataset(replay(), ZERO)
    with pytest.raises(InputError, match=r"shifted already, by Shift\(bias=-0.5"):
        shift_dataset(shifted, 1.0)
    agent = DQNConfig(reward_scaler=to_d3rlpy(-0.5)).create()
    with pytest.raises(InputError, match="shifted already"):
        train(agent, shifted, 1)


def test_shifted_rewards_are_not_kept_in_a_file(tmp_path: Path) -> None:
    with (tmp_path / "set.h5").open("w+b") as file, pytest.raises(InputError, match="not kept"):
        shift_dataset(replay(), ZERO).dump(file)


@pytest.mark.parametrize(
    ("dataset", "match"),
    [
        (lambda: MixedReplayBuffer(replay(), replay(), 0.5), "expected a ReplayBuffer"),
        (lambda: replay(SparseRewardTransitionPicker(-10.0)), "are primal"),
        (lambda: d3rlpy.dataset.create_infinite_replay_buffer(env=gym.make("CartPole-v1")), "no"),
    ],
)
def test_what_cannot_be_shifted_is_refused(dataset: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        shift_dataset(dataset(), -0.5)


# --- values on the primal scale ------------------------------------------------------------


def both_ways(shift: Shift, *, ends: bool, scaler: bool) -> tuple[np.ndarray, np.ndarray]:
    """Primal values of training with a shift, and of training from another initial value."""
    raw = replay(ends=ends)
    agent = fit(raw, to_d3rlpy(shift)) if scaler else fit(shift_dataset(raw, shift))
    other = fit(raw, lower=shift.value_offset)
    return from_d3rlpy(agent, shift)(*EVERY), other.predict_value(*EVERY)


@pytest.mark.parametrize(
    ("terminal", "ends", "scaler"),
    [("absorbing", True, False), ("zero", False, False), ("zero", False, True)],
)
def test_a_shift_is_another_initial_value(terminal: Any, ends: bool, scaler: bool) -> None:
    ours, theirs = both_ways(Shift(-0.5, 1.0, GAMMA, terminal), ends=ends, scaler=scaler)
    assert np.ptp(theirs) > 0.3  # something was learned
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)


def test_with_zero_and_terminal_states_it_is_not() -> None:
    ours, theirs = both_ways(Shift(-0.5, 1.0, GAMMA), ends=True, scaler=True)
    assert np.abs(ours - theirs).max() > 0.5


def test_a_saved_agent_comes_back_with_its_scaler(tmp_path: Path) -> None:
    agent = fit(replay(), to_d3rlpy(ZERO), steps=10)
    agent.save(str(tmp_path / "agent.d3"))
    loaded = d3rlpy.load_learnable(str(tmp_path / "agent.d3"))
    assert loaded.reward_scaler == ConstantShiftRewardScaler(-0.5, 2.0, multiply_first=True)
    values = from_d3rlpy(loaded, Shift(-0.5, 2.0))(*EVERY)  # the discount is the agent's
    np.testing.assert_array_equal(values, from_d3rlpy(agent, ZERO)(*EVERY))
    np.testing.assert_allclose(values, (agent.predict_value(*EVERY) + 5.0) / 2.0, atol=1e-5)


def test_values_of_continuous_actions() -> None:
    rng = np.random.default_rng(0)
    observations, actions = rng.normal(size=(2, 40, 3)).astype(np.float32)
    dataset = d3rlpy.dataset.MDPDataset(
        observations, actions, rng.normal(size=40), np.arange(40) % 10 == 9
    )
    agent = CQLConfig(batch_size=4, gamma=GAMMA, reward_scaler=to_d3rlpy(ZERO)).create()
    train(agent, dataset, 2)
    values = from_d3rlpy(agent, ZERO)(observations, actions)
    np.testing.assert_allclose(
        ZERO.from_primal(values), agent.predict_value(observations, actions), atol=1e-5
    )


def test_values_of_an_agent_with_the_same_scaler_by_other_numbers() -> None:
    scaler = ConstantShiftRewardScaler(-0.25, 2.0, multiply_first=False)
    agent = DQNConfig(gamma=GAMMA, reward_scaler=scaler).create()
    train(agent, replay(), 1)
    assert np.isfinite(from_d3rlpy(agent, ZERO)(*EVERY)).all()


@pytest.mark.parametrize(
    ("config", "shift", "match"),
    [
        (DQNConfig(gamma=0.99), ZERO, r"gamma=0.99, but the shift is Shift\(bias=-0.5"),
        (DQNConfig(gamma=GAMMA, reward_scaler=to_d3rlpy(1.0)), ZERO, "trained with .*1.0"),
        (DQNConfig(gamma=GAMMA, reward_scaler=MultiplyRewardScaler(2.0)), ZERO, "trained with"),
        (DQNConfig(gamma=GAMMA, reward_scaler=to_d3rlpy(ZERO)), EXACT, "terminal"),
        (DiscreteDecisionTransformerConfig(), -0.5, "with a Q function"),
    ],
)
def test_values_that_would_be_wrong_are_refused(config: Any, shift: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        from_d3rlpy(config.create(), shift)


# --- Gymnasium as d3rlpy pins it -----------------------------------------------------------


def test_an_environment_is_shifted_for_fit_online() -> None:
    env = ShiftReward(gym.make("CartPole-v1"), -0.25)
    buffer = d3rlpy.dataset.create_fifo_replay_buffer(20, env=env)
    agent = DQNConfig(batch_size=4).create()
    agent.fit_online(
        env, buffer, n_steps=20, show_progress=False, logger_adapter=NoopAdapterFactory()
    )
    rewards = np.concatenate([episode.rewards for episode in buffer.episodes])
    assert set(rewards.ravel().tolist()) == {0.75}


@pytest.mark.filterwarnings("ignore:.*does not say its autoreset mode")
def test_rows_that_are_only_reset_are_left_alone() -> None:
    envs = VectorShiftReward(
        gym.make_vec("CartPole-v1", 2, vectorization_mode="sync", max_episode_steps=2), -0.5
    )
    envs.reset(seed=0)
    seen = [envs.step(np.array([0, 1]))[1].tolist() for _ in range(4)]
    assert seen == [[0.5, 0.5], [0.5, 0.5], [0.0, 0.0], [0.5, 0.5]]


# --- the page ------------------------------------------------------------------------------


def test_the_page_runs() -> None:
    """Its blocks are skipped where there is no d3rlpy, so they run here."""
    page = Path(__file__).parents[1] / "docs" / "integrations.md"
    section = page.read_text().split("\n## d3rlpy\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(blocks) == section.count("```python") >= 2
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    assert names["values"](STATES[:, :3], np.zeros(4)).shape == (4,)
