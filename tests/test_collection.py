"""Collecting: the policy of a real run, what it leaves on disk, and what is refused."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from fuzzing import as_installed

from rewardshift.agents.dqn import DQN
from rewardshift.agents.networks import MLP
from rewardshift.agents.td3 import TD3
from rewardshift.cli import main
from rewardshift.data import Dataset, load_dataset, minari_dataset
from rewardshift.data.dataset import FIELDS
from rewardshift.data.writing import check_target
from rewardshift.envs.tasks import env_maker, flatten
from rewardshift.errors import InputError
from rewardshift.training.budgets import OnlineBudget
from rewardshift.training.collection import collect
from rewardshift.training.evaluation import derive_seed
from rewardshift.training.run_folder import load
from rewardshift.training.runs import train

BUDGET = OnlineBudget(steps=40, capacity=40, evaluate_every=40, evaluation_episodes=1)
NARROW = MLP((8,))


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Continuous actions in [-2, 2]; episodes are cut after 200 steps and never terminate."""
    folder = tmp_path_factory.mktemp("runs") / "pendulum"
    agent = TD3(network=MLP((8,)), batch_size=8, warm_up=20)
    assert train(agent, "Pendulum-v1", seeds=(3, 5), budget=BUDGET, folder=folder).finished
    return folder


@pytest.fixture(scope="module")
def cartpole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Discrete actions; episodes terminate."""
    folder = tmp_path_factory.mktemp("runs") / "cartpole"
    agent = DQN(network=MLP((8,)), batch_size=8)
    assert train(agent, "CartPole-v1", budget=BUDGET, folder=folder).finished
    return folder


def contents(dataset: Dataset) -> dict[str, bytes]:
    return {field: getattr(dataset, field).tobytes() for field in FIELDS}


def test_the_greedy_policy_in_its_environment(pendulum: Path) -> None:
    """Stepping Pendulum itself with the actions gives the same observations and rewards."""
    dataset = collect(load(pendulum, 3), 250)
    assert (len(dataset), dataset.env) == (250, "Pendulum-v1")
    assert [rows.stop for rows in dataset.episodes] == [200, 250]
    assert (dataset.action.shape, str(dataset.action.dtype)) == ((250, 1), "float32")
    np.testing.assert_array_equal(np.flatnonzero(dataset.truncated), [199, 249])
    assert not dataset.terminated.any()
    policy = load(pendulum, 3)
    env = gym.make("Pendulum-v1")
    for number, rows in enumerate(dataset.episodes):
        seen, _ = env.reset(seed=derive_seed(0, number))
        for row in range(rows.start, rows.stop):
            np.testing.assert_array_equal(dataset.observation[row], seen)
            own = policy.act(dataset.observation[row])
            np.testing.assert_allclose(dataset.action[row], own, rtol=1e-5, atol=1e-6)
            seen, reward, *_ = env.step(dataset.action[row])
            np.testing.assert_array_equal(dataset.next_observation[row], seen)
            assert dataset.reward[row] == np.float32(reward)
    env.close()


def test_everything_random_is_from_the_seed(pendulum: Path) -> None:
    def run(**changes: Any) -> dict[str, bytes]:
        policy = load(pendulum, changes.pop("run_seed", 3))
        options: dict[str, Any] = {"noise": 0.1, "random_actions": 0.3, "seed": 7}
        return contents(collect(policy, 30, **{**options, **changes}))

    first = run()
    assert run() == first
    for other in ({"seed": 8}, {"run_seed": 5}, {"noise": 0.2}, {"random_actions": 0.9}):
        assert run(**other)["action"] != first["action"]
    assert run(seed=8)["observation"][:12] != first["observation"][:12]


def test_noise_and_random_actions(pendulum: Path) -> None:
    policy = load(pendulum, 3)

    def deviations(**options: Any) -> np.ndarray:
        dataset = collect(policy, 400, **options)
        greedy = np.stack([np.asarray(policy.greedy(row)) for row in dataset.observation])
        assert np.abs(dataset.action).max() <= 2
        return dataset.action / 2 - greedy

    assert 0.08 < deviations(noise=0.1).std() < 0.12
    moved = np.abs(deviations(random_actions=0.25)) > 1e-5
    assert 0.15 < moved.mean() < 0.35
    everywhere = collect(policy, 400, random_actions=1.0).action / 2
    assert 0.5 < everywhere.std() < 0.65  # of the uniform distribution on [-1, 1]: 0.577


def test_discrete_actions(cartpole: Path) -> None:
    dataset = collect(load(cartpole), 100, random_actions=0.5, seed=1)
    assert (dataset.action.shape, str(dataset.action.dtype)) == ((100,), "int32")
    assert set(dataset.action.tolist()) == {0, 1}
    assert dataset.terminated.any()
    assert dataset.terminated[-1] != dataset.truncated[-1]
    env = env_maker("CartPole-v1")()
    spec = load(cartpole, 0).spec
    for number, rows in enumerate(dataset.episodes):
        first, _ = env.reset(seed=derive_seed(1, number))
        np.testing.assert_array_equal(dataset.observation[rows.start], flatten(first, spec))
    env.close()


def test_a_data_set_may_end_with_an_episode(cartpole: Path) -> None:
    ends = np.flatnonzero(collect(load(cartpole), 100, random_actions=1.0).terminated)
    dataset = collect(load(cartpole), int(ends[0]) + 1, random_actions=1.0)
    assert dataset.terminated[-1]
    assert not dataset.truncated.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": float("nan")}, "noise must be finite and 0 or more, got nan"),
        ({"random_actions": 1.1}, "random_actions must be in [0, 1], got 1.1"),
        ({"seed": -1}, "seed must be a whole number of 0 or more"),
    ],
)
def test_what_cannot_be_collected(options: dict[str, Any], message: str, cartpole: Path) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        collect(load(cartpole), **{"transitions": 10, **options})


def test_what_is_no_policy_cannot_act() -> None:
    nothing: Any = "my run"
    with as_installed(), pytest.raises(InputError, match="policy must be a Policy, such as load"):
        collect(nothing, 10)


def test_a_run_that_cannot_act(cartpole: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the run has the seeds \[0\], not 4"):
        load(cartpole, 4)
    with pytest.raises(InputError, match="no run in"):
        load(tmp_path)
    config = (cartpole / "config.json").read_text()
    (tmp_path / "config.json").write_text(config)
    lost = r"has no parameters\.npz, which is written by rewardshift resume"
    with pytest.raises(InputError, match=lost):
        load(tmp_path)
    (tmp_path / "parameters.npz").write_bytes(b"")
    with pytest.raises(InputError, match=r"parameters\.npz' cannot be used"):
        load(tmp_path)
    elsewhere = replace(load(cartpole), env="NoSuchCar-v0")
    assert elsewhere.act(np.zeros(4, np.float32)) in (0, 1)
    with pytest.raises(InputError, match="no environment 'NoSuchCar-v0'"):
        collect(elsewhere, 10)


def test_a_name_that_is_taken_for_one_of_ours() -> None:
    with pytest.raises(InputError, match=r"'embedded/.*' is reserved"):
        check_target("embedded/mine-v0")


def test_from_a_run_to_a_data_set(
    pendulum: Path, minari_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        *("collect", str(pendulum), "--id=pendulum/medium-v0", "--transitions=60", "--noise=0.1"),
        *("--random-actions=0.3", "--seed=2", "--run-seed=5"),
    ]
    assert main(command) == 0
    seen = capsys.readouterr()
    assert "100%" in seen.err
    last = seen.out.splitlines()[-1]
    collected = collect(load(pendulum, 5), 60, 0.1, 0.3, 2)
    mean = f"{collected.returns.mean():.2f}"
    assert last == (f"60 transitions, mean return {mean}; use it as: --data pendulum/medium-v0")
    loaded = load_dataset("pendulum/medium-v0")
    assert contents(loaded) == contents(collected)
    assert loaded.env == "Pendulum-v1"
    assert "with noise 0.1 and 30% random actions" in loaded.note
    metadata = minari_dataset("pendulum/medium-v0").storage.metadata
    assert metadata["algorithm_name"] == "TD3"
    recipe = metadata["recipe"]
    assert recipe["run"] == json.loads((pendulum / "config.json").read_text())
    assert recipe["command"].startswith("rewardshift collect pendulum --id=pendulum/medium-v0")
    assert set(recipe["made_with"]) >= {"rewardshift", "gymnasium", "minari", "mujoco"}
    card = (minari_root / "pendulum" / "medium-v0" / "README.md").read_text()
    assert recipe["command"] in card
    assert str(tmp_path) not in card
    assert main(command) == 2
    assert "nothing is overwritten" in capsys.readouterr().err

    folder = tmp_path / "elsewhere" / "medium"
    assert main([*command, f"--folder={folder}"]) == 0
    assert capsys.readouterr().out.endswith(f"use it as: --data {folder}\n")
    assert contents(load_dataset(folder)) == contents(loaded)
    assert (folder / "README.md").read_text() == card
    assert main(["data", "inspect", str(folder)]) == 0
    assert "action             1 x float32" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--id=x"], "'x' is no id of a Minari data set"),
        (["--id=../x-v0"], "'../x-v0' is no id of a Minari data set"),
        (["--id=ab/x-v0", "--noise=1"], "noise is for continuous actions"),
        (["--id=ab/x-v0", "--transitions=0"], "transitions must be a whole number of 1 or more"),
        (["--id=ab/x-v0", "--run-seed=1"], "the run has the seeds [0], not 1"),
        (["--id=ab/x-v0", "--folder=file"], "exists, and nothing is overwritten"),
    ],
)
def test_bad_input_leaves_nothing_behind(
    arguments: list[str],
    message: str,
    cartpole: Path,
    minari_root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("precious")
    assert main(["collect", str(cartpole), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "precious"
    assert not list(minari_root.glob("*"))


class Counted(gym.Env[Any, Any]):
    """An environment that counts its steps, all over."""

    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    steps = 0

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()

    def reset(self, **kwargs: Any) -> Any:
        return np.zeros(1, np.float32), {}

    def step(self, action: int) -> Any:
        Counted.steps += 1
        return np.zeros(1, np.float32), 1.0, False, True, {}


def test_an_environment_that_cannot_be_written_is_refused_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Registered as a class itself, which no file can keep."""
    gym.register("Counted-v0", entry_point=Counted)
    try:
        train(
            DQN(network=MLP((8,)), batch_size=8),
            "Counted-v0",
            budget=BUDGET,
            folder=tmp_path / "run",
        )
        before = Counted.steps
        assert main(["collect", str(tmp_path / "run"), "--id=counted/few-v0"]) == 2
    finally:
        gym.registry.pop("Counted-v0")
    assert "'Counted-v0' cannot be written into a data set" in capsys.readouterr().err
    assert Counted.steps == before
