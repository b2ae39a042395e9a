"""Damaged and hostile files: read, or refused in one line that names them, and never changed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_makers import ROWS, small, write, write_hdf5, write_npz
from fuzzing import as_installed, assert_clear
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift import DQN, OnlineBudget, load_dataset, train
from rewardshift.agents.networks import MLP
from rewardshift.errors import InputError
from rewardshift.lab import FIGURES
from rewardshift.lab.figure import Curve
from rewardshift.lab.results import (
    UnitResult,
    load_units,
    read_results,
    save_unit,
    write_provenance,
    write_results,
)
from rewardshift.report.page import render_page
from rewardshift.report.reading import Report, judge_folder
from rewardshift.training.run_folder import load, read_config

FIGURE = FIGURES["figure1"]
SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
Damage = Callable[[bytes], bytes]

odd_json: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(None, True, -1, 0, 1, 3, 2**31, 10**30, 0.5, float("nan"), float("inf"), -1e308),
        *("", "x", "zero", "[/]", "<script>", "a\nb", "\0", "../x", "x" * 300, "CartPole-v1"),
        *([], [0], [1, 1], [[]], ["x"], {}, {"type": "DQN"}, {"type": "RND", "width": 0}),
    ]
)


@st.composite
def damaged_bytes(draw: st.DrawFn) -> Damage:
    """Bytes flipped, cut out, put in or cut off; or another file altogether."""
    kind = draw(st.sampled_from(["flip", "flip", "flip", "insert", "delete", "cut", "other"]))
    where, count = draw(st.floats(0, 1)), draw(st.integers(1, 8))
    new = draw(st.binary(min_size=1, max_size=8))
    other = draw(st.sampled_from([b"", b"\xff\xfe\x00", b"[" * 100_000, b"null", b"{}", b"[]"]))

    def damage(whole: bytes) -> bytes:
        at = int(where * max(len(whole) - 1, 0))
        return {
            "flip": whole[:at] + new + whole[at + len(new) :],
            "insert": whole[:at] + new + whole[at:],
            "delete": whole[:at] + whole[at + count :],
            "cut": whole[:at],
            "other": other,
        }[kind]

    return damage


@st.composite
def damaged_json(draw: st.DrawFn) -> Damage:
    """A value somewhere within replaced, left out, or given twice."""
    steps = draw(st.lists(st.integers(0, 20), min_size=1, max_size=4))
    kind, value = draw(st.sampled_from(["replace", "replace", "drop", "twice"])), draw(odd_json)
    again = draw(st.integers(0, 20))

    def damage(whole: bytes) -> bytes:
        body = place = json.loads(whole)
        for step in steps:
            keys = list(place) if isinstance(place, dict) else range(len(place))
            if not keys:
                break
            inside, key = place, keys[step % len(keys)]
            place = inside[key]
            if not isinstance(place, dict | list):
                break
        if kind == "drop":
            del inside[key]
        elif kind == "replace":
            inside[key] = value
        text = json.dumps(body)
        if kind == "twice" and isinstance(body, dict):
            name = sorted(body)[again % len(body)]
            text = f"{text[:-1]}, {json.dumps(name)}: {json.dumps(value)}}}"
        return text.encode()

    return damage


@st.composite
def damaged_csv(draw: st.DrawFn) -> Damage:
    """A cell, a column or a line replaced or left out."""
    row, column = draw(st.integers(0, 200)), draw(st.integers(0, 5))
    kind = draw(st.sampled_from(["cell", "cell", "cell", "column", "line", "again"]))
    cells = ["", "x", "-1", "1e400", "nan", "9" * 5000, "1.5", "10", "3e38", '"', "<b>", "ü", "\0"]
    cell = draw(st.sampled_from([*cells, "a,b", "success", "shift", "9" * 25]))

    def damage(whole: bytes) -> bytes:
        lines = [line.split(",") for line in whole.decode().splitlines()]
        at = row % len(lines)
        if kind == "cell":
            lines[at][column] = cell
        elif kind == "column":
            lines = [line[:column] + line[column + 1 :] for line in lines]
        elif kind == "line":
            del lines[at]
        else:
            lines.insert(at, lines[-1])
        return "\n".join(map(",".join, lines)).encode()

    return damage


def damaged(path: Path, damage: Damage, read: Callable[[], Any], named: str = "") -> Any:
    """What is read from a damaged file: something, or None where it is refused by name."""
    whole = path.read_bytes()
    path.write_bytes(content := damage(whole))
    try:
        with as_installed():
            return read()
    except InputError as error:
        assert_clear(str(error), named or str(path))
        return None
    finally:
        assert path.read_bytes() == content
        path.write_bytes(whole)


def loads_or_refuses(path: Path, damage: Damage, source: Path) -> None:
    dataset = damaged(path, damage, lambda: load_dataset(source), str(source))
    assert dataset is None or dataset.summary()["transitions"] == str(len(dataset))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Data sets of every kind."""
    folder = tmp_path_factory.mktemp("data")
    write(small(), "ab/x-v0", folder=folder / "minari")
    return {
        "npz": write_npz(folder / "a.npz", ROWS),
        "hdf5": write_hdf5(folder / "a.hdf5", ROWS),
        "minari": folder / "minari" / "data" / "main_data.hdf5",
        "metadata": folder / "minari" / "data" / "metadata.json",
    }


@settings(max_examples=300, suppress_health_check=SHARED)
@given(damage=damaged_bytes(), kind=st.sampled_from(["npz", "hdf5"]))
def test_a_damaged_data_file(damage: Damage, kind: str, files: dict[str, Path]) -> None:
    loads_or_refuses(files[kind], damage, files[kind])


@settings(max_examples=100, suppress_health_check=SHARED)
@given(
    st.tuples(st.just("minari"), damaged_bytes())
    | st.tuples(st.just("metadata"), damaged_bytes() | damaged_json())
)
def test_a_damaged_minari_set(files: dict[str, Path], case: tuple[str, Damage]) -> None:
    kind, damage = case
    loads_or_refuses(files[kind], damage, files[kind].parents[1])


dtypes = st.sampled_from(["f4", "f8", "i8", "u1", "u8", "?", "c8", "S1", "U1", "M8[s]", "O", "f2"])
shapes = st.lists(st.integers(0, 7), max_size=3).map(tuple)


@settings(max_examples=150, suppress_health_check=SHARED)
@given(
    key=st.sampled_from([*ROWS, "next_observations"]), dtype=dtypes, shape=shapes,
    kind=st.sampled_from(["npz", "hdf5"]),
)  # fmt: skip
def test_arrays_of_any_kind(
    key: str, dtype: str, shape: tuple[int, ...], kind: str, tmp_path: Path
) -> None:
    array = np.ones(shape).astype(dtype)
    path = tmp_path / f"a.{kind}"
    if kind == "hdf5" and dtype in ("U1", "M8[s]", "O"):
        return  # HDF5 has none of these
    path.unlink(missing_ok=True)
    (write_npz if kind == "npz" else write_hdf5)(path, {**ROWS, key: array})
    loads_or_refuses(path, bytes, path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    agent = DQN(network=MLP((4,)), batch_size=2)
    budget = OnlineBudget(
        steps=4, capacity=4, evaluate_every=2, evaluation_episodes=1, checkpoint_every=2
    )
    train(agent, "CartPole-v1", budget=budget, folder=folder)
    return folder


@settings(max_examples=250, suppress_health_check=SHARED)
@given(damage=damaged_bytes() | damaged_json())
def test_a_damaged_config(damage: Damage, finished: Path) -> None:
    folder = finished
    before = read_config(folder)

    def read() -> Any:
        config = read_config(folder)
        assert type(config).from_json(json.loads(json.dumps(config.to_json()))) == config
        if config != before:
            try:
                load(folder, config.seeds[0])
            except InputError as error:  # of its environment, or that the networks are of another
                assert_clear(str(error), "")
        return config

    damaged(folder / "config.json", damage, read, str(folder))


@settings(max_examples=80, suppress_health_check=SHARED)
@given(damage=damaged_bytes())
def test_damaged_parameters(damage: Damage, finished: Path) -> None:
    damaged(finished / "parameters.npz", damage, lambda: load(finished, 0))


@pytest.fixture(scope="module")
def figure_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A figure as `reproduce` leaves it, with units and a picture of no account."""
    folder = tmp_path_factory.mktemp("out") / "figure1"
    folder.mkdir()
    curves = [
        Curve(panel.name, method.name, seed, [0, 10], [0.1, 0.2])
        for panel in FIGURE.panels
        for method in FIGURE.methods
        for seed in range(2)
    ]
    write_results(folder, FIGURE, curves)
    provenance = {"preset": "smoke", "seeds": 2, "terminal": "zero", "note": "", "command": "x"}
    write_provenance(folder, provenance)
    (folder / "figure.svg").write_text("<svg></svg>")
    reading = {"seal": None, "answer": "It holds.", "why": "The results say so."}
    (folder / "reading.json").write_text(json.dumps(reading))
    save_unit(folder, UnitResult("abc", (0, 1), 1.0, {"python": "3"}, curves))
    return folder


@settings(max_examples=300, suppress_health_check=SHARED)
@given(damage=damaged_bytes() | damaged_csv())
def test_damaged_results(damage: Damage, figure_folder: Path) -> None:
    path, whole = figure_folder / "results.csv", read_results(figure_folder)
    found = damaged(path, damage, lambda: read_results(figure_folder), str(path))
    assert found is None or found == whole


@settings(max_examples=200, suppress_health_check=SHARED)
@given(
    damage=damaged_bytes() | damaged_json(),
    name=st.sampled_from(["provenance.json", "reading.json"]),
)
def test_a_damaged_page(damage: Damage, name: str, figure_folder: Path) -> None:
    path = figure_folder / name

    def show() -> str:  # this figure alone: the others have no files to damage
        judged, name = judge_folder(figure_folder), FIGURE.name
        return render_page(Report({name: FIGURE}, {name: judged}, {name: judged.claims}))

    scripts = show().count("<script")  # its own, and its curves
    text = damaged(path, damage, show, str(figure_folder))
    assert text is None or text.count("<script") <= scripts


@settings(max_examples=60, suppress_health_check=SHARED)
@given(damage=damaged_bytes() | damaged_json())
def test_a_damaged_unit(damage: Damage, figure_folder: Path) -> None:
    whole = load_units(figure_folder, "abc")
    path = figure_folder / "units" / "abc-0-1.json"
    found = damaged(path, damage, lambda: load_units(figure_folder, "abc"))
    assert found is None or found == whole


def test_a_strange_key_is_named_without_obeying_it(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "a.npz", {"\x1b[2J": np.ones(1)})
    with pytest.raises(InputError) as caught:
        load_dataset(path)
    assert_clear(str(caught.value), r"it has \x1b[2J")
