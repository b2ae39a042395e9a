"""The doctor for our own runs, its picture and its command."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from data_makers import save_npz, small
from fuzzing import contents
from probes import Aim, Probe
from test_doctor import agent, replay, zeros

from rewardshift import CQL, DQN, MLP, RND, SAC, TD3, Shift, train, train_offline
from rewardshift.cli import main
from rewardshift.doctor import diagnose
from rewardshift.doctor.picture import draw
from rewardshift.errors import InputError
from rewardshift.training.budgets import OfflineBudget, OnlineBudget
from rewardshift.training.doctor import doctor

TINY: dict[str, Any] = {"network": MLP((8,)), "batch_size": 8}
BUDGET = OnlineBudget(
    steps=120, capacity=80, evaluate_every=120, evaluation_episodes=1, checkpoint_every=50
)


def corridor() -> Probe:
    return Probe(3, pays=(1.0, 1.0))


def aim() -> Aim:
    return Aim(3, goal=0.0)


def narrow() -> Probe:
    return Probe(4, pays=(1.0, 1.0))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DQN with two members and two seeds on the corridor."""
    place = tmp_path_factory.mktemp("runs") / "run"
    agent = DQN(shift=(-0.5, 0.5), gamma=0.9, **TINY)
    train(agent, corridor, seeds=(3, 4), budget=BUDGET, folder=place)
    return place


def test_a_run_is_examined_and_stays_as_it_is(run: Path) -> None:
    before = contents(run)
    found: Any = doctor(run, env=corridor, episodes=2)
    assert contents(run) == before
    assert found.signal.transitions == 120 + 6  # all segments that the checkpoint keeps
    assert found.ends.transitions == 13  # steps 40 to 79, every third
    assert len(found.belief.points) == 6
    assert found.ends.before is not None  # by the checkpoint before the last one
    assert found.start.lifetime == pytest.approx(DQN(gamma=0.9).lifetime)
    assert found.start.left == pytest.approx(np.exp(-120 / DQN(gamma=0.9).lifetime))
    assert abs(found.shift.bias) == 0.5
    assert doctor(run, env=corridor, episodes=2) == found
    assert doctor(run, 4, env=corridor, episodes=2) != found


@pytest.mark.parametrize("kind", [TD3, SAC])
def test_continuous_actions_are_on_the_scale_of_the_environment(kind: Any, tmp_path: Path) -> None:
    agent = kind(gamma=0.9, warm_up=10, **TINY)
    train(agent, aim, budget=BUDGET, folder=tmp_path / "run")
    found: Any = doctor(tmp_path / "run", env=aim, episodes=1)
    assert found.signal.low < 0  # actions in [-1, 1] would pay 0 at least


def test_fresh_networks_see_observations_as_they_are_scaled_by_now(tmp_path: Path) -> None:
    agent = DQN(gamma=0.9, normalise=True, **TINY)
    done = train(agent, corridor, seeds=(3,), budget=BUDGET, folder=tmp_path / "run")
    fresh = agent.init(jax.random.split(jax.random.key(3))[0], done.config.spec)
    scale = jax.tree.map(lambda leaf: leaf[0], done.state.normaliser)
    first = jnp.asarray([1.0, 0.0, 0.0])
    values = agent.values(fresh._replace(normaliser=scale), first)
    initial: Any = doctor(tmp_path / "run", env=corridor, episodes=1).start.initial
    assert values.min() - 1e-5 <= initial <= values.max() + 1e-5


def test_an_offline_run_is_examined_with_its_data(tmp_path: Path) -> None:
    from rewardshift.data import load_dataset  # noqa: PLC0415

    data = small("Pendulum-v1")
    path = save_npz(tmp_path / "small.npz", data)
    budget = OfflineBudget(updates=20, evaluate_every=20, evaluation_episodes=1)
    agent = CQL(shift=0.5, gamma=0.9, cloning_updates=0, **TINY)
    train_offline(agent, load_dataset(path), "Pendulum-v1", budget=budget, folder=tmp_path / "run")
    found = doctor(tmp_path / "run", episodes=1)
    assert found.shift == Shift(0.5, gamma=0.9)
    assert found.untried is not None
    assert found.signal.transitions == len(load_dataset(path)) + 200


def test_what_cannot_be_examined_is_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run in"):
        doctor(tmp_path)
    with pytest.raises(InputError, match=r"seeds \[3, 4\], not 5"):
        doctor(run, 5, env=corridor)
    with pytest.raises(InputError, match="the run was trained on"):
        doctor(run, env=narrow)
    with pytest.raises(InputError, match="which a file cannot keep"):
        doctor(run)
    curious = DQN(intrinsic=RND(-1.0, width=8), **TINY)
    train(curious, corridor, budget=BUDGET, folder=tmp_path / "curious")
    with pytest.raises(InputError, match="intrinsic reward"):
        doctor(tmp_path / "curious", env=corridor)


def test_the_command_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent = DQN(gamma=0.9, **TINY)
    train(agent, "CartPole-v1", budget=BUDGET, folder=tmp_path / "run")
    assert main(["doctor", str(tmp_path / "run"), "--episodes", "1"]) == 0
    told = capsys.readouterr().out
    assert "Does it believe too much?" in told
    assert str(tmp_path / "run" / "doctor.png") in told
    assert (tmp_path / "run" / "doctor.png").read_bytes().startswith(b"\x89PNG")
    body = json.loads((tmp_path / "run" / "doctor.json").read_text())
    assert body["gamma"] == 0.9
    for line in body["sentences"]:
        assert line in told
    other = tmp_path / "other"
    assert main(["doctor", str(tmp_path / "run"), "--episodes", "1", "--out", str(other)]) == 0
    assert {path.name for path in other.iterdir()} == {"doctor.json", "doctor.png"}
    assert main(["resume", str(tmp_path / "run")]) == 0  # the run is whole


def test_the_command_refuses_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, words in (
        ([], "no run in"),
        (["--episodes=0"], "episodes must be a whole number of 1 or more, below 2^31, got 0"),
    ):
        if arguments:
            train(DQN(**TINY), "CartPole-v1", budget=BUDGET, folder=tmp_path)
        assert main(["doctor", str(tmp_path), *arguments]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert words in line
        assert not list(tmp_path.glob("doctor.*"))


def test_pictures_of_all_that_is_known(run: Path) -> None:
    found: Any = doctor(run, env=corridor, episodes=2)
    assert draw(found, "a title").startswith(b"\x89PNG")
    assert draw(found) == draw(found)
    little = diagnose(agent(zeros), data=replay(ended=None))
    assert little.belief is None
    assert draw(little).startswith(b"\x89PNG")
