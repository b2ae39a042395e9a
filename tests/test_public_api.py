"""Nonsense in place of any argument of the public functions: an InputError that names it."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from fuzzing import as_installed, assert_clear

import rewardshift
from rewardshift import (
    DQN,
    MLP,
    Dataset,
    InputError,
    OnlineBudget,
    Result,
    Shift,
    ShiftReward,
    VectorShiftReward,
    equivalent_bias,
    lifetime,
    load,
    load_dataset,
    optimistic_value,
    resume,
    suggest_shift,
    train,
    train_offline,
)
from rewardshift.training.collection import collect

AGENT = DQN(network=MLP((4,)), batch_size=4)
BUDGET = OnlineBudget(steps=20, evaluate_every=20, evaluation_episodes=1)
DATA: dict[str, Any] = {
    "name": "data",
    "observation": np.zeros((3, 4), np.float32),
    "action": np.zeros(3, np.int32),
    "reward": np.zeros(3, np.float32),
    "next_observation": np.zeros((3, 4), np.float32),
    "terminated": np.zeros(3, bool),
    "truncated": np.array([False, False, True]),
}
# Of no use anywhere; `OTHER` where a number is wanted too, `MORE` where no array is.
NONSENSE: list[Any] = ["x", b"x", {}, object(), 1 + 2j, np.array("a"), {"a": 1}, lambda: 1, int]
OTHER: list[Any] = [*NONSENSE, [1, "a"], [[1], [1, 2]], 10**400]
MORE: list[Any] = [*OTHER, math.nan, -1, 1.5, [], (), np.zeros((2, 3)), True]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("runs") / "run"
    return folder, train(AGENT, "CartPole-v1", budget=BUDGET, folder=folder)


def assert_refused(call: Callable[..., Any], wrong: list[Any], word: str = "") -> None:
    for value in wrong:
        with as_installed():
            try:
                given = call(value)
            except InputError as error:
                assert_clear(str(error), word)
            else:
                pytest.fail(f"{value!r} was taken for {word!r} and gave {given!r}")


def test_the_arithmetic() -> None:
    shift = Shift(-0.5, gamma=0.9, terminal="absorbing")
    assert_refused(Shift, [*OTHER, None, math.nan, [1.0]], "bias")
    assert_refused(lambda it: Shift(0.0, it), [*OTHER, None, 0, math.inf], "scale")
    assert_refused(lambda it: Shift(0.0, gamma=it), [*OTHER, 1], "gamma")
    assert_refused(lambda it: Shift(0.0, terminal=it), [*MORE, None], "terminal")
    assert_refused(shift.reward, [*OTHER, None], "reward")
    assert_refused(lambda it: shift.reward(1.0, it), [*OTHER, None], "terminated")
    assert_refused(lambda it: shift.multistep_return(it, 2), [*OTHER, None], "total")
    assert_refused(lambda it: shift.multistep_return(1.0, it), [*OTHER, None, 0], "steps")
    assert_refused(shift.to_primal, [*OTHER, None], "value")
    assert_refused(shift.from_primal, [*OTHER, None], "value")
    assert_refused(lambda it: shift.optimism(it, 1.0), [*OTHER, None, [0.0], 1.0])
    for mix in (optimistic_value, equivalent_bias):
        assert_refused(lambda it, mix=mix: mix(it, 1.0, 0.5), [*OTHER, None], "number")
        assert_refused(lambda it, mix=mix: mix(1.0, it, 0.5), [*OTHER, None], "number")
        assert_refused(lambda it, mix=mix: mix(1.0, 1.0, it), [*OTHER, None], "beta")


def test_the_choice_of_a_constant() -> None:
    assert_refused(suggest_shift, [*MORE, None], "env")
    wrong = [*OTHER, np.zeros((2, 3)), None]
    assert_refused(lambda it: suggest_shift("CartPole-v1", it), wrong, "gamma")
    assert_refused(lambda it: suggest_shift("CartPole-v1", steps=it), [*wrong, 0, 1.5], "steps")
    assert_refused(lambda it: suggest_shift("CartPole-v1", seed=it), [*wrong, 1.5], "seed")
    assert_refused(lambda it: suggest_shift("CartPole-v1", seconds=it), [*wrong, 0], "seconds")
    assert_refused(lambda it: lifetime(it, 0.5), [*OTHER, None, 1], "gamma")
    assert_refused(lambda it: lifetime(0.5, it), [*OTHER, None, 0, 1.5], "tau")
    assert_refused(lambda it: lifetime(0.5, 0.5, it), [*OTHER, None, 0, 1.5], "every")


def test_wrappers() -> None:
    envs = gym.make_vec("CartPole-v1", num_envs=2)
    assert_refused(lambda it: ShiftReward(it, -0.5), [*MORE, None, envs], "env")
    assert_refused(lambda it: VectorShiftReward(it, -0.5), [*MORE, None], "env")
    wrong = [*OTHER, None, math.nan]
    assert_refused(lambda it: ShiftReward(gym.make("CartPole-v1"), it), wrong)
    assert_refused(lambda it: VectorShiftReward(envs, it), wrong)


def test_data_sets() -> None:
    for field in DATA:
        wrong = [*MORE[1:], None] if field == "name" else [*MORE, "x", None]
        assert_refused(lambda it, field=field: Dataset(**{**DATA, field: it}), wrong, field)
    assert_refused(load_dataset, [*MORE, None])
    assert_refused(Dataset(**DATA).subset, [*MORE, None], "Subset")


def test_training(tmp_path: Path) -> None:
    def start(**changes: Any) -> Any:
        settings: dict[str, Any] = {"agent": AGENT, "env": "CartPole-v1", "budget": BUDGET}
        return train(**{**settings, **changes})

    assert_refused(lambda it: start(agent=it), [*MORE, None, DQN], "agent")
    assert_refused(lambda it: start(env=it), [*MORE, None])
    assert_refused(lambda it: start(env=lambda: it), [*MORE, None], "gymnasium.Env")
    assert_refused(lambda it: start(budget=it), MORE, "budget")
    assert_refused(lambda it: start(seeds=it), [*OTHER, None, [], 0, -1, 1.5, (1, 1)], "seeds")
    assert_refused(lambda it: start(folder=it), [*MORE[1:], "\0"], "folder")
    functions = [it for it in MORE if not callable(it)]
    assert_refused(lambda it: start(on_progress=it), functions, "on_progress")
    data = Dataset(**DATA)
    assert_refused(lambda it: train_offline(it, data, "CartPole-v1"), [*MORE, None], "agent")
    assert_refused(lambda it: train_offline(AGENT, it, "CartPole-v1"), [*MORE, None])
    assert_refused(lambda it: train_offline(AGENT, data, it), MORE)
    assert_refused(lambda it: train_offline(AGENT, data, "CartPole-v1", budget=it), MORE, "budget")
    assert_refused(lambda it: train_offline(AGENT, data, "CartPole-v1", subset=it), MORE, "Subset")


def test_runs_and_policies(run: tuple[Path, Result], tmp_path: Path) -> None:
    folder, result = run
    policy = result.policy()
    assert_refused(resume, [*MORE, None])
    assert_refused(lambda it: resume(folder, steps=it), MORE, "steps")
    assert_refused(load, [*MORE, None])
    assert_refused(lambda it: load(folder, it), MORE, "seed")
    assert_refused(result.policy, MORE, "seed")
    assert_refused(policy.act, [*MORE, None], "acts on an observation")
    assert_refused(lambda it: policy.value(it, 0), [*MORE, None], "acts on an observation")
    assert_refused(lambda it: policy.value(np.zeros(4), it), [*MORE, None], "action")
    assert_refused(lambda it: policy.value(np.zeros((2, 4)), it), [*MORE, None], "action")
    assert_refused(policy.evaluate, [*MORE, None, 0], "episodes")
    assert_refused(lambda it: policy.evaluate(1, env=it), MORE)
    assert_refused(lambda it: policy.evaluate(1, seed=it), [*MORE, None], "seed")
    assert_refused(lambda it: collect(policy, it), [*MORE, None, 0], "transitions")
    assert_refused(lambda it: collect(policy, 1, it), [*OTHER, None, -1, math.nan], "noise")
    assert_refused(lambda it: collect(policy, 1, 0.0, it), [*OTHER, None, 2], "random_actions")
    assert_refused(lambda it: collect(policy, 1, seed=it), [*MORE, None], "seed")
    assert list(tmp_path.iterdir()) == []


def test_every_public_name_is_in_the_reference() -> None:
    reference = (Path(__file__).parents[1] / "docs" / "reference.md").read_text()
    assert [name for name in rewardshift.__all__ if f"rewardshift.{name}\n" not in reference] == []
