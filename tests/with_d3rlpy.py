"""d3rlpy itself, in its own virtual environment (`make d3rlpy`), with the Gymnasium that it pins.

The name of this file keeps it out of the other tests, whose environment has no d3rlpy.
"""

import re
from pathlib import Path
from typing import Any

import d3rlpy
import gymnasium as gym
import numpy as np
import pytest
import torch
from d3rlpy.algos import DiscreteDecisionTransformerConfig, DQNConfig
from d3rlpy.dataset import (
    FIFOBuffer,
    FrameStackTransitionPicker,
    MixedReplayBuffer,
    MultiStepTransitionPicker,
    SparseRewardTransitionPicker,
)
from d3rlpy.logging import NoopAdapterFactory
from d3rlpy.models import VectorEncoderFactory
from d3rlpy.preprocessing import ConstantShiftRewardScaler
from d3rlpy_makers import (
    EVERY,
    EXACT,
    GAMMA,
    STATES,
    ZERO,
    empty_folder,  # noqa: F401  a fixture of every test
    episodes,
    fit,
    replay,
    train,
    transitions,
)

from rewardshift import Cautious, Shift, ShiftReward, VectorShiftReward
from rewardshift.errors import InputError
from rewardshift.integrations.d3rlpy import (
    from_d3rlpy,
    shift_dataset,
    to_d3rlpy,
    trained_shift,
)


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


TRANSFORMER = DiscreteDecisionTransformerConfig


@pytest.mark.parametrize(
    ("config", "picker", "match"),
    [
        (DQNConfig, MultiStepTransitionPicker(3, GAMMA), "MultiStep.* may put several rewards"),
        (DQNConfig, SparseRewardTransitionPicker(-10.0), "Sparse.* may put several rewards"),
        (TRANSFORMER, None, "Decision Transformer has them: use shift_dataset"),
    ],
)
def test_sums_of_rewards_are_refused_before_anything_happens(
    config: Any, picker: Any, match: str, tmp_path: Path
) -> None:
    agent = config(reward_scaler=to_d3rlpy(-0.5)).create()
    if config is DQNConfig:
        train(agent, replay(FrameStackTransitionPicker(1)), 1)  # once is not for ever
    with pytest.raises(InputError, match=match):
        agent.fit(replay(picker), n_steps=1)
    assert not list(tmp_path.iterdir())


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


@pytest.mark.parametrize(
    ("dataset", "match"),
    [
        (lambda: MixedReplayBuffer(replay(), replay(), 0.5), "expected a ReplayBuffer"),
        (lambda: replay(SparseRewardTransitionPicker(-10.0)), "writes primal rewards"),
        (lambda: d3rlpy.dataset.create_infinite_replay_buffer(env=gym.make("CartPole-v1")), "no"),
        (lambda: shift_dataset(replay(), ZERO), r"shifted already, by Shift\(bias=-0.5"),
    ],
)
def test_what_cannot_be_shifted_is_refused(dataset: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        shift_dataset(dataset(), -0.5)


def test_a_scaler_refuses_shifted_data_and_shifted_data_a_file(tmp_path: Path) -> None:
    shifted = shift_dataset(replay(), ZERO)
    with pytest.raises(InputError, match="shifted already"):
        train(DQNConfig(reward_scaler=to_d3rlpy(-0.5)).create(), shifted, 1)
    with (tmp_path / "set.h5").open("w+b") as file, pytest.raises(InputError, match="not kept"):
        shifted.dump(file)


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


def chosen() -> Shift:
    """The shift of the random task's data, whose lowest reward is that of a step."""
    data = replay().episodes
    paid = np.concatenate([episode.rewards.ravel() for episode in data])
    last = [np.arange(len(one.rewards)) == len(one.rewards) - 1 for one in data]
    ends = [flags & one.terminated for flags, one in zip(last, data, strict=True)]
    return Cautious().shift(paid, np.concatenate(ends), GAMMA)


def test_auto_is_chosen_from_the_data() -> None:
    shifted = shift_dataset(replay(), "auto", gamma=GAMMA)
    agent = fit(shifted, steps=1)
    assert chosen().bias > 0
    assert trained_shift(agent, shifted) == chosen()
    values = from_d3rlpy(agent, trained_shift(agent, shifted))
    assert values(STATES, np.zeros(4)).shape == (4,)
    scaler = to_d3rlpy("auto", GAMMA, replay())
    assert (scaler.shift, scaler.multiplier) == (chosen().bias, 1.0)
    assert scaler.transform_numpy(0.0) == chosen().bias


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: to_d3rlpy("auto", GAMMA), "chooses from the data"),
        (lambda: to_d3rlpy("auto", None, replay()), "needs the agent's discount"),
        (lambda: to_d3rlpy(Cautious(), GAMMA, replay()), "use shift_dataset"),
        (lambda: to_d3rlpy(EXACT), "does not know what is terminal.*use shift_dataset"),
        (lambda: to_d3rlpy("auto", GAMMA, shift_dataset(replay(), ZERO)), "shifted already"),
        (lambda: shift_dataset(replay(), "auto"), "needs the agent's discount"),
        (lambda: shift_dataset(replay(), -0.5, GAMMA), "gamma is for"),
    ],
)
def test_a_choice_without_what_it_needs_is_refused(make: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        make()


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
