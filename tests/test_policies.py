"""A trained agent, put to use: loaded, acting, valued, evaluated, trained on."""

import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fuzzing import as_installed
from probes import Rooms, stop_at

from rewardshift import (
    BCQ,
    CQL,
    DQN,
    MLP,
    TD3,
    InputError,
    OfflineBudget,
    OnlineBudget,
    Result,
    Shift,
    ShiftReward,
    load,
    resume,
    train,
    train_offline,
)
from rewardshift.cli import main
from rewardshift.training import policy as policy_module

BUDGET = OnlineBudget(steps=60, evaluate_every=30, evaluation_episodes=1, checkpoint_every=20)
SMALL: dict[str, Any] = {"network": MLP((8,)), "batch_size": 8}
CARS = DQN(shift=(-0.5, 0.5), **SMALL)
PENDULUM = TD3(shift=Shift(-0.5, terminal="absorbing"), warm_up=20, **SMALL)


@pytest.fixture(scope="module")
def car(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("runs") / "car"
    return folder, train(CARS, "CartPole-v1", seeds=(2, 7), budget=BUDGET, folder=folder)


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("runs") / "pendulum"
    return folder, train(PENDULUM, "Pendulum-v1", budget=BUDGET, folder=folder)


def test_a_policy_is_the_same_from_memory_and_from_a_copy_of_two_files(
    car: tuple[Path, Result], tmp_path: Path
) -> None:
    folder, result = car
    for name in ("config.json", "parameters.npz"):
        shutil.copy(folder / name, tmp_path)
    observations = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    for seed in (2, 7):
        kept, known = load(tmp_path, seed), result.policy(seed)
        assert (kept.seed, kept.step, kept.env) == (seed, 60, "CartPole-v1")
        np.testing.assert_array_equal(kept.act(observations), known.act(observations))
        np.testing.assert_array_equal(kept.evaluate(3).returns, known.evaluate(3).returns)
    assert load(folder).seed == 2


def test_actions_are_those_of_the_environment(pendulum: tuple[Path, Result]) -> None:
    """Pendulum's are in [-2, 2]; one, or a batch."""
    policy = load(pendulum[0])
    env = gym.make("Pendulum-v1")
    observation, _ = env.reset(seed=0)
    action = policy.act(observation)
    assert env.action_space.contains(action)
    np.testing.assert_allclose(action, 2 * np.asarray(policy.greedy(observation)), rtol=1e-6)
    batch = np.asarray(policy.act(np.stack([observation, -observation])))
    assert np.shape(batch) == (2, 1)
    np.testing.assert_allclose(batch[0], action, rtol=1e-5)
    for wrong in (np.zeros((1, 2, 3)), np.zeros((2, 2)), np.float32(0)):
        with pytest.raises(InputError, match="a policy acts on an observation of"):
            policy.act(wrong)


def test_an_environment_at_hand_is_used_and_left_open(car: tuple[Path, Result]) -> None:
    policy, env = load(car[0]), gym.make("CartPole-v1")
    found = policy.evaluate(3, env=env)
    assert found.returns.shape == found.lengths.shape == (3,)
    np.testing.assert_array_equal(found.returns, found.lengths)  # CartPole pays 1 for every step
    env.reset()
    env.step(0)
    made = "a function that makes an environment, got <TimeLimit"
    with as_installed(), pytest.raises(InputError, match=made):
        train(CARS, env, budget=BUDGET)  # type: ignore[arg-type]


def test_returns_stay_primal_and_tasks_the_policys(car: tuple[Path, Result]) -> None:
    policy = load(car[0])
    shifted = ShiftReward(gym.make("CartPole-v1"), -10.0)
    for env in (shifted, lambda: shifted):
        with pytest.raises(InputError, match="is shifted already"):
            policy.evaluate(1, env=env)
    for other in ("MountainCar-v0", gym.make("MountainCar-v0")):
        with pytest.raises(InputError, match="was trained on CartPole-v1, with TaskSpec"):
            policy.evaluate(1, env=other)
    many: Any = gym.make_vec("CartPole-v1", num_envs=2)
    with as_installed(), pytest.raises(InputError, match="that makes an environment, got CartPole"):
        policy.evaluate(1, env=many)


def test_many_episodes_do_not_make_as_many_environments(
    car: tuple[Path, Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many run side by side, or in an environment at hand, the episodes are the same."""
    loaded, made = load(car[0]), []

    def make() -> gym.Env[Any, Any]:
        made.append(gym.make("CartPole-v1"))
        return made[-1]

    whole = loaded.evaluate(5)
    monkeypatch.setattr(policy_module, "MOST_AT_ONCE", 2)
    for env in (make, gym.make("CartPole-v1")):
        found = loaded.evaluate(5, env=env)
        np.testing.assert_array_equal(found.returns, whole.returns)
        assert found.success.shape == (5,)
    assert len(made) == 3  # one of them for a look at the task


def test_values_say_their_scale(car: tuple[Path, Result], pendulum: tuple[Path, Result]) -> None:
    policy, result = load(car[0]), car[1]
    state = jax.tree.map(lambda leaf: leaf[0], result.state)
    observations = np.ones((3, 4), np.float32)
    values = policy.value(observations, [0, 1, 1])
    expected = np.asarray(CARS.values(state, jnp.asarray(observations)))
    np.testing.assert_allclose(values.shifted, expected[:, [0, 1, 2], [0, 1, 1]], rtol=1e-5)
    assert [shift.bias for shift in values.shifts] == [-0.5, 0.5]
    np.testing.assert_allclose(values.primal, values.shifted - [[-50.0], [50.0]], rtol=1e-5)
    one = load(pendulum[0]).value(np.zeros(3, np.float32), np.array([2.0]))
    state = jax.tree.map(lambda leaf: leaf[0], pendulum[1].state)
    there = PENDULUM.values(state, jnp.zeros((1, 3)), jnp.ones((1, 1)))
    np.testing.assert_allclose(one.shifted, there[:, 0], rtol=1e-5)
    for shape, given in (((3,), [0, 1]), ((3,), [[0], [1], [1]]), ((3,), 1), ((), [1])):
        with pytest.raises(InputError, match=re.escape(f"an array of the shape {shape}, got")):
            policy.value(observations if shape else observations[0], given)
    for several in ([1.0], [[1.0] * 5] * 2):  # Pendulum's actions have one number each
        with pytest.raises(InputError, match=r"an array of the shape \(2, 1\), got"):
            load(pendulum[0]).value(np.zeros((2, 3)), several)
    with pytest.raises(InputError, match=r"an array of the shape \(1,\), got 2.0"):
        load(pendulum[0]).value(np.zeros(3), 2.0)
    assert policy.value(np.zeros((0, 4)), np.zeros(0, int)).shifted.shape == (2, 0)
    for wrong, words in (([0, 1, 2], "below 2"), ([0, 1, -1], "from 0 on"), ([0.5] * 3, "whole")):
        with pytest.raises(InputError, match=words):
            policy.value(observations, wrong)


@pytest.mark.parametrize(
    "agent",
    [
        CQL(shift=8.0, candidates=2, cloning_updates=0, **SMALL),
        BCQ(shift=8.0, proposer=MLP((8,)), **SMALL),
    ],
)
def test_the_policy_of_an_offline_agent(agent: Any, tmp_path: Path) -> None:
    budget = OfflineBudget(updates=2, evaluate_every=2, evaluation_episodes=1)
    train_offline(agent, "embedded/hopper-medium", seeds=2, budget=budget, folder=tmp_path / "run")
    policy, other = load(tmp_path / "run"), load(tmp_path / "run", 1)
    values = policy.value(np.zeros((2, 11), np.float32), np.zeros((2, 3)))
    assert values.shifted.shape == (1, 2)
    assert values.shifts == (Shift(8.0, gamma=0.99),)
    action = np.asarray(policy.act(np.zeros(11)))
    assert np.abs(action).max() <= 1
    assert (action != other.act(np.zeros(11))).any()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39])
def test_an_observation_that_is_not_finite_is_refused(
    value: float, car: tuple[Path, Result]
) -> None:
    policy = load(car[0])
    with pytest.raises(InputError, match=r"observations must be finite numbers, got \["):
        policy.act([value] * 4)
    with pytest.raises(InputError, match="observations must be finite numbers"):
        policy.act(np.full((2, 4), value))


def test_the_command_line_evaluates(
    car: tuple[Path, Result], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(car[0]), "--episodes=3", "--run-seed=7"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("mean return ")
    assert "3 episodes, step 60" in said
    assert main(["evaluate", str(car[0] / "parameters.npz")]) == 2
    assert "no run in" in capsys.readouterr().err
    assert main(["evaluate", str(car[0]), "--episodes=0"]) == 2
    assert "episodes must be a whole number of 1 or more" in capsys.readouterr().err


def test_a_run_goes_on_past_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """TD3 has no schedule, so the longer run is the one that was long from the start."""
    agent = replace(PENDULUM, shift=0.0)
    whole, grown = tmp_path / "whole", tmp_path / "grown"
    train(agent, "Pendulum-v1", budget=replace(BUDGET, steps=100), folder=whole)
    train(agent, "Pendulum-v1", budget=BUDGET, folder=grown)
    assert main(["resume", str(grown), "--steps=80"]) == 0
    assert not resume(grown, stop_at(90), steps=100).finished
    ended = resume(grown)
    assert ended.finished
    assert (ended.step, ended.config.earlier_steps) == (100, (60, 80))
    assert (grown / "metrics.csv").read_bytes() == (whole / "metrics.csv").read_bytes()
    jax.tree.map(
        np.testing.assert_array_equal, load(grown).state.critics, load(whole).state.critics
    )
    with pytest.raises(InputError, match="or go on with that run: rewardshift resume"):
        train(agent, "Pendulum-v1", budget=BUDGET, folder=grown)
    assert main(["resume", str(grown), "--steps=100"]) == 0  # as after a stop
    assert main(["resume", str(grown), "--steps=90"]) == 2
    assert "has 100 steps already; steps must be more, got 90" in capsys.readouterr().err


def test_states_are_not_taken_for_one_flat_observation() -> None:
    policy = train(DQN(**SMALL), partial(Rooms, gym.spaces.Discrete(4)), budget=BUDGET).policy()
    assert np.shape(policy.act(np.array([0, 1, 2, 3]))) == (4,)
    with pytest.raises(InputError, match=r"a policy acts on an observation of Discrete\(4\)"):
        policy.act(np.array([0, 1, 2, 4]))


def test_a_space_that_cannot_be_flattened_is_refused() -> None:
    space = gym.spaces.Sequence(gym.spaces.Discrete(2))
    with pytest.raises(InputError, match="cannot be flattened into a fixed number of numbers"):
        train(DQN(**SMALL), partial(Rooms, space), budget=BUDGET)
