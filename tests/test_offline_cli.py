"""Offline training as a user meets it: through the command line."""

import csv
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from data_makers import random_data, save_npz

from rewardshift import CQL, OfflineBudget, Subset, load_dataset, train_offline
from rewardshift.agents.networks import MLP
from rewardshift.cli import main

SMALL = (
    *("--network=mlp(hidden=(8, 8))", "--batch-size=8", "--updates=6", "--evaluate-every=3"),
    *("--evaluation-episodes=1", "--checkpoint-every=3"),
)
ENV = ("--env", "Pendulum-v1")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = random_data(lambda: gym.make("Pendulum-v1"), 60)
    return save_npz(tmp_path_factory.mktemp("data") / "pendulum.npz", data)


@pytest.mark.parametrize(
    ("agent", "options"),
    [
        ("bcq", ("--proposer=mlp(hidden=(8,))", "--candidates", "2")),
        ("cql", ("--candidates", "2", "--cloning-updates", "2", "--threshold", "5")),
    ],
)
def test_a_run_from_a_file_to_a_film(
    agent: str, options: tuple[str, ...], file: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    run = str(tmp_path / "run")
    command = ("train", agent, "--data", str(file), "--env", "Pendulum-v1", "--shift", "8")
    assert main([*command, *SMALL, *options, "--out", run]) == 0
    assert "last evaluation: mean return" in capsys.readouterr().out
    with (tmp_path / "run" / "metrics.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert [row["step"] for row in rows] == ["3", "6"]
    for row in rows:
        difference = float(row["estimate"]) - float(row["shifted_return"])
        assert float(row["overestimation"]) == pytest.approx(difference, rel=1e-4)
    before = (tmp_path / "run" / "metrics.csv").read_bytes()
    assert main(["resume", run]) == 0
    assert (tmp_path / "run" / "metrics.csv").read_bytes() == before
    assert main(["play", run]) == 0
    assert (tmp_path / "run" / "episode.gif").stat().st_size > 1000


def test_a_part_made_beforehand_can_be_gone_on_with(file: Path, tmp_path: Path) -> None:
    part = load_dataset(file, Subset(40)).subset(Subset(30, "transitions", 1))
    agent = CQL(network=MLP((8,)), batch_size=8, candidates=2, cloning_updates=0)
    budget = OfflineBudget(updates=2, evaluate_every=2, evaluation_episodes=1)
    train_offline(agent, part, "Pendulum-v1", budget=budget, folder=tmp_path / "run")
    assert main(["resume", str(tmp_path / "run")]) == 0


def test_a_run_goes_on_from_another_folder_and_not_with_other_data(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, run = tmp_path / "own.npz", str(tmp_path / "run")
    data.write_bytes(file.read_bytes())
    monkeypatch.chdir(data.parent)
    assert main(["train", "bcq", "--data", data.name, *ENV, *SMALL, "--out", run]) == 0
    monkeypatch.chdir(file.parent)
    assert main(["resume", run]) == 0
    assert main(["train", "bcq", "--data", str(data), *ENV, *SMALL, "--out", run]) == 0
    with np.load(file) as arrays:
        np.savez(data, **{**arrays, "rewards": arrays["rewards"] + 1})
    assert main(["resume", run]) == 2
    assert "has changed since the run began" in capsys.readouterr().err


def test_a_training_that_would_only_clone_is_refused(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "cql", "--data", str(file), *ENV, "--updates", "40000"]) == 2
    expected = "only imitate the data: cloning_updates is 40000, the whole training 40000"
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--data {file}", "does not say its environment"),
        ("--data missing.hdf5 --env Pendulum-v1", "no file 'missing.hdf5'"),
        ("--data {file} --env Pendulum-v1 --data-seed 1", "need --transitions"),
        ("--data {file} --env Pendulum-v1 --seeds 0", "1 or more, up to 65536, got 0"),
    ],
)
def test_bad_input_is_one_line(
    options: str, message: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled = [option.format(file=file) for option in options.split()]
    assert main(["train", "bcq", *filled, "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()
