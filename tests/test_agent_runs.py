"""Runs of the TD3 family and of SAC: refusals, tasks, the command line, data, interruptions."""

import copy
import gc
import weakref
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest
from data_makers import random_data
from fuzzing import refused
from probes import Aim, stop_at
from test_td3 import BUDGET, SMALL, assert_same

from rewardshift import SAC, OfflineBudget, OnlineBudget, train, train_offline
from rewardshift.agents.networks import MLP
from rewardshift.agents.selection import Optimistic, ProgressSoftmax
from rewardshift.cli import main
from rewardshift.envs import SPARSE_CHEETAH, SPARSE_PENDULUM
from rewardshift.envs.tasks import TaskSpec
from rewardshift.envs.vector import Environments
from rewardshift.errors import InputError
from rewardshift.training.runs import online_run

FLAGS = (
    *("--network=mlp(hidden=(8,))", "--batch-size=8", "--warm-up=20", "--steps=60", "--seeds=2"),
    *("--evaluate-every=30", "--evaluation-episodes=1"),
)


def test_what_cannot_be_made_or_learned_is_refused() -> None:
    def make() -> gym.Env[Any, Any]:
        raise gym.error.DependencyNotInstalled("no Box2D here")

    with pytest.raises(InputError, match=r"cannot be made: .*no Box2D here"):
        train(SMALL, make, budget=BUDGET)


@pytest.mark.parametrize(
    ("bounds", "dtype"), [((-np.inf, np.inf), np.float32), ((0, 5), np.uint8), ((0, 5), np.int64)]
)
def test_actions_that_no_agent_takes_are_refused(bounds: Any, dtype: Any) -> None:
    def make() -> gym.Env[Any, Any]:
        env = Aim()
        low, high = bounds
        env.action_space = gym.spaces.Box(low, high, (1,), dtype)
        return env

    with pytest.raises(InputError, match=r"finite bounds and one axis; .* has Box\("):
        train(SMALL, make, budget=BUDGET)


def test_the_policy_waits_for_the_second_update() -> None:
    """As in TD3, whatever the warm-up."""
    for warm_up in (6, 7):
        agent = replace(SMALL, warm_up=warm_up)
        actors = []
        for updates in (1, 2, 3):
            budget = OnlineBudget(steps=warm_up + updates, evaluation_episodes=1)
            actors.append(train(agent, Aim, budget=budget).state.actors.parameters.output.weight)
        start = jax.jit(lambda key, agent=agent: agent.init(key, TaskSpec(1, "float32", 0, 1)))
        first = start(jax.random.split(jax.random.key(0))[0]).actors.parameters.output.weight
        np.testing.assert_array_equal(actors[0][0], first)
        assert not np.array_equal(actors[1], actors[0])
        np.testing.assert_array_equal(actors[2], actors[1])


def test_a_finished_training_frees_its_replay() -> None:
    trainer = online_run(SMALL, Aim, 1, OnlineBudget(steps=60, evaluation_episodes=1)).make()
    trainer.run_to_checkpoint()
    trainer.close()
    replay = weakref.ref(trainer.replay)
    del trainer
    gc.collect()
    assert replay() is None


def test_actions_are_scaled_to_the_bounds() -> None:
    envs = Environments(partial(Aim, goal=3.0), 3)
    envs.restart([0, 1, 2])
    rewards = envs.step(np.array([[-1.0], [0.0], [1.0]], np.float32)).reward
    np.testing.assert_allclose(rewards, [1 - 4**2, 1 - 2**2, 1.0])


def test_the_sparse_cheetah_pays_for_speed_alone() -> None:
    env = gym.make(SPARSE_CHEETAH)
    env.reset(seed=0)
    env.action_space.seed(0)
    inner: Any = env.unwrapped
    paid = []
    for _ in range(1000):
        before = inner.data.qpos[0]
        _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert reward == float(inner.data.qpos[0] - before > 0.05)
        assert not terminated
        paid.append(reward)
    assert truncated
    assert 0 < sum(paid) < 300


def test_the_sparse_pendulum_pays_for_standing_alone() -> None:
    env, theirs = gym.make(SPARSE_PENDULUM), gym.make("Pendulum-v1")
    np.testing.assert_array_equal(env.reset(seed=0)[0], theirs.reset(seed=0)[0])
    inner: Any = env.unwrapped
    for theta, turning, paid in (
        *((0.2, 0.5, 1.0), (-0.2 + 2 * np.pi, -0.5, 1.0)),
        *((0.5, 0.5, 0.0), (0.1, 2.0, 0.0), (np.pi, 0.0, 0.0)),
    ):
        inner.state = np.array([theta, turning])
        _, reward, terminated, truncated, _ = env.step(np.zeros(1, np.float32))
        assert (reward, terminated, truncated) == (paid, False, False), (theta, turning)
    wide: Any = copy.deepcopy(gym.make(SPARSE_PENDULUM, angle=0.7).unwrapped)
    assert (wide.angle, wide.speed) == (0.7, 1.0)


def test_the_sparse_pendulum_moves_as_gymnasiums_and_never_terminates() -> None:
    env, theirs = gym.make(SPARSE_PENDULUM), gym.make("Pendulum-v1")
    env.reset(seed=3)
    theirs.reset(seed=3)
    env.action_space.seed(3)
    for step in range(1, 201):
        action = env.action_space.sample()
        seen, _, terminated, truncated, _ = env.step(action)
        np.testing.assert_array_equal(seen, theirs.step(action)[0])
        assert (terminated, truncated) == (False, step == 200)


@pytest.mark.parametrize(
    ("agent", "setting", "wrong", "message"),
    [
        (
            "td3",
            "--selection=optimistic(beta=0.2)",
            "--shift=many",
            "shift must be FLOAT [FLOAT ...] | auto",
        ),
        ("sac", "--target-entropy=-0.5", "--temperature=0.2", "target_entropy needs a tuned"),
    ],
)
def test_from_the_command_line(
    agent: str,
    setting: str,
    wrong: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "run"
    command = ["train", agent, "--env=Pendulum-v1", setting]
    assert main([*command, *FLAGS, "--shift", "-0.5", "0", "0.5", f"--out={folder}"]) == 0
    assert "over 2 seeds" in capsys.readouterr().out
    assert main(["resume", str(folder)]) == 0
    assert main(["play", str(folder), "--run-seed=1"]) == 0
    with np.load(folder / "parameters.npz") as parameters:
        assert "['lead'].leader" in parameters  # so that a film shows who led at the end
        assert not any("optimiser" in name for name in parameters)
    assert (folder / "episode.gif").read_bytes().startswith(b"GIF")
    assert message in refused(*command, wrong)
    assert main(["train", agent, "--env=MountainCar-v0"]) == 2
    assert f"{agent.upper()} needs continuous actions" in capsys.readouterr().err


AIM = partial(Aim, 3, goal=0.0)


def stopped_and_resumed(agent: Any, folder: Path, env: Any = AIM) -> Any:
    """A run that was stopped and went on, after a look that it equals an undisturbed one."""
    budget = OnlineBudget(steps=160, evaluate_every=40, evaluation_episodes=1, checkpoint_every=50)
    whole, cut = folder / "whole", folder / "cut"
    undisturbed = train(agent, env, seeds=2, budget=budget, folder=whole)
    stop = stop_at(120)
    assert not train(agent, env, seeds=2, budget=budget, folder=cut, on_progress=stop).finished
    resumed = train(agent, env, seeds=2, budget=budget, folder=cut)
    assert resumed.finished
    assert_same(resumed.state, undisturbed.state)
    for name in ("metrics.csv", "parameters.npz"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes()
    return resumed


def test_a_stopped_run_ends_the_same(tmp_path: Path) -> None:
    """With everything that a state can hold: own actors, progress."""
    agent = replace(SMALL, own_actors=True, selection=ProgressSoftmax(), network=MLP((8,)))
    resumed = stopped_and_resumed(agent, tmp_path)
    assert np.abs(resumed.state.lead.progress).min() > 0


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
