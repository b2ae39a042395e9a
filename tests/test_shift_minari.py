"""Minari data sets that are shifted while they are read."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import minari
import numpy as np
import pytest
from fuzzing import as_installed, contents
from minari.data_collector import EpisodeBuffer

from rewardshift import CQL, Auto, Cautious, Shift, ShiftReward, load_dataset, train_offline
from rewardshift.cli import main
from rewardshift.data import minari_dataset
from rewardshift.errors import InputError
from rewardshift.integrations.minari import shift_minari

ZERO = Shift(-0.5, 2.0)
EXACT = Shift(-0.5, 2.0, 0.9, "absorbing")
# What Minari warns of if it is missing.
CREDITS: dict[str, Any] = {
    "algorithm_name": "Chance",
    "description": "A few steps.",
    "code_permalink": "none",
    "author": "somebody",
    "author_email": "none",
    "eval_env": "CartPole-v1",
}
# Minari leaves the cleaning of a collector's folder to the garbage collector.
LEFT_BEHIND = pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")
FIELDS = ("id", "observations", "actions", "terminations", "truncations")


def episode(rewards: list[float], terminated: bool, truncated: bool) -> EpisodeBuffer:
    count = len(rewards)
    ends = np.arange(count) == count - 1
    return EpisodeBuffer(
        observations=np.linspace(0, 0.1, 4 * count + 4, dtype=np.float32).reshape(-1, 4),
        actions=np.arange(count) % 2,
        rewards=np.array(rewards),
        terminations=ends & terminated,
        truncations=ends & truncated,
    )


@pytest.fixture
def few(minari_root: Path) -> minari.MinariDataset:
    """Three episodes in Minari's place: terminated, truncated, and both; with reference scores."""
    return minari.create_dataset_from_buffers(
        "few/ends-v0",
        [
            episode([1.0, 2.0, 3.0], True, False),
            episode([4.0, 5.0], False, True),
            episode([6.0, 7.0], True, True),
        ],
        env="CartPole-v1",
        ref_min_score=0.0,
        ref_max_score=10.0,
        **CREDITS,
    )


def rewards(dataset: minari.MinariDataset) -> list[list[float]]:
    return [found.rewards.tolist() for found in dataset]


def test_nothing_but_the_rewards_of_a_real_data_set_changes() -> None:
    primal = minari_dataset("embedded/hopper-medium")
    shifted = shift_minari(primal, EXACT)
    assert isinstance(shifted, minari.MinariDataset)
    assert (len(shifted), shifted.total_steps) == (len(primal), primal.total_steps)
    assert {bool(one.truncations[-1]) for one in primal} == {True, False}  # which gets no credit
    for ours, theirs in zip(shifted, primal, strict=True):
        for field in FIELDS:
            np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field))
        assert ours.rewards.dtype == theirs.rewards.dtype
        expected = EXACT.reward(theirs.rewards, theirs.terminations)
        np.testing.assert_array_equal(ours.rewards, expected)


def test_every_way_to_an_episode_is_shifted(few: minari.MinariDataset) -> None:
    shifted = shift_minari(few, ZERO)
    shifted.set_seed(1)
    few.set_seed(1)
    assert rewards(shifted) == [[1.5, 3.5, 5.5], [7.5, 9.5], [11.5, 13.5]]
    assert rewards(few) == [[1.0, 2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
    assert [found.id for found in shifted.iterate_episodes([2, 0])] == [2, 0]
    for ours, theirs in zip(shifted.sample_episodes(2), few.sample_episodes(2), strict=True):
        assert ours.id == theirs.id
        assert ours.rewards.tolist() == (2 * theirs.rewards - 0.5).tolist()
    long = shifted.filter_episodes(lambda found: found.rewards[0] > 7)
    assert rewards(long) == [[7.5, 9.5], [11.5, 13.5]]
    assert long.total_steps == 4
    assert (shifted.id, shifted.env_spec) == (few.id, few.env_spec)
    env = shifted.recover_environment()
    env.reset(seed=0)
    assert env.step(0)[1] == 1.0
    env.close()


def test_no_episode_is_read_before_it_is_asked_for(few: minari.MinariDataset) -> None:
    data = Path(few.spec.data_path) / "main_data.hdf5"
    data.rename(data.with_suffix(".away"))
    shifted = shift_minari(few, ZERO)
    with pytest.raises(FileNotFoundError):
        shifted[0]
    data.with_suffix(".away").rename(data)
    assert shifted[0].rewards.tolist() == [1.5, 3.5, 5.5]


def test_normalised_scores_are_refused(few: minari.MinariDataset) -> None:
    assert minari.get_normalized_score(few, np.array(6.0)) == 0.6
    shifted = shift_minari(few, -0.5)
    with pytest.raises(InputError, match="normalised score compares primal returns"):
        minari.get_normalized_score(shifted, np.array(6.0))
    assert "ref_max_score" not in shifted.storage.metadata
    assert shifted.storage.metadata.get("algorithm_name") == "Chance"


@pytest.mark.parametrize(
    ("use", "match"),
    [
        (lambda found: found.update_dataset_from_buffer([episode([1.0], True, False)]), "only"),
        (lambda found: found.storage.update_metadata({"description": "changed"}), "only read"),
        (lambda found: found.storage.update_episode_metadata([{"a": 1}], [0]), "only read"),
        (lambda found: found.storage.update_from_storage(found.storage), "only read"),
        (lambda found: minari.split_dataset(found, [1, 2]), "split or combine"),
        (lambda found: minari.combine_datasets([found], "few/both-v0"), "split or combine"),
        (lambda found: found.spec, "id, env_spec and total_steps"),
    ],
)
def test_a_view_is_neither_written_nor_taken_for_its_folder(
    few: minari.MinariDataset, minari_root: Path, use: Any, match: str
) -> None:
    before = contents(minari_root)
    with pytest.raises(InputError, match=match):
        use(shift_minari(few, -0.5))
    assert contents(minari_root) == before
    assert list(minari.list_local_datasets()) == ["few/ends-v0"]


@pytest.mark.parametrize("use", [load_dataset, partial(train_offline, CQL(shift=1.0))])
def test_our_agents_do_not_take_it_for_primal(few: minari.MinariDataset, use: Any) -> None:
    with as_installed(), pytest.raises(InputError, match="MinariDataset"):
        use(shift_minari(few, -0.5))


@pytest.fixture
def recorded(minari_root: Path) -> str:
    """A data set that was recorded outside of a shift, so that its rewards are shifted."""
    shifted = ShiftReward(gym.make("CartPole-v1"), ZERO)
    collector = minari.DataCollector(shifted)
    collector.reset(seed=0)
    for _ in range(5):
        collector.step(0)
    collector.create_dataset("few/shifted-v0", **CREDITS)
    collector.close()
    return "few/shifted-v0"


@LEFT_BEHIND
def test_a_recorded_shift_is_not_applied_a_second_time(
    recorded: str, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = minari.load_dataset(recorded)
    assert set(dataset[0].rewards.tolist()) == {1.5}
    with pytest.raises(InputError, match=r"recorded under ShiftReward.*'bias': -0.5.*'scale': 2"):
        shift_minari(dataset, -0.5)
    with pytest.raises(InputError, match=r"recorded under ShiftReward.*must be primal"):
        load_dataset(recorded)
    assert main(["data", "inspect", recorded]) == 2
    assert "recorded under ShiftReward" in capsys.readouterr().err


@LEFT_BEHIND
def test_a_shift_outside_of_the_recording_leaves_the_rewards_primal(minari_root: Path) -> None:
    recorder = minari.DataCollector(gym.make("CartPole-v1"))
    shifted = ShiftReward(recorder, ZERO)
    shifted.reset(seed=0)
    assert shifted.step(0)[1] == 1.5
    recorder.create_dataset("few/primal-v0", **CREDITS)
    shifted.close()
    assert load_dataset("few/primal-v0").reward.tolist() == [1.0]
    assert rewards(shift_minari(minari.load_dataset("few/primal-v0"), ZERO)) == [[1.5]]


def test_auto_is_chosen_from_all_episodes(few: minari.MinariDataset) -> None:
    costs = minari.create_dataset_from_buffers(
        "few/costs-v0",
        [episode([1.0, -2.0, 3.0], True, False), episode([-4.0, 5.0], False, True)],
        env="CartPole-v1",
        **CREDITS,
    )
    for shift in ("auto", Cautious()):
        view = shift_minari(costs, shift, gamma=0.5)
        assert view.storage.metadata["reward_shift"] == asdict(Shift(4.0, 1.0, 0.5, "absorbing"))
        assert rewards(view) == [[5.0, 2.0, 11.0], [0.0, 9.0]]
    assert rewards(shift_minari(few, "auto", gamma=0.5)) == rewards(few)  # no cost, no shift
    part = costs.filter_episodes(lambda found: bool(found.terminations[-1]))
    assert shift_minari(part, Cautious("zero"), gamma=0.5)[0].rewards.tolist() == [3.0, 0.0, 5.0]


@pytest.mark.parametrize(
    ("change", "shift", "match"),
    [
        (lambda few: few, Shift(np.array([0.0, 1.0])), "one bias"),
        (lambda few: few, "car", "'auto', got 'car'"),
        (lambda few: few, Auto(2.0), "Auto"),
        (lambda few: few.id, "auto", "a data set of Minari, got 'few/ends-v0'"),
        (lambda few: shift_minari(few, -0.5), "auto", "'few/ends-v0' is shifted already, by .*-0."),
        (lambda few: shift_minari(few, -0.5).filter_episodes(bool), "auto", "shifted already"),
        (lambda few: few.filter_episodes(lambda _: False), "auto", "has no episodes to choose"),
    ],
)
def test_what_cannot_be_shifted_is_refused(
    few: minari.MinariDataset, change: Any, shift: Any, match: str
) -> None:
    with pytest.raises(InputError, match=match):
        shift_minari(change(few), shift, 0.5 if shift == "auto" else None)
