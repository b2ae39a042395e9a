"""Data sets in files: what they hold, and what is refused."""

import io
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_makers import ROWS, Arrays, types, write_hdf5, write_npz
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardshift.data import load_dataset
from rewardshift.errors import InputError

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
    "no features": ({**ROWS, "observations": np.ones((7, 0))}, "alike and not empty"),
    "float list": ({**ROWS, "actions": np.ones(7)}, "needs one list of numbers for each row"),
    "int table": ({**ROWS, "actions": np.ones((7, 2), int)}, "needs one number for each row"),
    "complex": ({**ROWS, "rewards": np.ones(7, complex)}, "holds complex128 values, not numbers"),
    "strings": ({**ROWS, "rewards": np.array([b"x"] * 7)}, "'rewards' holds |S1 values"),
    "scalar": ({**ROWS, "rewards": np.array(1.0)}, "'rewards' has the shape ()"),
    "empty": ({key: values[:0] for key, values in ROWS.items()}, "has no transitions"),
    "nothing": ({}, "has no 'observations'; it has nothing"),
    "other next": (
        {**ROWS, "next_observations": np.ones((7, 3))},
        "a row of 'observations' has 2 numbers, one of 'next_observations' 3",
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


def test_what_is_no_array_of_numbers_is_refused(tmp_path: Path) -> None:
    """Objects, which would need a pickle, and a folder in the place of an array."""
    objects = {**ROWS, "rewards": np.array([Path()] * 7, object)}
    without = {key: ROWS[key] for key in ROWS if key != "rewards"}
    for path, match in (
        (write_npz(tmp_path / "a.npz", objects), "cannot be read: Object arrays"),
        (write_hdf5(tmp_path / "a.hdf5", {**without, "rewards/x": np.ones(7)}), "cannot be read: "),
    ):
        with pytest.raises(InputError, match=match):
            load_dataset(path)


@pytest.mark.parametrize(("name", "write"), KINDS[1:])
def test_a_damaged_file_is_refused(name: str, write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path / name, ROWS)
    whole = path.read_bytes()
    damaged = dict.fromkeys([b"", b"not at all", whole[: len(whole) // 2], whole[:-8]], "")
    if name == "a.npz":  # HDF5 has no checksum
        with zipfile.ZipFile(path) as file:
            at = file.getinfo("rewards.npy").header_offset + 230
        damaged[whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]] = ".*rewards"
        one = io.BytesIO()
        np.save(one, ROWS["rewards"])
        damaged[one.getvalue()] = "it is no npz file"
    for content, reason in damaged.items():
        path.write_bytes(content)
        with pytest.raises(InputError, match=rf"{name}' cannot be read: {reason}"):
            load_dataset(path)


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    for name in ("a.hdf5", "b.h5", "c.npz"):
        with pytest.raises(InputError, match=f"there is no file '.*{name}'"):
            load_dataset(tmp_path / name)
    (tmp_path / "a.csv").write_text("1,2")
    with pytest.raises(InputError, match=r"nor a file that ends in \.hdf5, \.h5"):
        load_dataset(tmp_path / "a.csv")
    with pytest.raises(InputError, match=r"is no id of a Minari data set.*like hopper/medium-v0"):
        load_dataset("nothing")
