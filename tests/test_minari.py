"""Minari's data sets and the embedded ones: every bit comes back, and nothing is overwritten."""

import copy
import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import minari
import numpy as np
import pytest
from data_makers import datasets, same, small, types, write
from fuzzing import contents
from hypothesis import given, settings

from rewardshift.cli import main
from rewardshift.data import Dataset, load_dataset, minari_dataset
from rewardshift.data.minari_sets import embedded_names
from rewardshift.errors import InputError
from rewardshift.training.config import DataConfig


@settings(max_examples=30)
@given(dataset=datasets())
def test_minari_gives_back_every_bit(dataset: Dataset) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = write(dataset, "random/noise-v0", folder=Path(folder) / "set")
        loaded = load_dataset(place)
    last = np.arange(len(dataset)) == len(dataset) - 1
    same(loaded, replace(dataset, truncated=(dataset.truncated | last) & ~dataset.terminated))


def test_a_data_set_under_an_id(minari_root: Path) -> None:
    dataset = small()
    place = write(dataset, "pendulum/noise-v0")
    assert place == minari_root / "pendulum" / "noise-v0"
    assert sorted(path.name for path in place.iterdir()) == ["README.md", "data"]
    loaded = load_dataset("pendulum/noise-v0")
    same(loaded, dataset)
    assert (loaded.name, loaded.env) == ("pendulum/noise-v0", "Pendulum-v1")
    assert loaded.note == "Noise."
    assert loaded.digest == dataset.digest
    found = minari_dataset("pendulum/noise-v0")
    assert isinstance(found, minari.MinariDataset)
    assert list(minari.list_local_datasets()) == ["pendulum/noise-v0"]
    assert (found.total_episodes, found.total_steps) == (2, 5)
    assert found.storage.metadata["algorithm_name"] == "Chance"
    assert found.storage.metadata["recipe"] == {"seed": 1}
    assert found.action_space == gym.spaces.Box(-2, 2, (1,), np.float32)
    assert found.observation_space.dtype == np.float32
    assert repr(found[0]).startswith("EpisodeData(id=0, total_steps=3")
    env: Any = found.recover_environment()
    assert env.spec.id == "Pendulum-v1"
    env.close()
    card = (place / "README.md").read_text()
    for line in (
        "# pendulum/noise-v0",
        "Noise.",
        "| environment | Pendulum-v1 |",
        "| episodes | 2: 1 terminated, 1 truncated |",
        "| return | mean 1.5, from 1 to 2 |",
        '"seed": 1',
    ):
        assert line in card


def test_writing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    places = [write(small(), "ab/x-v0", folder=tmp_path / name) for name in ("one", "two")]
    for name in ("README.md", "data/main_data.hdf5", "data/metadata.json"):
        assert (places[0] / name).read_bytes() == (places[1] / name).read_bytes()


def test_nothing_is_overwritten(minari_root: Path, tmp_path: Path) -> None:
    place, file = write(small(), "ab/x-v0"), tmp_path / "file"
    file.write_text("precious")
    before = contents(minari_root)
    for name, folder, match in (
        ("ab/x-v0", None, "exists, and nothing is overwritten"),
        ("ab/z-v0", place, "exists"),
        ("ab/z-v0", file, "exists"),
        ("ab/z-v0", file / "within", "cannot write to the folder"),
    ):
        with pytest.raises(InputError, match=match):
            write(small(), name, folder=folder)
    assert file.read_text() == "precious"
    assert contents(minari_root) == before


@pytest.mark.parametrize(
    "name",
    ["x", "x-v", "ab/x", "../x-v0", "ab/../../x-v0", "/tmp/x-v0", "ab//x-v0", "ab/cd//x-v0",
     "a b/x-v0", "data/x-v0", "ab/data/x-v0", "a/x-v0", "x-v0/", "", "x-v0\n", "ab\\x-v0"],
)  # fmt: skip
def test_an_id_that_minari_would_not_find_again(name: str, minari_root: Path) -> None:
    with pytest.raises(InputError, match="is no id of a Minari data set"):
        write(small(), name)
    assert not minari_root.exists()
    with pytest.raises(InputError, match="is no id of a Minari data set"):
        minari_dataset(name)


def test_an_id_in_a_file_downloads_nothing(minari_root: Path) -> None:
    write(small(), "ab/x-v0")
    named = DataConfig("ab/x-v0", load_dataset("ab/x-v0").digest)
    assert len(named.load()) == 5
    shutil.rmtree(minari_root / "ab")
    with pytest.raises(InputError, match="it is not here; to get it: minari download ab/x-v0"):
        named.load()


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> str:
        raise OSError("no space left")

    monkeypatch.setattr("rewardshift.data.writing._card", broken)
    with pytest.raises(OSError, match="no space left"):
        write(small(), "ab/x-v0", folder=tmp_path / "sets" / "x")
    assert not list((tmp_path / "sets").iterdir())


def test_an_environment_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'NoSuchCar-v0' cannot be written into a data set"):
        write(small("NoSuchCar-v0"), "ab/x-v0", folder=tmp_path / "set")
    assert not list(tmp_path.iterdir())


def foreign(
    folder: Path,
    observations: gym.Space[Any],
    actions: gym.Space[Any],
    episodes: list[dict[str, Any]],
    **more: Any,
) -> Path:
    """A data set as others make it."""
    from minari.data_collector import EpisodeBuffer  # noqa: PLC0415
    from minari.dataset.minari_storage import MinariStorage  # noqa: PLC0415

    folder.mkdir()
    storage = MinariStorage.new(folder / "data", observations, actions, **more)
    storage.update_metadata({"dataset_id": "ab/x-v0", "minari_version": minari.__version__})
    storage.update_episodes([EpisodeBuffer(**episode) for episode in episodes])
    return folder


BOX = gym.spaces.Box(-9, 9, (2, 2), np.float64)


def episode(count: int, action: np.ndarray, **more: Any) -> dict[str, Any]:
    return {
        "observations": np.arange(4.0 * (count + 1)).reshape(count + 1, 2, 2),
        "actions": action,
        "rewards": np.arange(count) + 0.5,
        "terminations": np.zeros(count, bool),
        "truncations": np.zeros(count, bool),
        **more,
    }


def test_a_data_set_of_others(tmp_path: Path) -> None:
    """Float64, two axes, an episode without an end, and an episode without a step."""
    pair = [episode(3, np.arange(3)), episode(2, np.arange(2))]
    folder = foreign(tmp_path / "set", BOX, gym.spaces.Discrete(3), pair)
    dataset = load_dataset(folder)
    assert dataset.observation.shape == (5, 4)
    assert types(dataset) == ["float32", "int32", "float32"]
    np.testing.assert_array_equal(dataset.action, [0, 1, 2, 0, 1])
    np.testing.assert_array_equal(dataset.next_observation[:, 0], [4, 8, 12, 4, 8])
    np.testing.assert_array_equal(dataset.truncated, [0, 0, 1, 0, 1])
    assert (dataset.env, dataset.note) == (None, "")


@pytest.mark.parametrize(
    ("spaces", "broken", "message"),
    [
        ({"observations": gym.spaces.Dict({"goal": BOX})}, None, "only a Box can be read"),
        ({"actions": gym.spaces.MultiDiscrete([2, 2])}, None, "only a Box of floating point"),
        ({"actions": gym.spaces.Discrete(2, start=1)}, None, "Discrete from 0 on"),
        ({"actions": gym.spaces.Box(0, 9, (1,), np.int64)}, None, "only a Box of floating point"),
        ({}, {"rewards": np.array([0.0, np.nan])}, "'rewards' has nan in row 1"),
        ({}, {"observations": np.full((3, 2, 2), 1e99)}, "'observations' has 1e+99 in"),
        ({}, {"observations": np.ones((2, 2, 2))}, "episode 0, has 2 rewards, and not as many"),
        ({}, {"actions": np.ones(3, int)}, "episode 0, has 2 rewards, and not as many"),
    ],
)
def test_what_no_agent_takes_of_others(
    spaces: dict[str, Any], broken: dict[str, Any] | None, message: str, tmp_path: Path
) -> None:
    episodes = [] if broken is None else [episode(2, np.arange(2), **broken)]
    given: Any = {"observations": BOX, "actions": gym.spaces.Discrete(3), **spaces}
    folder = foreign(tmp_path / "set", episodes=episodes, **given)
    with pytest.raises(InputError) as caught:
        load_dataset(folder)
    assert message in str(caught.value)


def test_an_empty_or_damaged_data_set(tmp_path: Path) -> None:
    folder = foreign(tmp_path / "set", BOX, gym.spaces.Discrete(3), [])
    with pytest.raises(InputError, match="has no transitions"):
        load_dataset(folder)
    (folder / "data" / "main_data.hdf5").write_bytes(b"nothing")
    metadata = folder / "data" / "metadata.json"
    body = json.loads(metadata.read_text())
    for text, match in (
        (json.dumps({**body, "total_episodes": 1}), "cannot be read"),
        (json.dumps({**body, "minari_version": "99.0"}), "does not support"),
        ("{", "cannot be loaded"),
    ):
        metadata.write_text(text)
        with pytest.raises(InputError, match=match):
            load_dataset(folder)
    del body["action_space"]
    metadata.write_text(json.dumps(body))
    with pytest.raises(InputError, match="it does not state its spaces"):
        load_dataset(folder)


def test_an_environment_with_other_settings_is_not_named(tmp_path: Path) -> None:
    action = np.zeros((1, 1), np.float32)
    space = gym.spaces.Box(-2, 2, (1,), np.float32)
    wrapper = gym.wrappers.ClipAction.wrapper_spec()
    cases: list[tuple[dict[str, Any], bool]] = [
        ({}, False),
        ({"kwargs": {"render_mode": "rgb_array"}}, False),
        ({"kwargs": {"g": 1.0}}, True),
        ({"max_episode_steps": 50}, True),
        ({"additional_wrappers": (wrapper,)}, True),
    ]
    for number, (changes, other) in enumerate(cases):
        spec = copy.deepcopy(gym.spec("Pendulum-v1"))
        for name, value in changes.items():
            setattr(spec, name, value)
        folder = foreign(tmp_path / f"{number}", BOX, space, [episode(1, action)], env_spec=spec)
        dataset = load_dataset(folder)
        assert dataset.env == (None if other else "Pendulum-v1")
        assert ("of Pendulum-v1 with other settings" in dataset.note) == other


def test_an_embedded_data_set(shipped: Path) -> None:
    assert embedded_names() == ["few"]
    dataset = load_dataset("embedded/few")
    same(dataset, small())
    assert (dataset.name, dataset.env) == ("embedded/few", "Pendulum-v1")
    assert isinstance(minari_dataset("embedded/few"), minari.MinariDataset)


@pytest.mark.parametrize("name", ["embedded/no", "embedded/", "embedded/../embedded/few"])
def test_an_embedded_data_set_that_is_not_there(name: str, shipped: Path) -> None:
    with pytest.raises(InputError, match=r"comes with rewardshift; there are: embedded/few$"):
        load_dataset(name)


def test_what_a_data_set_says_does_not_steer_the_terminal(
    minari_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(small(), "few/loud-v0")
    path = folder / "data" / "metadata.json"
    body = json.loads(path.read_text())
    body["description"] = "\x1b[31mred\x1b[0m \x07"
    path.write_text(json.dumps(body))
    assert main(["data", "inspect", str(folder)]) == 0
    said = capsys.readouterr()
    assert r"\x1b[31mred\x1b[0m \x07" in said.out
    body["env_spec"] = body["env_spec"].replace("Pendulum-v1", "Pend\\u001b[5mulum-v1")
    path.write_text(json.dumps(body))
    assert main(["data", "inspect", str(folder)]) == 2
    refused = capsys.readouterr()
    assert r"Pend\x1b[5mulum-v1" in refused.err
    for text in (*said, *refused):
        assert not {"\x1b", "\x07"} & set(text)
