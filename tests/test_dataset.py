"""Parts of data sets, and what the commands say of them."""

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from data_makers import ROWS, datasets, same, small, write, write_npz
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardshift.cli import main
from rewardshift.data import Dataset, Subset, load_dataset
from rewardshift.data.dataset import FIELDS, Pick
from rewardshift.errors import InputError


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
        ({"transitions": 0}, "transitions must be a whole number of 1 or more"),
        ({"transitions": 1, "pick": "rows"}, "pick must be 'episodes' or 'transitions'"),
        ({"transitions": 1, "seed": -1}, "seed must be a whole number of 0 or more"),
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
        ({"reward": columns["reward"].astype(object)}, "must be an array of floating point.*, got"),
        ({"terminated": columns["terminated"] * 1}, "'terminated' must be an array of booleans"),
        ({"action": columns["action"].astype(str)}, "'action' must be an array of numbers"),
        ({"observation": np.ones((5, 2), np.float32)}, "must be flat, alike and not empty"),
        ({"observation": np.ones(5, np.float32)}, "must be flat, alike and not empty"),
    ):
        with pytest.raises(InputError, match=message):
            Dataset("bad", **{**columns, **changes})


# Looking at them.


def test_the_numbers_of_a_data_set() -> None:
    summary = small(ended=False).summary()
    assert summary["episodes"] == "2: 1 terminated, 0 truncated, 1 unfinished"


def test_inspecting_a_data_set(capsys: pytest.CaptureFixture[str]) -> None:
    write(small(), "pendulum/noise-v0")
    assert main(["data", "inspect", "pendulum/noise-v0"]) == 0
    text = capsys.readouterr().out
    for line in (
        "environment        Pendulum-v1",
        "transitions        5",
        "episodes           2: 1 terminated, 1 truncated",
        "return             mean 1.5, from 1 to 2",
        "episode length     mean 2.5, from 2 to 3",
        "reward             mean 0.6, from -4 to 5",
        "rewardshift suggest --data pendulum/noise-v0",
    ):
        assert line in text


def test_inspecting_a_data_set_of_no_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "inspect", str(write_npz(tmp_path / "a.npz", ROWS))]) == 0
    assert "environment        not known" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.hdf5"], "there is no file 'nothing.hdf5'"),
        (["nothing"], "'nothing' is no id of a Minari data set"),
        (["no/such-v0"], "'no/such-v0' cannot be loaded"),
        (["embedded/nothing"], "no data set 'embedded/nothing' comes with rewardshift"),
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
