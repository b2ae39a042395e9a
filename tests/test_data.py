"""Data sets: files, Minari, the embedded ones; what they hold, and what is refused."""

import copy
import io
import json
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import gymnasium as gym
import h5py
import minari
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardshift.cli import main
from rewardshift.data import Dataset, Subset, load_dataset, minari_dataset, write_minari
from rewardshift.data.card import discounted_returns, summarise
from rewardshift.data.dataset import FIELDS, Pick
from rewardshift.data.minari_sets import embedded_names
from rewardshift.errors import InputError

Arrays = dict[str, np.ndarray]


@pytest.fixture(autouse=True)
def minari_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Minari's own place, apart from that of whoever runs the tests."""
    root = tmp_path / "minari"
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(root))
    return root


def same(ours: Dataset, theirs: Dataset) -> None:
    for field in FIELDS:
        a, b = getattr(ours, field), getattr(theirs, field)
        assert (a.dtype, a.shape) == (b.dtype, b.shape), field
        assert a.tobytes() == b.tobytes(), field


def types(dataset: Dataset) -> list[str]:
    return [str(getattr(dataset, field).dtype) for field in FIELDS[:3]]


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    """Several episodes, terminated, truncated or both; the last may be cut by the end."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    ends = draw(st.lists(st.integers(1, 3), min_size=len(lengths), max_size=len(lengths)))
    if draw(st.booleans()):
        ends[-1] = 0
    bytes_seen, discrete = draw(st.booleans()), draw(st.booleans())
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def numbers(*shape: int) -> np.ndarray:
        """Any finite float32 at all: also -0.0, subnormal and huge ones."""
        drawn = generator.integers(0, 2**32, shape, dtype=np.uint32).view(np.float32)
        return np.where(np.isfinite(drawn), drawn, np.float32(-0.0))

    width, count = draw(st.integers(1, 3)), sum(lengths)
    first, following = [], []
    for length in lengths:
        shape = (length + 1, width)
        seen = generator.integers(0, 256, shape, np.uint8) if bytes_seen else numbers(*shape)
        first.append(seen[:-1])
        following.append(seen[1:])
    flags = np.zeros((2, count), bool)
    flags[:, np.cumsum(lengths) - 1] = np.array([[end & 1, end & 2] for end in ends]).T
    return Dataset(
        name="random",
        observation=np.concatenate(first),
        action=generator.integers(0, 5, count, np.int32) if discrete else numbers(count, 2),
        reward=numbers(count),
        next_observation=np.concatenate(following),
        terminated=flags[0],
        truncated=flags[1],
    )


# Files.

# Two episodes, a terminated and a cut one, and a third that the file cuts.
ROWS: Arrays = {
    "observations": np.arange(7.0)[:, None] * [1.0, 10.0],
    "actions": np.linspace(-1, 1, 7)[:, None],
    "rewards": np.arange(7.0) - 3,
    "terminals": np.array([0, 1, 0, 0, 0, 0, 0], bool),
    "timeouts": np.array([0, 0, 0, 0, 1, 0, 0], bool),
}


def write_hdf5(path: Path, arrays: Arrays) -> Path:
    with h5py.File(path, "w") as file:
        for key, values in arrays.items():
            file[key] = values
    return path


def write_npz(path: Path, arrays: Arrays) -> Path:
    np.savez(path, allow_pickle=True, **arrays)  # as others do it
    return path


KINDS = [("a.hdf5", write_hdf5), ("a.h5", write_hdf5), ("a.npz", write_npz)]
Writer = Callable[[Path, Arrays], Path]


@pytest.mark.parametrize(("name", "write"), KINDS)
def test_a_file_without_next_observations(name: str, write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path / name, {**ROWS, "infos/qpos": np.ones(3)})
    dataset = load_dataset(path)
    # Rows 4 (a time limit) and 6 (the end of the file) led to what nobody knows.
    np.testing.assert_array_equal(dataset.observation[:, 0], [0, 1, 2, 3, 5])
    np.testing.assert_array_equal(dataset.next_observation[:, 0], [1, 1, 3, 4, 6])
    np.testing.assert_array_equal(dataset.terminated, [0, 1, 0, 0, 0])
    np.testing.assert_array_equal(dataset.truncated, [0, 0, 0, 1, 1])
    np.testing.assert_array_equal(dataset.reward, [-3, -2, -1, 0, 2])
    assert types(dataset) == ["float32", "float32", "float32"]
    assert (dataset.name, dataset.env) == (str(path), None)


def test_a_file_with_next_observations_keeps_every_row(tmp_path: Path) -> None:
    following = ROWS["observations"] + 0.5
    dataset = load_dataset(write_npz(tmp_path / "a.npz", {**ROWS, "next_observations": following}))
    np.testing.assert_array_equal(dataset.next_observation, following)
    np.testing.assert_array_equal(dataset.terminated, ROWS["terminals"])
    np.testing.assert_array_equal(dataset.truncated, [0, 0, 0, 0, 1, 0, 1])


def test_without_timeouts_an_episode_ends_where_the_next_row_does_not_go_on(
    tmp_path: Path,
) -> None:
    arrays = {key: values for key, values in ROWS.items() if key != "timeouts"}
    following = np.roll(ROWS["observations"], -1, axis=0)
    following[[4, 6]] = 99
    dataset = load_dataset(
        write_npz(tmp_path / "a.npz", {**arrays, "next_observations": following})
    )
    np.testing.assert_array_equal(dataset.truncated, [0, 0, 0, 0, 1, 0, 1])


def test_a_terminal_state_wins_over_a_time_limit(tmp_path: Path) -> None:
    arrays = {**ROWS, "timeouts": ROWS["timeouts"] | ROWS["terminals"]}
    dataset = load_dataset(write_npz(tmp_path / "a.npz", arrays))
    np.testing.assert_array_equal(dataset.terminated, [0, 1, 0, 0, 0])
    np.testing.assert_array_equal(dataset.truncated, [0, 0, 0, 1, 1])


def test_an_episode_of_one_row_before_a_time_limit_vanishes(tmp_path: Path) -> None:
    arrays = {**ROWS, "timeouts": np.array([0, 0, 1, 0, 1, 0, 0], bool)}
    dataset = load_dataset(write_npz(tmp_path / "a.npz", arrays))
    np.testing.assert_array_equal(dataset.observation[:, 0], [0, 1, 3, 5])
    np.testing.assert_array_equal(dataset.truncated, [0, 0, 1, 1])


def test_other_types_are_brought_to_ours(tmp_path: Path) -> None:
    arrays = {
        **ROWS,
        "observations": np.arange(14, dtype=np.uint8).reshape(7, 2),
        "actions": np.arange(7, dtype=np.int64),
        "rewards": ROWS["rewards"][:, None],
        "terminals": ROWS["terminals"].astype(np.float64)[:, None],
        "timeouts": ROWS["timeouts"].astype(np.uint8),
    }
    dataset = load_dataset(write_hdf5(tmp_path / "a.hdf5", arrays))
    assert types(dataset) == ["uint8", "int32", "float32"]
    assert (dataset.action.ndim, dataset.reward.shape) == (1, (5,))
    np.testing.assert_array_equal(dataset.terminated, [0, 1, 0, 0, 0])


@settings(max_examples=60)
@given(ends=st.lists(st.sampled_from([0, 0, 0, 1, 2, 3]), min_size=1, max_size=12))
def test_a_next_observation_never_crosses_an_episode(ends: list[int]) -> None:
    """Observations are (episode, step), so that one from elsewhere would be seen."""
    code = np.array(ends)
    episode = np.concatenate([[0], np.cumsum(code[:-1] > 0)])
    step = np.arange(len(code)) - np.flatnonzero(np.r_[True, np.diff(episode) > 0])[episode]
    arrays = {
        "observations": np.stack([episode, step], 1).astype(np.float32),
        "actions": np.zeros((len(code), 1), np.float32),
        "rewards": np.zeros(len(code), np.float32),
        "terminals": (code & 1) > 0,
        "timeouts": (code & 2) > 0,
    }
    known = (code & 1 > 0) | ((code == 0) & (np.arange(len(code)) < len(code) - 1))
    with tempfile.TemporaryDirectory() as folder:
        path = write_npz(Path(folder) / "a.npz", arrays)
        if not known.any():
            with pytest.raises(InputError, match="no transition whose next observation is known"):
                load_dataset(path)
            return
        dataset = load_dataset(path)
    assert len(dataset) == known.sum()
    moved = dataset.next_observation - dataset.observation
    np.testing.assert_array_equal(moved[:, 0], 0)
    np.testing.assert_array_equal(moved[:, 1], ~dataset.terminated)
    for rows in dataset.episodes:  # as many episodes as the file has, but for what was dropped
        assert len(set(dataset.observation[rows, 0])) == 1
        assert dataset.terminated[rows.stop - 1] != dataset.truncated[rows.stop - 1]
    assert len(dataset.episodes) == len(set(dataset.observation[:, 0]))


def changed(key: str, row: int, value: Any, dtype: Any = np.float64) -> Arrays:
    values = ROWS[key].astype(dtype)
    values[row] = value
    return {**ROWS, key: values}


BAD: dict[str, tuple[Arrays, str]] = {
    "missing": (
        {key: ROWS[key] for key in ROWS if key != "terminals"},
        "has no 'terminals'; it has actions, observations, rewards, timeouts",
    ),
    "no boundaries": (
        {key: ROWS[key] for key in ROWS if key != "timeouts"},
        "has neither 'timeouts' nor 'next_observations'",
    ),
    "lengths": ({**ROWS, "actions": ROWS["actions"][:4]}, "has 7 'rewards' and 4 'actions'"),
    "nan": (changed("rewards", 2, np.nan), "'rewards' has nan in row 2"),
    "inf": (changed("observations", 3, np.inf), "'observations' has inf in row 3"),
    "action": (changed("actions", 6, -np.inf), "'actions' has -inf in row 6"),
    "too large": (changed("rewards", 5, 1e300), "'rewards' has 1e+300 in row 5"),
    "flag": (changed("terminals", 4, 2), "'terminals' has 2.0 in row 4, not 0 or 1"),
    "flag nan": (changed("timeouts", 4, np.nan), "'timeouts' has nan in row 4, not 0 or 1"),
    "negative": ({**ROWS, "actions": np.arange(7) - 1}, "'actions' has -1 in row 0"),
    "int64": ({**ROWS, "actions": np.arange(7) + 2**31 - 6}, "'actions' has 2147483648 in row 6"),
    "flat": ({**ROWS, "observations": np.arange(7.0)}, "'observations' has the shape (7,)"),
    "image": ({**ROWS, "observations": np.ones((7, 2, 2))}, "has the shape (7, 2, 2)"),
    "wide": ({**ROWS, "rewards": np.ones((7, 2))}, "'rewards' has the shape (7, 2)"),
    "no features": ({**ROWS, "observations": np.ones((7, 0))}, "rows without a number"),
    "float list": ({**ROWS, "actions": np.ones(7)}, "needs one list of numbers for each row"),
    "int table": ({**ROWS, "actions": np.ones((7, 2), int)}, "needs one number for each row"),
    "complex": ({**ROWS, "rewards": np.ones(7, complex)}, "holds complex128 values, not numbers"),
    "strings": ({**ROWS, "rewards": np.array([b"x"] * 7)}, "'rewards' holds |S1 values"),
    "scalar": ({**ROWS, "rewards": np.array(1.0)}, "'rewards' has the shape ()"),
    "empty": ({key: values[:0] for key, values in ROWS.items()}, "has no transitions"),
    "nothing": ({}, "has no 'observations'; it has nothing"),
    "other next": (
        {**ROWS, "next_observations": np.ones((7, 3))},
        "'observations' of 2 and 'next_observations' of 3 numbers",
    ),
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize(("name", "write"), KINDS[1:])
def test_a_bad_file_is_refused_by_key_and_row(
    what: str, name: str, write: Writer, tmp_path: Path
) -> None:
    arrays, message = BAD[what]
    path = write(tmp_path / name, arrays)
    with pytest.raises(InputError) as caught:
        load_dataset(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    arrays = {**ROWS, "rewards": np.array([Path()] * 7, object)}
    path = write_npz(tmp_path / "a.npz", arrays)
    with pytest.raises(InputError, match="'rewards' cannot be read as an array of numbers: Object"):
        load_dataset(path)


def test_a_folder_in_the_place_of_an_array(tmp_path: Path) -> None:
    arrays = {key: ROWS[key] for key in ROWS if key != "rewards"}
    path = write_hdf5(tmp_path / "a.hdf5", {**arrays, "rewards/x": np.ones(7)})
    with pytest.raises(InputError, match="'rewards' cannot be read as an array of numbers"):
        load_dataset(path)


@pytest.mark.parametrize(("name", "write"), KINDS[1:])
def test_a_damaged_file_is_refused(name: str, write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path / name, ROWS)
    whole = path.read_bytes()
    for content in (b"", b"not at all", whole[: len(whole) // 2], whole[:-8]):
        path.write_bytes(content)
        with pytest.raises(InputError, match="cannot be read"):
            load_dataset(path)


def test_an_npz_with_a_flipped_bit_is_refused(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "a.npz", ROWS)
    with zipfile.ZipFile(path) as file:
        start = file.getinfo("rewards.npy").header_offset
    content = bytearray(path.read_bytes())
    content[start + 230] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="'rewards' cannot be read"):
        load_dataset(path)


def test_one_array_is_not_an_npz(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, ROWS["rewards"])
    (tmp_path / "a.npz").write_bytes(buffer.getvalue())
    with pytest.raises(InputError, match="it is no npz file"):
        load_dataset(tmp_path / "a.npz")


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    for name in ("a.hdf5", "b.h5", "c.npz"):
        with pytest.raises(InputError, match=f"there is no file '.*{name}'"):
            load_dataset(tmp_path / name)
    (tmp_path / "a.csv").write_text("1,2")
    with pytest.raises(InputError, match=r"must end in \.hdf5, \.h5, \.npz"):
        load_dataset(tmp_path / "a.csv")
    with pytest.raises(InputError, match=r"is no id of a Minari data set.*like hopper/medium-v0"):
        load_dataset(str(tmp_path / "nothing"))


# Minari.


def write(dataset: Dataset, name: str, **options: Any) -> Path:
    return write_minari(
        dataset, name, algorithm="Chance", description="Noise.", recipe={"seed": 1}, **options
    )


@settings(max_examples=30)
@given(dataset=datasets())
def test_minari_gives_back_every_bit(dataset: Dataset) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = write(dataset, "random/noise-v0", folder=Path(folder) / "set")
        same(load_dataset(place), dataset)


def small(env: str | None = None, *, ended: bool = True) -> Dataset:
    """Five transitions: a terminated episode of three and a cut one of two."""
    seen = np.arange(7, dtype=np.float32)[:, None] * floats(1, 2, 3)
    return Dataset(
        name="small",
        observation=seen[[0, 1, 2, 4, 5]],
        action=np.array([[-2], [-1], [0], [1], [2]], np.float32),
        reward=floats(1, -2, 3, -4, 5),
        next_observation=seen[[1, 2, 3, 5, 6]],
        terminated=np.array([0, 0, 1, 0, 0], bool),
        truncated=np.array([0, 0, 0, 0, ended], bool),
        env=env,
    )


def test_a_data_set_under_an_id(minari_root: Path) -> None:
    dataset = small("Pendulum-v1")
    place = write(dataset, "pendulum/noise-v0")
    assert place == minari_root / "pendulum" / "noise-v0"
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
    env = found.recover_environment()
    assert env.spec is not None
    assert env.spec.id == "Pendulum-v1"
    env.close()


def test_the_card_says_what_is_in_it(tmp_path: Path) -> None:
    place = write(small("Pendulum-v1"), "pendulum/noise-v0", folder=tmp_path / "set")
    assert sorted(path.name for path in place.iterdir()) == ["README.md", "data"]
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
    place = write(small(), "ab/x-v0")
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match="Minari has 'ab/x-v0' already"):
        write(small(), "ab/x-v0")
    with pytest.raises(InputError, match="would lie within another Minari data set"):
        write(small(), "ab/x-v0/y-v0")
    with pytest.raises(InputError, match="is not an empty folder"):
        write(small(), "ab/z-v0", folder=place)
    (tmp_path / "file").write_text("precious")
    with pytest.raises(InputError, match="is not an empty folder"):
        write(small(), "ab/z-v0", folder=tmp_path / "file")
    with pytest.raises(InputError, match="cannot write to the folder"):
        write(small(), "ab/z-v0", folder=tmp_path / "file" / "within")
    assert (tmp_path / "file").read_text() == "precious"
    files = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    assert files == before
    (tmp_path / "empty").mkdir()
    assert write(small(), "ab/z-v0", folder=tmp_path / "empty") == tmp_path / "empty"


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


def test_minaris_folder_may_be_unusable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "file" / "within"))
    with pytest.raises(InputError, match="Minari's folder cannot be used"):
        write(small(), "ab/x-v0")


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> str:
        raise OSError("no space left")

    monkeypatch.setattr("rewardshift.data.writing.data_card", broken)
    with pytest.raises(OSError, match="no space left"):
        write(small(), "ab/x-v0", folder=tmp_path / "sets" / "x")
    assert not list((tmp_path / "sets").iterdir())


def test_what_is_no_sequence_of_episodes_is_not_written(tmp_path: Path) -> None:
    dataset = small()
    dataset.next_observation[0] += 1
    with pytest.raises(InputError, match="row 1 does not go on from where row 0 led"):
        write(dataset, "ab/x-v0", folder=tmp_path / "set")
    for pick in get_args(Pick):  # a part is one, whatever it is
        part = small().subset(Subset(3, pick, seed=1))
        same(load_dataset(write(part, "ab/x-v0", folder=tmp_path / pick)), part)


def test_an_environment_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'NoSuchCar-v0' cannot be written into a data set"):
        write(small("NoSuchCar-v0"), "ab/x-v0", folder=tmp_path / "set")
    with pytest.raises(InputError, match=r"has actions of the shape \(1,\), CartPole-v1 has Disc"):
        write(small("CartPole-v1"), "ab/x-v0", folder=tmp_path / "set")
    assert not list(tmp_path.iterdir())


def test_an_id_that_is_nowhere() -> None:
    with pytest.raises(InputError, match=r"'no/such-v0' cannot be loaded: .*rewardshift data list"):
        load_dataset("no/such-v0")


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
    np.testing.assert_array_equal(dataset.truncated, [0, 0, 1, 0, 0])
    assert (dataset.env, dataset.note) == (None, "")


@pytest.mark.parametrize(
    ("observations", "actions", "message"),
    [
        (gym.spaces.Dict({"goal": BOX}), gym.spaces.Discrete(2), "only a Box can be read"),
        (BOX, gym.spaces.MultiDiscrete([2, 2]), "only a Box of floating point numbers"),
        (BOX, gym.spaces.Discrete(2, start=1), "Discrete from 0 on"),
        (BOX, gym.spaces.Box(0, 9, (1,), np.int64), "only a Box of floating point numbers"),
    ],
)
def test_spaces_that_no_agent_takes(
    observations: gym.Space[Any], actions: gym.Space[Any], message: str, tmp_path: Path
) -> None:
    folder = foreign(tmp_path / "set", observations, actions, [])
    with pytest.raises(InputError, match=message):
        load_dataset(folder)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"rewards": np.array([0.0, np.nan])}, "episode 0: 'rewards' has nan in row 1"),
        ({"observations": np.full((3, 2, 2), 1e99)}, "episode 0: 'observations' has 1e+99 in row"),
        ({"observations": np.ones((2, 2, 2))}, "episode 0: 1 'observations' do not go with 2"),
        ({"actions": np.ones(3, int)}, "episode 0: 3 'actions' do not go with 2 rewards"),
    ],
)
def test_bad_values_of_others(broken: dict[str, Any], message: str, tmp_path: Path) -> None:
    bad = episode(2, np.arange(2), **broken)
    folder = foreign(tmp_path / "set", BOX, gym.spaces.Discrete(3), [bad])
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
    metadata.write_text(json.dumps({**body, "total_episodes": 1}))
    with pytest.raises(InputError, match="cannot be read"):
        load_dataset(folder)
    metadata.write_text(json.dumps({**body, "minari_version": "99.0"}))
    with pytest.raises(InputError, match="does not support"):
        load_dataset(folder)
    metadata.write_text("{")
    with pytest.raises(InputError, match="cannot be loaded"):
        load_dataset(folder)


def test_an_environment_with_other_settings_is_not_named(tmp_path: Path) -> None:
    action = np.zeros((1, 1), np.float32)
    space = gym.spaces.Box(-2, 2, (1,), np.float32)
    cases: list[tuple[dict[str, Any], str | None]] = [
        ({}, "Pendulum-v1"),
        ({"render_mode": "rgb_array"}, "Pendulum-v1"),
        ({"g": 1.0}, None),
    ]
    for number, (options, known) in enumerate(cases):
        spec = copy.deepcopy(gym.spec("Pendulum-v1"))
        spec.kwargs = options
        folder = foreign(tmp_path / f"{number}", BOX, space, [episode(1, action)], env_spec=spec)
        assert load_dataset(folder).env == known
    assert 'of Pendulum-v1 with {"g": 1.0}' in load_dataset(folder).note


# The embedded ones.


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with one embedded data set."""
    monkeypatch.setattr("rewardshift.data.minari_sets.EMBEDDED", tmp_path / "embedded")
    return write(small("Pendulum-v1"), "rewardshift/few-v0", folder=tmp_path / "embedded" / "few")


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


def test_those_in_the_package_can_be_loaded() -> None:
    for name in embedded_names():
        assert load_dataset(f"embedded/{name}").env is not None


# Parts.


@settings(max_examples=60)
@given(dataset=datasets(), data=st.data(), seed=st.integers(0, 99))
def test_a_part_has_rows_of_the_whole(dataset: Dataset, data: st.DataObject, seed: int) -> None:
    pick = data.draw(st.sampled_from(get_args(Pick)))
    count = data.draw(st.integers(1, len(dataset)))
    part = dataset.subset(Subset(count, pick, seed))
    assert len(part) == count
    fields = [field for field in FIELDS if field != "truncated"]

    def rows(of: Dataset) -> list[tuple[bytes, ...]]:
        return [tuple(getattr(of, f)[i].tobytes() for f in fields) for i in range(len(of))]

    left = rows(dataset)
    for row in rows(part):
        left.remove(row)  # each at most as often as it was there
    same(part, dataset.subset(Subset(count, pick, seed)))
    ends = part.terminated | part.truncated
    led, begun = part.next_observation[:-1], part.observation[1:]
    np.testing.assert_array_equal(led[~ends[:-1]], begun[~ends[:-1]])
    assert ends[-1]


def test_another_seed_is_another_part(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "a.npz", {**ROWS, "next_observations": ROWS["observations"]})
    parts = {load_dataset(path, Subset(3, "transitions", seed)).digest for seed in range(8)}
    assert len(parts) > 3
    same(load_dataset(path, Subset(3, seed=2)), load_dataset(path).subset(Subset(3, seed=2)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"transitions": 6}, "has 5 transitions, 6 were asked for"),
        ({"transitions": 0}, "transitions must be 1 or more, got 0"),
        ({"transitions": 1, "pick": "rows"}, "pick must be 'episodes' or 'transitions'"),
        ({"transitions": 1, "seed": -1}, "must be 0 or more, got -1"),
    ],
)
def test_parts_that_cannot_be(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = write_npz(tmp_path / "a.npz", ROWS)
    with pytest.raises(InputError, match=message):
        load_dataset(path, Subset(**arguments))


def test_what_cannot_be_learned_from_is_no_data_set() -> None:
    columns = {field: getattr(small(), field) for field in FIELDS}
    for changes, message in (
        ({"action": columns["action"][:3]}, "has 5 rewards and 3 rows of 'action'"),
        ({"reward": columns["reward"] * np.nan}, "'reward' is not finite in row 0"),
        ({"reward": columns["reward"][:0]}, "has no transitions"),
        ({"observation": np.ones((5, 2), np.float32)}, "must be flat, alike and not empty"),
        ({"observation": np.ones(5, np.float32)}, "must be flat, alike and not empty"),
    ):
        with pytest.raises(InputError, match=message):
            Dataset("bad", **{**columns, **changes})


# Looking at them.


def test_the_numbers_of_a_data_set() -> None:
    summary = summarise(small(ended=False))
    assert (summary.transitions, summary.episodes) == (5, 2)
    assert (summary.terminated, summary.truncated, summary.unfinished) == (1, 0, 1)
    assert (summary.returns, summary.lengths) == ((1.0, 1.5, 2.0), (2.0, 2.5, 3.0))
    assert summary.rewards == (-4.0, 0.6, 5.0)
    np.testing.assert_allclose(discounted_returns(small(), 0.5), [0.75, -0.5, 3, -1.5, 5])


def test_inspecting_a_data_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(small("Pendulum-v1"), "pendulum/noise-v0")
    picture = tmp_path / "picture.png"
    arguments = ["data", "inspect", "pendulum/noise-v0", "--gamma=0.5", f"--picture={picture}"]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    for line in (
        "environment        Pendulum-v1",
        "transitions        5",
        "episodes           2: 1 terminated, 1 truncated",
        "return             mean 1.5, from 1 to 2",
        "episode length     mean 2.5, from 2 to 3",
        "reward             mean 0.6, from -4 to 5",
        "discounted return  from -1.5 to 5, of every row, at gamma 0.5",
        "Caution everywhere needs a shift of 0.75 or more: --shift 0.75",
        "exact with --terminal absorbing only",
        f"picture: {picture}",
    ):
        assert line in text
    content = picture.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert main(arguments) == 0
    assert picture.read_bytes() == content


def test_inspecting_what_needs_no_shift(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arrays = {**ROWS, "rewards": ROWS["rewards"] + 3, "terminals": ROWS["timeouts"]}
    assert main(["data", "inspect", str(write_npz(tmp_path / "a.npz", arrays))]) == 0
    text = capsys.readouterr().out
    assert "cautious without a shift" in text
    assert "environment        not known" in text
    path = write_npz(tmp_path / "b.npz", {**arrays, "rewards": np.zeros(7)})
    assert main(["data", "inspect", str(path), f"--picture={tmp_path / 'b.png'}"]) == 0
    assert "no shift can be told from them" in capsys.readouterr().out


def test_listing_data_sets(
    shipped: Path, minari_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(small(), "ab/x-v0")
    assert main(["data", "list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "embedded/few  5 transitions, 2 episodes, Pendulum-v1",
        "ab/x-v0  5 transitions, 2 episodes, not known where",
    ]
    (minari_root / "ab" / "y-v0" / "data").mkdir(parents=True)
    assert main(["data", "list"]) == 0
    seen = capsys.readouterr()
    assert len(seen.out.splitlines()) == 2
    assert "Misconfigured dataset named ab/y-v0" in seen.err
    (minari_root / "odd" / "data").mkdir(parents=True)
    assert main(["data", "list"]) == 2
    assert "Minari cannot list its data sets" in capsys.readouterr().err


@pytest.mark.usefixtures("minari_root")
def test_an_empty_list_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rewardshift.data.minari_sets.EMBEDDED", tmp_path / "embedded")
    assert main(["data", "list"]) == 0
    assert capsys.readouterr().out.startswith("no data sets; make one with: rewardshift collect")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.hdf5"], "there is no file 'nothing.hdf5'"),
        (["nothing"], "'nothing' is no id of a Minari data set"),
        (["no/such-v0"], "'no/such-v0' cannot be loaded"),
        (["embedded/nothing"], "no data set 'embedded/nothing' comes with rewardshift"),
        (["a.npz", "--gamma=1"], "gamma must be in [0, 1), got 1.0"),
        (["a.npz", "--gamma=nan"], "gamma must be in [0, 1), got nan"),
        (["a.npz", "--picture=a.jpg"], "the picture must end in .png, got 'a.jpg'"),
        (["a.npz", "--picture=no/a.png"], "no folder 'no' for the picture"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["data", "inspect", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
