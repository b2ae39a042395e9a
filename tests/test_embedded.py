"""The data sets that come with the package, and the figures that are made of them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rewardshift import load_dataset
from rewardshift.data.minari_sets import EMBEDDED
from rewardshift.errors import InputError
from rewardshift.lab import Unit, train_unit
from rewardshift.paper.offline import OFFLINE, TASKS

# What a mean return must be for the data to be called so.
RETURNS = {
    "hopper-imitate": (2500, 4000),
    "hopper-expert": (2500, 4000),
    "hopper-medium": (800, 1800),
    "walker2d-medium": (800, 1800),
}


def test_nothing_else_is_there() -> None:
    assert {path.name for path in EMBEDDED.iterdir()} == set(RETURNS)


@pytest.mark.parametrize("name", RETURNS)
def test_a_set_is_what_its_card_says(name: str) -> None:
    data = load_dataset(f"embedded/{name}")
    low, high = RETURNS[name]
    assert len(data) == 10_000
    assert low <= data.returns.mean() <= high
    card = (EMBEDDED / name / "README.md").read_text()
    assert f"| digest | {data.digest} |" in card
    assert f"mean {data.returns.mean():.6g}" in card
    assert '"trained_steps"' in card
    assert np.abs(data.action).max() <= 1


@pytest.mark.parametrize("task", TASKS)
def test_a_figure_means_the_data_that_are_there(task: str) -> None:
    assert TASKS[task].load(0, seed=0).env in ("Hopper-v5", "Walker2d-v5")


def test_other_data_are_refused() -> None:
    with pytest.raises(InputError, match="is not the one of this figure: its digest is a5fc"):
        replace(TASKS["BCQ-hopper-medium"], digest="0").load(0, seed=0)


def test_a_unit_of_the_figure(tmp_path: Path) -> None:
    budget = OFFLINE.presets["smoke"].budget
    unit = Unit(("BCQ-hopper-medium",), ("positive-absorbing",), (3,), budget, "zero")
    curves = train_unit(OFFLINE, unit, tmp_path / "running")
    assert [curve.panel for curve in curves] == [
        "BCQ-hopper-medium",
        "BCQ-hopper-medium-overestimation",
        "BCQ-hopper-medium-unseen",
    ]
    assert all(curve.steps == [2, 4] and np.isfinite(curve.values).all() for curve in curves)
