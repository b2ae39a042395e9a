"""Runs that are killed at any moment, and end as if nothing had happened."""

import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from data_makers import random_data, save_npz
from probes import Aim, Probe
from victims import KILLED, Fault, Victim, call, command, contents

from rewardshift import (
    BCQ,
    CQL,
    DQN,
    RND,
    SAC,
    TD3,
    Hindsight,
    OfflineBudget,
    OnlineBudget,
    train,
    train_offline,
)
from rewardshift.agents.networks import MLP

ONLINE = OnlineBudget(
    steps=100, capacity=50, evaluate_every=20, evaluation_episodes=1, checkpoint_every=10
)
RELABELLED = replace(ONLINE, hindsight=Hindsight(success_ends=True))
OFFLINE = OfflineBudget(updates=40, evaluate_every=8, evaluation_episodes=1, checkpoint_every=4)
SMALL: dict[str, Any] = {"network": MLP((8,)), "batch_size": 8}

# How often each run is killed: while it writes, and, from outside, while it trains.
KILLS = {
    "dqn-rnd": (5, 1),
    "td3": (5, 1),
    "sac": (5, 2),
    "her": (5, 3),
    "bcq": (4, 1),
    "cql": (4, 1),
}
assert sum(map(sum, KILLS.values())) >= 25


def tell(step: int, _: Any) -> None:
    print(step, flush=True)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[..., Any]]:
    data = random_data(lambda: gym.make("Pendulum-v1"), 40)
    file = save_npz(tmp_path_factory.mktemp("data") / "pendulum.npz", data)
    corridor, aim = partial(Probe, 3, pays=(1.0, 0.0)), partial(Aim, 2, goal=0.0)
    online = partial(train, seeds=2, budget=ONLINE, on_progress=tell)
    offline = partial(train_offline, seeds=2, budget=OFFLINE, on_progress=tell)
    bcq = BCQ(proposer=MLP((8,)), candidates=2, **SMALL)
    return {
        "dqn-rnd": partial(online, DQN(intrinsic=RND(-1.0, width=8), **SMALL), corridor),
        "td3": partial(online, TD3(shift=(-0.5, 0.0, 0.5), warm_up=10, **SMALL), aim),
        "sac": partial(online, SAC(shift=(-0.5, 0.0, 0.5), warm_up=10, **SMALL), aim),
        "her": partial(online, DQN(**SMALL), "rewardshift/BitFlip-v0", budget=RELABELLED),
        "bcq": partial(offline, bcq, str(file), "Pendulum-v1"),
        "cql": partial(
            offline, CQL(cloning_updates=6, candidates=2, **SMALL), str(file), "Pendulum-v1"
        ),
    }


def start(run: Callable[..., Any], folder: Path) -> None:
    run(folder=folder)


@pytest.fixture(scope="module")
def undisturbed(
    runs: dict[str, Callable[..., Any]], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    @cache
    def folder(name: str) -> Path:
        whole = tmp_path_factory.mktemp("undisturbed") / name
        assert call(start, runs[name], whole).code == 0
        return whole

    return folder


def deaths(name: str) -> list[Fault | int]:
    """The ends that a run shall find: at a file, first of all `config.json`, or after steps."""
    rng, (writing, training) = random.Random(name), KILLS[name]
    moments: list[Any] = ["half", "written", "renamed", "half"]
    chosen: list[Any] = [Fault(moment, rng.randint(1, 8)) for moment in moments[: writing - 1]]
    chosen += [rng.randint(1, 6) for _ in range(training)]
    rng.shuffle(chosen)
    return [Fault("half", 1), *chosen]


@pytest.mark.parametrize("name", KILLS)
def test_a_killed_run_ends_the_same(
    name: str, runs: Any, undisturbed: Callable[[str], Path], tmp_path: Path
) -> None:
    folder, kills = tmp_path / "run", 0
    for death in deaths(name):
        victim = Victim(
            start, runs[name], folder, fault=death if isinstance(death, Fault) else None
        )
        if isinstance(death, int):
            for _ in range(death):
                assert victim.says.readline()
            victim.process.kill()
        kills += victim.end().code == KILLED
    assert kills == sum(KILLS[name])
    assert call(start, runs[name], folder).code == 0
    assert contents(folder) == contents(undisturbed(name))


def complaint(arguments: tuple[Any, ...], fault: Fault) -> str:
    """The only line that a command says when its disk is full, after the figures of its bars."""
    end = call(command, arguments, fault=fault)
    assert end.code == 1, end.said
    assert "Traceback" not in end.said
    *_, line = end.said.strip().splitlines()
    assert line.startswith("rewardshift: [Errno 27] File too large: ")
    return line


HER = (
    *("train", "dqn", "--env=rewardshift/BitFlip-v0", "--network=mlp(hidden=(8,))"),
    *("--hindsight=future(success_ends=True)",),
    *("--batch-size=8", "--seeds=2", "--steps=100", "--capacity=50", "--evaluate-every=20"),
    *("--evaluation-episodes=1", "--checkpoint-every=10"),
)


def test_a_full_disk_stops_a_run_and_harms_nothing(
    undisturbed: Callable[[str], Path], tmp_path: Path
) -> None:
    """Full after so many files of a start; after the others, the run is a checkpoint further."""
    folder = tmp_path / "run"
    for number, name in [
        *((0, "config.json"), (1, "metrics.csv"), (1, "parameters.npz")),
        *((2, "checkpoints/segment-000000000000-000000000010.npy"), (5, "timing.csv")),
        *((4, "tensorboard"), (5, "checkpoints/state-000000000020.npz")),
        (11, "checkpoints/checkpoint-000000000030.json"),
    ]:
        before = contents(folder)
        assert complaint((*HER, f"--out={folder}"), Fault("full", number)).endswith(
            f"'{folder / name}'"
        )
        after = contents(folder)
        assert all(after[path] == before[path] for path in before if "checkpoints" in path)
        assert not [path for path in after if path.endswith(".half")]
    assert call(command, (*HER, f"--out={folder}")).code == 0
    assert contents(folder) == contents(undisturbed("her"))


def test_a_full_disk_leaves_no_part_of_a_data_set(
    undisturbed: Callable[[str], Path], tmp_path: Path
) -> None:
    made = tmp_path / "made"
    collect = ("collect", undisturbed("bcq"), "--id=few/new-v0", "--transitions=50")
    line = complaint((*collect, f"--folder={made}"), Fault("full", 0))
    assert line.endswith(f"'{made}'")
    assert not list(tmp_path.iterdir())
    assert call(command, (*collect, f"--folder={made}")).code == 0
    assert (made / "README.md").exists()


REPRODUCE = ("reproduce", "figure1", "--preset=smoke", "--seeds=6")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("drawn")
    assert call(command, (*REPRODUCE, "--jobs=1", f"--out={out}")).code == 0
    return figure(out)


def figure(out: Path) -> dict[str, bytes]:
    names = ("results.csv", "claims.json", "figure.svg", "figure.png")
    return {name: (out / "figure1" / name).read_bytes() for name in names}


def test_a_killed_reproduction_draws_the_same(drawn: dict[str, bytes], tmp_path: Path) -> None:
    """Three units of tabular agents, the table, its origin, two pictures, the claims."""
    again = (*REPRODUCE, "--jobs=1", f"--out={tmp_path}")
    for fault in [
        *(Fault("half", 1), Fault("written", 1), Fault("renamed", 1)),  # of the first unit
        *(Fault("half", 2), Fault("renamed", 1), Fault("half", 4), Fault("written", 5)),
    ]:
        assert call(command, again, fault=fault).code == KILLED
    assert call(command, again).code == 0
    assert figure(tmp_path) == drawn


def test_a_full_disk_stops_a_reproduction(drawn: dict[str, bytes], tmp_path: Path) -> None:
    again = (*REPRODUCE, "--jobs=1", f"--out={tmp_path}")
    assert "/figure1/units/" in complaint(again, Fault("full", 1))  # after the first unit
    assert complaint(again, Fault("full", 2)).endswith(f"'{tmp_path / 'figure1' / 'results.csv'}'")
    assert len(list((tmp_path / "figure1" / "units").iterdir())) == 3
    assert call(command, again).code == 0
    assert figure(tmp_path) == drawn


@pytest.mark.parametrize("whom", ["all", "parent"])
def test_no_worker_outlives_a_killed_reproduction(
    whom: str, drawn: dict[str, bytes], tmp_path: Path
) -> None:
    again = (*REPRODUCE, f"--out={tmp_path}")
    victim = Victim(command, (*again, "--jobs=2"))
    group = victim.process.pid
    assert group is not None
    units = tmp_path / "figure1" / "units"
    while victim.process.is_alive() and not list(units.glob("*.json")):
        time.sleep(0.01)
    os.killpg(group, signal.SIGKILL) if whom == "all" else victim.process.kill()
    assert victim.end().code == KILLED  # what it says ends when the last that can say it has ended
    assert call(command, (*again, "--jobs=1")).code == 0
    assert figure(tmp_path) == drawn
