"""Runs of SAC: what is refused, the command line, data sets, interruptions."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from data_makers import random_data
from fuzzing import as_installed
from probes import Aim
from test_sac import SMALL
from test_td3_runs import FLAGS, stopped_and_resumed

from rewardshift import SAC, OfflineBudget, OnlineBudget, train, train_offline
from rewardshift.agents.networks import MLP
from rewardshift.agents.selection import (
    Optimistic,
)
from rewardshift.cli import main
from rewardshift.errors import InputError

BUDGET = OnlineBudget(steps=100, evaluate_every=50, evaluation_episodes=1)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"shift": ()}, "at least one number"),
        ({"shift": (float("nan"),)}, "bias must be finite"),
        ({"tau": 0.0}, "tau must be in"),
        ({"learning_rate": -1.0}, "learning_rate must be finite and above 0"),
        ({"initial": "one"}, "initial must be 'random' or 'zero', got 'one'"),
        ({"warm_up": -1}, "warm_up must be a whole number of 0 or more"),
        ({"n_step": 0}, "n_step must be a whole number of 1 or more"),
        ({"temperature": -0.1}, "temperature must be finite and 0 or more or None, got -0.1"),
        (
            {"temperature": float("inf")},
            "temperature must be finite and 0 or more",
        ),
        (
            {"temperature": None, "target_entropy": float("nan")},
            "target_entropy must be finite or None, got nan",
        ),
        ({"target_entropy": -1.0}, r"got temperature=0\.5 and target_entropy=-1\.0"),
        ({"reward_range": (-1.0, 0.0)}, r"needs temperature=0.*got temperature=0\.5"),
    ],
)
def test_bad_settings_are_refused(changes: dict[str, Any], match: str) -> None:
    with as_installed(), pytest.raises(ValueError, match=match):
        replace(SMALL, **changes)


def test_tasks_that_it_cannot_learn_are_refused() -> None:
    with pytest.raises(InputError, match="SAC needs continuous actions"):
        train(SMALL, "MountainCar-v0", budget=BUDGET)
    with pytest.raises(InputError, match="the warm-up is 100 steps, the whole training 100"):
        train(replace(SMALL, warm_up=100), Aim, budget=BUDGET)


def test_nothing_is_learned_in_the_warm_up() -> None:
    first, last = train(SMALL, partial(Aim, 3), budget=BUDGET).rows
    assert "loss" not in first.metrics
    assert "loss" in last.metrics


def test_from_the_command_line(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    small = [*FLAGS, f"--out={folder}"]
    command = ["train", "sac", "--env=Pendulum-v1", "--target-entropy=-0.5"]
    assert main([*command, "--shift", "-0.5", "0", "0.5", *small]) == 0
    assert "over 2 seeds" in capsys.readouterr().out
    assert main(["resume", str(folder)]) == 0
    assert main(["play", str(folder), "--run-seed=1"]) == 0
    with np.load(folder / "parameters.npz") as parameters:
        assert "['lead'].leader" in parameters
        assert not any("optimiser" in name for name in parameters)
    assert main([*command, "--temperature=0.2", *small]) == 2
    assert "target_entropy needs a tuned temperature" in capsys.readouterr().err


def test_on_a_data_set() -> None:
    data = random_data(lambda: gym.make("Pendulum-v1"), 40)
    budget = OfflineBudget(updates=8, evaluate_every=4, evaluation_episodes=1)
    small = SAC(network=MLP((8,)), batch_size=8)
    result = train_offline(small, data, "Pendulum-v1", budget=budget)
    assert [row.step for row in result.rows] == [4, 8]
    with pytest.raises(InputError, match="one shift, or a selection that mixes"):
        train_offline(replace(small, shift=(0.0, 1.0)), data, "Pendulum-v1", budget=budget)
    mixed = replace(small, shift=(0.0, 1.0), selection=Optimistic())
    assert train_offline(mixed, data, "Pendulum-v1", budget=budget).finished


@pytest.mark.parametrize("temperature", [None, 0.2])
def test_a_stopped_run_ends_the_same(tmp_path: Path, temperature: float | None) -> None:
    stopped_and_resumed(replace(SMALL, temperature=temperature), tmp_path)
