"""The same figure on a Ray cluster, of which nodes are lost."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift.cli import main
from rewardshift.errors import InputError
from rewardshift.lab.cluster import RayCluster
from rewardshift.lab.figure import Unit
from rewardshift.lab.runner import Plan, gather, pending_units, run_units

# Read when Ray is imported: a driver then finds the nodes at 127.0.0.1, where they are kept, and
# does not look for them at the machine's own address.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray's own
HERE: dict[str, Any] = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "include_dashboard": False}


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Two nodes of one core each, of which the second may be lost."""
    from ray.cluster_utils import Cluster  # noqa: PLC0415  slow to import

    made: Any = Cluster(initialize_head=True, head_node_args=HERE)
    try:
        made.extra = made.add_node(**HERE)
        made.wait_for_nodes()
        yield made
    finally:
        made.shutdown()


def reference(out: Path, seeds: int) -> bytes:
    """The results of the local runner."""
    command = ["reproduce", "figure1", "--preset=smoke", f"--seeds={seeds}", "--jobs=1"]
    assert main([*command, f"--out={out}"]) == 0
    return (out / "figure1" / "results.csv").read_bytes()


def test_a_node_that_is_killed_takes_nothing_with_it(cluster: Any, tmp_path: Path) -> None:
    plan = Plan("figure1", "smoke", 6, "zero", tmp_path / "ray")
    units = pending_units(plan)
    broken = Unit(("nowhere",), units[0].methods, (99,), units[0].budget, "zero")
    outcomes = run_units(plan, [broken, *units], RayCluster(cluster.address))
    first = next(outcomes)
    cluster.remove_node(cluster.extra, allow_graceful=False)
    rest = [first, *outcomes]
    failed = [outcome for outcome in rest if outcome.error]
    assert [outcome.unit for outcome in failed] == [broken]
    assert "KeyError: 'nowhere'" in (failed[0].error or "")
    assert len(rest) == len(units) + 1
    assert gather(plan)
    assert (plan.folder / "results.csv").read_bytes() == reference(tmp_path / "here", 6)


def on_a_local_cluster(command: list[str], out: Path) -> str:
    """What a command prints that runs in a process of its own, with `--on=ray`."""
    code = "import sys; from rewardshift.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, *command, "--on=ray", f"--out={out}"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return done.stdout


def test_a_local_cluster_from_the_command_line(tmp_path: Path) -> None:
    command = ["reproduce", "figure1", "--preset=smoke", "--seeds=2"]
    on_a_local_cluster(command, tmp_path / "ray")
    results = tmp_path / "ray" / "figure1" / "results.csv"
    assert results.read_bytes() == reference(tmp_path / "here", 2)


def test_a_sweep_on_a_local_cluster(tmp_path: Path) -> None:
    task = ["--env=CartPole-v1", "--steps=60", "--evaluate-every=30", "--evaluation-episodes=1"]
    agent = ["--network=mlp(hidden=(8,))", "--batch-size=8"]
    command = ["sweep", "dqn", *task, *agent, "--shift", "auto", "-0.5", "--seeds=2"]
    on_a_local_cluster(command, tmp_path / "ray")
    # For each seed, the numbers as rows, and auto.
    assert len(list((tmp_path / "ray" / "sweep" / "units").iterdir())) == 4
    assert main([*command, "--jobs=2", f"--out={tmp_path / 'here'}"]) == 0
    results = [tmp_path / place / "sweep" / "results.csv" for place in ("ray", "here")]
    assert results[0].read_bytes() == results[1].read_bytes()


def test_a_trial_on_a_local_cluster_whose_workers_do_not_find_its_file(tmp_path: Path) -> None:
    file = tmp_path / "far" / "my_own_trial.py"
    file.parent.mkdir()
    file.write_text("def trial(env, seed):\n    yield 5, 1.0 + seed\n")
    command = ["sweep", f"{file}:trial", "--env=CartPole-v1", "--shift", "-1", "--seeds=1"]
    told = on_a_local_cluster(command, tmp_path / "ray")
    assert "No best constant" in told


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:x", ""])
def test_a_cluster_that_is_not_there(address: str, tmp_path: Path) -> None:
    plan = Plan("figure1", "smoke", 1, "zero", tmp_path)
    with pytest.raises(InputError, match=f"no Ray cluster at '{address}'"):
        list(run_units(plan, pending_units(plan), RayCluster(address)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--on=ray", "--jobs=2"], "--jobs is for processes of this machine"),
        (["--address=auto"], "--address is for --on ray"),
    ],
)
def test_options_that_do_not_go_together(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "figure1", *options, f"--out={tmp_path / 'out'}"]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
