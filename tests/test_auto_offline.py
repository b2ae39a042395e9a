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
from outside import Centred

from rewardshift import (
    BCQ,
    CQL,
    DQN,
    MLP,
    SAC,
    TD3,
    Auto,
    Cautious,
    Dataset,
    InputError,
    OfflineBudget,
    load,
    sweep,
    train_offline,
)
from rewardshift.cli import main
from rewardshift.lab import Unit
from rewardshift.lab.results import read_results
from rewardshift.paper.auto import AUTO_OFFLINE as FIGURE
from rewardshift.paper.auto import DATA_TASKS as TASKS
from rewardshift.paper.auto import run_later_seeds
from rewardshift.paper.mechanism import OFFLINE_MECHANISM
from rewardshift.training.run_folder import read_config

TINY: dict[str, Any] = {"network": MLP((4,)), "batch_size": 4}
BUDGET = OfflineBudget(updates=8, evaluate_every=4, evaluation_episodes=1, checkpoint_every=4)
UNKNOWN: Any = "best"
MOVING: Any = Centred()
NUMBERS = st.floats(-1e6, 1e6)
METHODS = ("none", "paper", "auto")
RESULTS = Path(__file__).parents[1] / "results"


@pytest.fixture(scope="module")
def swings() -> Dataset:
    return random_data(lambda: gym.make("Pendulum-v1"), 300)


@pytest.fixture(scope="module")
def poles() -> Dataset:
    return random_data(lambda: gym.make("CartPole-v1"), 60)


@given(st.lists(NUMBERS, min_size=1, max_size=5), NUMBERS, st.booleans(), st.floats(0.0, 0.99))
def test_no_episode_of_such_rewards_is_worth_less_than_the_start(
    steps: list[float], last: float, ends: bool, gamma: float
) -> None:
    rewards, terminated = np.array([*steps, last]), np.array([False] * len(steps) + [ends])
    shift = Cautious().shift(rewards, terminated, gamma)
    assert shift.bias >= 0
    start = -shift.bias / (1 - gamma)
    for length in range(len(steps) + 1):  # some steps, and then the last one, once or forever
        after = last if ends else last / (1 - gamma)
        worth = sum(gamma**n * steps[n] for n in range(length)) + gamma**length * after
        assert worth >= start - 1e-9 * (1 + abs(start))
    forever = [reward / (1 - gamma) for reward in (steps if ends else rewards)]
    lowest = min([*forever, last]) if ends else min(forever)
    assert start == pytest.approx(min(lowest, 0.0), rel=1e-9)  # the smallest such shift


@pytest.mark.parametrize("rewards", [[], [1.0, float("nan")], [float("-inf")]])
def test_rewards_that_give_no_shift_are_refused(rewards: list[float]) -> None:
    with pytest.raises(InputError, match="finite numbers"):
        Cautious().shift(np.array(rewards), np.zeros(len(rewards), bool), 0.9)


def test_flags_of_another_shape_and_a_bad_discount_are_refused() -> None:
    with pytest.raises(InputError, match="one flag for each of the 2 rewards"):
        Cautious().shift(np.ones(2), np.zeros((2, 1), bool), 0.9)
    with pytest.raises(InputError, match="finite numbers"):
        Cautious().shift(np.ones((2, 1)), np.zeros((2, 1), bool), 0.9)
    with pytest.raises(InputError, match="gamma must be"):
        Cautious().shift(np.ones(2), np.zeros(2, bool), 1.0)


@pytest.mark.parametrize("terminal", ["zero", "absorbing"])
def test_a_treatment_of_ends_is_kept(terminal: Any, swings: Dataset) -> None:
    agent = TD3(shift=Auto(terminal=terminal), **TINY)
    result = train_offline(agent, swings, "Pendulum-v1", budget=BUDGET)
    assert result.policy().shifts[0].terminal == terminal


@pytest.mark.parametrize("agent", [BCQ, partial(CQL, cloning_updates=2), TD3, SAC])
def test_agents_take_the_shift_of_the_data(agent: Any, swings: Dataset) -> None:
    result = train_offline(agent(shift="auto", **TINY), swings, "Pendulum-v1", budget=BUDGET)
    (shift,) = result.policy().shifts
    assert shift.bias == pytest.approx(-swings.reward.min(), rel=1e-6)  # no episode terminates
    assert shift.bias > 5
    assert shift.terminal == "absorbing"
    number = replace(shift, gamma=None)
    same = train_offline(agent(shift=number, **TINY), swings, "Pendulum-v1", budget=BUDGET)
    assert result.config == same.config
    assert result.rows == same.rows


def test_the_discount_is_the_agents(swings: Dataset) -> None:
    ended = replace(swings, terminated=swings.reward > -100)  # every step is an episode
    agent = TD3(shift="auto", gamma=0.5, **TINY)
    result = train_offline(agent, ended, "Pendulum-v1", budget=BUDGET)
    (shift,) = result.policy().shifts
    assert shift.bias == pytest.approx(-0.5 * swings.reward.min(), rel=1e-6)


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
    ],
)
def test_what_does_not_go_with_it_is_refused(make: Any, words: str) -> None:
    with as_installed(), pytest.raises(InputError, match=words):
        make()


@pytest.mark.parametrize("rule", [Centred(), Auto(1.0)])
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
    bias = -float(swings.reward.min())
    for treatment in ("absorbing", "zero"):
        out = tmp_path / treatment
        more = [] if treatment == "absorbing" else ["--terminal=zero"]
        assert main(["train", "bcq", *common, *more, f"--out={out}"]) == 0
        said = capsys.readouterr().out
        assert f"The data choose a shift of {bias:.6g} (terminal {treatment}): the lowest" in said
        assert f"add up to is {-100 * bias:.6g}." in said
        kept = json.loads((out / "config.json").read_text())["agent"]["shift"]
        assert kept["bias"] == pytest.approx(bias)
        assert kept["terminal"] == treatment
    assert main(["train", "bcq", *common, "--scale=2", f"--out={tmp_path / 'no'}"]) == 2
    assert "'auto', which has a scale of its own" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("agent", [BCQ(**TINY), TD3(warm_up=0, **TINY)])
def test_a_sweep_has_auto_on_a_data_set(agent: Any, swings: Dataset, tmp_path: Path) -> None:
    file = tmp_path / "swings.npz"
    save_npz(file, swings)
    out = tmp_path / "out"
    where: dict[str, Any] = {"data": str(file), "folder": out}
    found = sweep(agent, "Pendulum-v1", [1.0, "auto"], seeds=1, budget=BUDGET, **where)
    labels = [point.label for point in found.points]
    assert labels == ["b = 1", "none", "auto"]
    shifted = replace(agent, shift=Cautious().shift(swings.reward, swings.terminated, 0.99))
    alone = train_offline(shifted, file, "Pendulum-v1", budget=BUDGET)
    (curve,) = [c for c in read_results(out / "sweep") if c.method == "auto"]
    expected = [row.evaluation_return for row in alone.rows]
    assert curve.values == pytest.approx(expected, rel=1e-6)


def test_an_agent_that_is_not_decided_has_no_scale_of_values() -> None:
    assert BCQ(shift="auto").members == ()
    with pytest.raises(InputError, match="a rule that follows the steps"):
        TD3(shift="auto").check_offline(4)


def test_the_figure_has_seeds_that_had_no_part_in_the_rule(tmp_path: Path) -> None:
    budget = replace(FIGURE.presets["smoke"].budget["Pendulum-poor"], evaluations=1)
    unit = Unit(("Pendulum-poor",), ("auto",), (0, 1), budget, "zero")
    curves = run_later_seeds(FIGURE, unit, tmp_path)
    assert [curve.seed for curve in curves] == [0, 1]
    for curve in curves:
        config = read_config(tmp_path / str(100 + curve.seed))
        assert config.seeds == (100 + curve.seed,)
        task = TASKS["Pendulum-poor"]
        data = task.load(budget.transitions, 100 + curve.seed)
        assert config.data is not None
        assert config.data.digest == data.digest
        (shift,) = config.agent.members
        assert shift.bias == pytest.approx(-data.reward.min())
    assert max(preset.seeds for preset in OFFLINE_MECHANISM.presets.values()) <= 100


def test_the_figure_has_no_claim_where_the_data_choose_no_shift() -> None:
    for name, task in TASKS.items():
        data = task.load(50, 100)
        shift = Cautious().shift(data.reward, data.terminated, 0.95)
        claims = [claim.worse for claim in FIGURE.claims if claim.panel == name]
        assert claims == (["none", "paper"] if shift.bias else ["paper"])


def test_on_pendulum_the_results_are_those_of_one_torque() -> None:
    """With `auto` the policies often do not depend on the data: the docs say so."""
    curves = read_results(RESULTS / "auto-offline")
    points = {(c.panel, c.method, c.seed): np.array(c.values) for c in curves}

    def equal(method: str) -> float:
        same = [
            np.isclose(
                points["Pendulum-middling", method, seed],
                points["Pendulum-good", method, seed],
                rtol=1e-4,
            )
            for seed in range(20)
        ]
        return float(np.mean(same))

    assert equal("auto") > 0.5
    assert equal("none") < 0.01
    env = gym.make("Pendulum-v1")
    returns = {2.0: 0.0, 0.0: 0.0}
    for torque in returns:
        for seed in range(30):
            env.reset(seed=seed)
            rewards = (env.step(np.array([torque], np.float32))[1] for _ in range(200))
            returns[torque] += sum(map(float, rewards)) / 30
    good = {m: np.mean([points["Pendulum-good", m, s][10:] for s in range(20)]) for m in METHODS}
    assert returns[2.0] == pytest.approx(good["auto"], rel=0.05)
    assert max(good.values()) < returns[0.0] - 100  # worse than doing nothing, all of them
