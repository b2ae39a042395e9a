"""The files of a run folder: nothing is followed out of it, and what is lost is written again."""

import contextlib
import gc
import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from probes import Probe, stop_at
from victims import Victim, call, command, contents

from rewardshift import DQN, OnlineBudget, train
from rewardshift.agents.networks import MLP
from rewardshift.cli import main
from rewardshift.errors import InputError
from rewardshift.files import own_folder, read_own, read_sealed, write_sealed
from rewardshift.training.run_folder import load
from rewardshift.training.runs import resume

AGENT = DQN(network=MLP((8,)), batch_size=8)
BUDGET = OnlineBudget(steps=60, evaluate_every=20, evaluation_episodes=1, checkpoint_every=20)
PRECIOUS = "somebody's"


def run(folder: Path, last: int = 99) -> Any:
    stop = stop_at(last)
    return train(AGENT, "CartPole-v1", budget=BUDGET, folder=folder, on_progress=stop)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped after two of its three checkpoints."""
    folder = tmp_path_factory.mktemp("runs") / "stopped"
    assert not run(folder, last=45).finished
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "finished"
    assert run(folder).finished
    return folder


@pytest.fixture
def soon() -> Iterator[None]:
    """Fails a test that hangs."""

    def fail(*_: Any) -> None:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


FILES = (
    *(".lock", "config.json", "metrics.csv", "parameters.npz", "timing.csv"),
    *("checkpoints/checkpoint-000000000040.json", "checkpoints/state-000000000040.npz"),
    *("checkpoints/segment-000000000020-000000000040.npy", "tensorboard/events"),
)


@pytest.mark.parametrize("name", FILES)
def test_a_link_in_a_run_folder_leads_nowhere(name: str, stopped: Path, tmp_path: Path) -> None:
    """What it leads to is neither read nor changed; metrics and networks replace the link."""
    folder = shutil.copytree(stopped, tmp_path / "run")
    outside, link = tmp_path / "outside", folder / name
    if link.exists() and name != ".lock":
        shutil.copy(link, outside)  # what is read would be right
        link.unlink()
    else:
        outside.write_text(PRECIOUS)
        link.unlink(missing_ok=True)
    before = outside.read_bytes()
    link.symlink_to(outside)
    if name in ("metrics.csv", "parameters.npz"):
        assert run(folder).finished
        assert not link.is_symlink()
    else:
        with pytest.raises(InputError, match="is a symbolic link, and is left alone"):
            run(folder)
    assert outside.read_bytes() == before


@pytest.mark.parametrize("name", ["checkpoints", "tensorboard"])
def test_a_linked_folder_in_a_run_folder_is_refused(
    name: str, stopped: Path, tmp_path: Path
) -> None:
    folder, outside = shutil.copytree(stopped, tmp_path / "run"), tmp_path / "outside"
    (folder / name).rename(outside)
    (folder / name).symlink_to(outside)
    before = contents(outside)
    with pytest.raises(InputError, match="is a symbolic link"):
        run(folder)
    assert contents(outside) == before


def test_a_network_without_end_is_refused(stopped: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(stopped, tmp_path / "run")
    body = json.loads((folder / "config.json").read_text())
    body["agent"]["network"]["hidden"] = [8] * 5000
    (folder / "config.json").write_text(json.dumps(body))
    with pytest.raises(InputError, match=r"no run in .*hidden must be up to 100 whole numbers"):
        resume(folder)


def test_a_checkpoint_names_no_file_of_another_folder(stopped: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(stopped, tmp_path / "run")
    manifest = folder / "checkpoints" / "checkpoint-000000000040.json"
    body = read_sealed(manifest, version=3)
    name, digest = body["segments"].popitem()
    (folder / "checkpoints" / name).rename(folder / name)
    write_sealed(manifest, {**body, "segments": {**body["segments"], f"../{name}": digest}})
    with pytest.raises(InputError, match="a file of another folder"):
        run(folder)


def test_a_run_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "far")
    assert run(tmp_path / "run").finished
    assert (tmp_path / "far" / "metrics.csv").exists()


@pytest.mark.parametrize("name", [".lock", "config.json", "parameters.npz", "timing.csv"])
def test_a_pipe_in_a_run_folder_is_not_waited_for(
    name: str, finished: Path, tmp_path: Path, soon: None, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    command = ["play", str(folder)] if name == "parameters.npz" else ["resume", str(folder)]
    if name == "timing.csv":  # which is only looked at when there is something to add
        (folder / "checkpoints").rename(tmp_path / "checkpoints")
    assert main(command) == 2
    said = capsys.readouterr().err
    assert f"{name}' is a pipe, a device or a folder" in said
    assert "Traceback" not in said


def test_own_files_are_files_and_own_folders_hold_no_links(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a pipe, a device or a folder"):
        read_own(own_folder(tmp_path / "folder"))
    with pytest.raises(FileNotFoundError):
        read_own(tmp_path / "nothing")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(InputError, match="a symbolic link"):
        own_folder(tmp_path / "loop")


@pytest.mark.parametrize("name", ["metrics.csv", "parameters.npz"])
@pytest.mark.parametrize("damage", ["gone", "cut", "other"])
def test_what_a_finished_run_has_lost_is_written_again(
    name: str, damage: str, finished: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(finished, tmp_path / "run")
    whole = (folder / name).read_bytes()
    match damage:
        case "gone":
            (folder / name).unlink()
        case "cut":
            (folder / name).write_bytes(whole[:-9])
        case "other":
            (folder / name).write_text("seed,step\n0,0\n")
    assert main(["resume", str(folder)]) == 0
    assert contents(folder) == contents(finished)


def test_networks_belong_to_their_configuration(finished: Path, tmp_path: Path) -> None:
    """The same shapes, of an agent with another shift."""
    other = tmp_path / "other"
    train(replace(AGENT, shift=-0.5), "CartPole-v1", budget=BUDGET, folder=other)
    folder = shutil.copytree(finished, tmp_path / "run")
    shutil.copy(other / "parameters.npz", folder)
    with pytest.raises(InputError, match=r"another configuration; 'rewardshift resume .*"):
        load(folder, 0)
    assert resume(folder).finished
    assert load(folder, 0).step == 60


class Patient(Probe):
    """Long episodes: longer than the training, which only an evaluation gets to the end of."""

    steps = 0

    def step(self, action: Any) -> Any:
        self.steps += 1
        if self.steps in (50, 50_000):
            print("begun" if self.steps == 50 else "ended", flush=True)
        return self._observation(), 0.0, False, self.steps == 50_000, {}


def evaluate_for_long(folder: Path) -> None:
    """A script with two trainings."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever started pytest
    budget = OnlineBudget(steps=20, evaluate_every=10, evaluation_episodes=1, checkpoint_every=5)
    for name in ("first", "second"):
        train(AGENT, Patient, budget=budget, folder=folder / name)
        print("the script goes on", flush=True)


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 1, "KeyboardInterrupt"), (signal.SIGTERM, -signal.SIGTERM, "")],
)
def test_a_signal_during_an_evaluation_ends_the_script(
    number: int, code: int, word: str, tmp_path: Path
) -> None:
    """As it would without a training; the run is left at its last checkpoint."""
    victim = Victim(evaluate_for_long, tmp_path)
    assert victim.says.readline() == b"begun\n"
    assert victim.process.pid is not None
    os.kill(victim.process.pid, number)
    end = victim.end()
    assert end.code == code
    assert word in end.said
    assert "ended" not in end.said
    assert "the script goes on" not in end.said
    assert load(tmp_path / "first").step == 5
    assert not (tmp_path / "second").exists()


def signal_in_a_collection(*_: Any) -> None:
    """A signal that arrives in a callback of the garbage collector, as JAX has one."""

    def callback(phase: str, info: Any) -> None:
        gc.callbacks.remove(callback)
        signal.raise_signal(signal.SIGINT)

    gc.callbacks.append(callback)
    gc.collect()


class Collecting(Probe):
    """A signal arrives while the task is made for the first time: long before the first step."""

    def __init__(self) -> None:
        super().__init__()
        if not made:
            made.append(self)
            signal_in_a_collection()


made: list[Collecting] = []


def train_among_collections(folder: Path | None, early: bool) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever started pytest
    task, tell = (Collecting, None) if early else (Probe, signal_in_a_collection)
    budget = OnlineBudget(steps=20, evaluate_every=10, evaluation_episodes=1)
    train(AGENT, task, budget=budget, folder=folder, on_progress=tell)
    print("the script goes on", flush=True)


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("kept", [True, False])
def test_a_signal_in_a_collection_of_garbage_is_not_lost(
    kept: bool, early: bool, tmp_path: Path
) -> None:
    end = call(train_among_collections, tmp_path / "run" if kept else None, early)
    assert end.code == 1
    assert "KeyboardInterrupt" in end.said
    assert "Exception ignored" not in end.said
    assert "the script goes on" not in end.said


class Stuck(Probe):
    def step(self, action: Any) -> Any:
        print("begun", flush=True)
        while True:
            with contextlib.suppress(BaseException):
                time.sleep(1)


def train_stuck(folder: Path) -> None:
    train(AGENT, Stuck, budget=OnlineBudget(steps=20), folder=folder)


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    victim = Victim(train_stuck, tmp_path / "run")
    assert victim.says.readline() == b"begun\n"
    assert victim.process.pid is not None
    for _ in range(2):
        os.kill(victim.process.pid, signal.SIGTERM)
        time.sleep(0.5)
    assert victim.end().code == -signal.SIGTERM


def test_the_command_says_how_to_go_on(tmp_path: Path) -> None:
    """SIGTERM by the command's own handler: exit code 130, as for Ctrl-C."""
    run = tmp_path / "run"
    line = ["train", "dqn", "--env=CartPole-v1", "--steps=2000000", "--checkpoint-every=20"]
    small = ["--network=mlp(hidden=(8,))", "--batch-size=8", "--capacity=100", f"--out={run}"]
    victim = Victim(command, (*line, *small))
    while not (run / "parameters.npz").exists():
        assert victim.process.is_alive()
        time.sleep(0.05)
    assert victim.process.pid is not None
    os.kill(victim.process.pid, signal.SIGTERM)
    end = victim.end()
    assert end.code == 130
    assert f"go on from the last checkpoint with: rewardshift resume {run}" in end.said
    assert "Traceback" not in end.said


def ignore_and_train(folder: Path) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    budget = OnlineBudget(steps=20, evaluate_every=10, evaluation_episodes=1)

    def tell(step: int, _: Any) -> None:
        signal.raise_signal(signal.SIGTERM)

    print(train(AGENT, Probe, budget=budget, folder=folder, on_progress=tell).finished)


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    assert call(ignore_and_train, tmp_path / "run") == (0, "True\n")


def test_a_short_training_is_evaluated_at_its_end() -> None:
    often, rarely = (
        train(AGENT, "CartPole-v1", budget=OnlineBudget(steps=30, evaluate_every=every))
        for every in (30, 2000)
    )
    assert [row.step for row in rarely.rows] == [30]
    assert rarely.rows == often.rows
    uneven = train(AGENT, "CartPole-v1", budget=OnlineBudget(steps=30, evaluate_every=20))
    assert [row.step for row in uneven.rows] == [20]
