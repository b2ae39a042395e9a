"""`auto` on a data set: the shift that the data choose, for agents, sweeps and commands."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import hypothesis.strategies as st
import numpy as np
import pytest
from data_makers import random_data, save_npz
from fuzzing import as_installed
from hypothesis import given

from rewardshift import (
    BCQ,
    CQL,
    DQN,
    MLP,
    SAC,
    TD3,
    Auto,
    Cautious,
    Centred,
    Dataset,
    InputError,
    LargestReturn,
    OfflineBudget,
    Shift,
    SweepTask,
    load,
    sweep,
    train_offline,
)
from rewardshift.cli import main
from rewardshift.data.card import discounted_returns
from rewardshift.experiments.auto_offline import AUTO_OFFLINE as FIGURE
from rewardshift.experiments.auto_offline import FIRST_SEED, TASKS

TINY: dict[str, Any] = {"network": MLP((4,)), "batch_size": 4}
BUDGET = OfflineBudget(updates=8, evaluate_every=4, evaluation_episodes=1, checkpoint_every=4)
UNKNOWN: Any = "best"
MOVING: Any = Centred()
NUMBERS = st.floats(-1e6, 1e6)


@pytest.fixture(scope="module")
def swings() -> Dataset:
    return random_data(lambda: gym.make("Pendulum-v1"), 300)


@pytest.fixture(scope="module")
def poles() -> Dataset:
    return random_data(lambda: gym.make("CartPole-v1"), 60)


@given(st.lists(NUMBERS, min_size=1, max_size=9), st.floats(0.0, 0.999))
def test_no_value_starts_above_the_lowest_return(returns: list[float], gamma: float) -> None:
    shift = Cautious().shift(np.array(returns), gamma)
    lowest = min(returns)
    assert shift.bias >= 0
    assert shift.terminal == "absorbing"
    start = -shift.bias / (1 - gamma)
    assert start == pytest.approx(min(lowest, 0.0), rel=1e-9)  # and it is the smallest such shift


@pytest.mark.parametrize("agent", [BCQ, partial(CQL, cloning_updates=2), TD3, SAC])
def test_agents_take_the_shift_of_the_data(agent: Any, swings: Dataset) -> None:
    result = train_offline(agent(shift="auto", **TINY), swings, "Pendulum-v1", budget=BUDGET)
    lowest = discounted_returns(swings, 0.99).min()
    assert lowest < -100
    (shift,) = result.policy().shifts
    assert shift == Shift((0.99 - 1) * lowest, gamma=0.99, terminal="absorbing")
    number = replace(shift, gamma=None)
    same = train_offline(agent(shift=number, **TINY), swings, "Pendulum-v1", budget=BUDGET)
    assert result.config == same.config
    assert result.rows == same.rows


def test_the_discount_is_the_agents(swings: Dataset) -> None:
    agent = TD3(shift="auto", gamma=0.5, **TINY)
    result = train_offline(agent, swings, "Pendulum-v1", budget=BUDGET)
    (shift,) = result.policy().shifts
    assert shift.bias == pytest.approx(-0.5 * discounted_returns(swings, 0.5).min())


def test_data_without_a_negative_return_choose_no_shift(poles: Dataset) -> None:
    given = DQN(shift="auto", **TINY)
    result = train_offline(given, poles, "CartPole-v1", budget=BUDGET)
    none = train_offline(DQN(**TINY), poles, "CartPole-v1", budget=BUDGET)
    assert result.policy().shifts[0].bias == 0.0
    assert str(result.policy().shifts[0].bias) == "0.0"
    assert result.rows == none.rows


def test_a_run_with_auto_continues(swings: Dataset, tmp_path: Path) -> None:
    file = tmp_path / "swings.npz"
    save_npz(file, swings)

    def go(folder: str, updates: int) -> bytes:
        place = tmp_path / folder
        budget = replace(BUDGET, updates=updates)
        agent = BCQ(shift="auto", **TINY)
        train_offline(agent, file, "Pendulum-v1", budget=budget, folder=place)
        assert load(place).shifts[0].bias > 1
        return (place / "metrics.csv").read_bytes()

    whole = go("whole", 8)
    assert go("whole", 8) == whole  # the data choose the same again
    assert main(["resume", str(tmp_path / "whole"), "--steps=12"]) == 0
    assert go("longer", 12) == (tmp_path / "whole" / "metrics.csv").read_bytes()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BCQ(shift=Cautious("goal")), "takes terminal='zero' or 'absorbing'"),
        (lambda: CQL(shift=UNKNOWN), "or 'auto', got 'best'"),
        (lambda: CQL(shift=MOVING), "or 'auto', got Centred"),
        (lambda: BCQ(shift="auto").value_shift, "decided by a data set"),
    ],
)
def test_what_does_not_go_with_it_is_refused(make: Any, words: str) -> None:
    with as_installed(), pytest.raises(InputError, match=words):
        make()


@pytest.mark.parametrize("rule", [LargestReturn(), Centred(), Auto(1.0), Auto((0.0, 1.0))])
def test_a_rule_that_follows_steps_is_refused(rule: Any, poles: Dataset) -> None:
    words = "on a data set shift must be a number, a Shift or 'auto', got"
    with pytest.raises(InputError, match=words):
        train_offline(DQN(shift=rule, **TINY), poles, "CartPole-v1", budget=BUDGET)


def test_the_command_line_tells_what_the_data_choose(
    swings: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "swings.npz"
    save_npz(file, swings)
    flags = ["--updates=4", "--evaluate-every=4", "--evaluation-episodes=1", "--batch-size=4"]
    common = [f"--data={file}", "--env=Pendulum-v1", "--shift=auto", *flags]
    bias = -0.01 * discounted_returns(swings, 0.99).min()
    for treatment in ("absorbing", "zero"):
        out = tmp_path / treatment
        more = [] if treatment == "absorbing" else ["--terminal=zero"]
        assert main(["train", "bcq", *common, *more, f"--out={out}"]) == 0
        said = capsys.readouterr().out
        assert f"The data choose a shift of {bias:.6g} (terminal {treatment}): values" in said
        kept = json.loads((out / "config.json").read_text())["agent"]["shift"]
        assert kept["bias"] == pytest.approx(bias)
        assert kept["terminal"] == treatment
    assert main(["train", "bcq", *common, "--scale=2", f"--out={tmp_path / 'no'}"]) == 2
    assert "'auto' chooses the scale by itself" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("agent", [BCQ(**TINY), TD3(warm_up=0, **TINY)])
def test_a_sweep_has_auto_on_a_data_set(agent: Any, swings: Dataset, tmp_path: Path) -> None:
    file = tmp_path / "swings.npz"
    save_npz(file, swings)
    task = SweepTask("Pendulum-v1", data=str(file))
    found = sweep(agent, task, [1.0, "auto"], folder=tmp_path / "out", seeds=1, budget=BUDGET)
    labels = [point.label for point in found.points]
    assert labels == ["b = 1", "none", "auto (terminal absorbing)"]


def test_the_figure_has_other_seeds_than_the_one_that_led_to_the_rule() -> None:
    assert len(TASKS) == 9
    quick = FIGURE.presets["quick"]
    assert quick.seeds <= FIRST_SEED  # those of `offline-mechanism` are 0 to 19, too
    for name, task in TASKS.items():
        data = task.behaviour.record(200, FIRST_SEED)
        result = train_offline(
            replace(task.configure("auto"), **TINY), data, budget=replace(BUDGET, updates=4)
        )
        (shift,) = result.policy().shifts
        assert (shift.bias == 0) == name.startswith("CartPole")
        claims = [c.worse for c in FIGURE.claims if c.panel == name]
        assert claims == (["paper"] if name.startswith("CartPole") else ["none", "paper"])
