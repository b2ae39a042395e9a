"""The command line as a user meets it: real processes, exit codes and files."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rewardshift.cli import main

COMMAND = [str(Path(sys.executable).with_name("rewardshift"))]


def rewardshift(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )


def test_a_newcomers_round(tmp_path: Path) -> None:
    result = rewardshift("reproduce", "figure1", "--preset", "smoke", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "out/figure1/figure.png" in result.stdout
    assert "inconclusive" in result.stdout
    made = sorted(path.name for path in (tmp_path / "out" / "figure1").iterdir())
    assert made == [
        "claims.json", "figure.png", "figure.svg", "provenance.json", "results.csv", "units",
    ]  # fmt: skip
    assert (tmp_path / "out" / "report.html").exists()
    again = rewardshift("reproduce", "figure1", "--preset", "smoke", cwd=tmp_path)
    assert again.returncode == 0
    assert "no unit of work is left to do" in again.stdout
    picture = (tmp_path / "out" / "figure1" / "figure.png").read_bytes()
    assert rewardshift("report", cwd=tmp_path).returncode == 0
    assert (tmp_path / "out" / "figure1" / "figure.png").read_bytes() == picture


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "figur1"], "no figure is called 'figur1'; did you mean 'figure1'"),
        (["reproduce", "figure1", "--seeds", "0"], "seeds must be 1 or more, up to 65536, got 0"),
        (
            ["reproduce", "figure1", "--jobs", "0"],
            "jobs must be a whole number of 1 or more, below 2^31, got 0",
        ),
        (
            ["reproduce", "figure1", "--out", "file/x"],
            "cannot write to the folder 'file/x'",
        ),
        (["report", "nowhere"], "no folder 'nowhere'"),
        (["report", "."], "run 'rewardshift reproduce FIGURE --out .' first"),
        (["resume", "a b"], "no run in 'a b'"),
        (["suggest", "--env", "Nope"], "no environment 'Nope'"),
        (["suggest", "--env", "Nope"], "MODULE:ID, where importing MODULE registers ID"),
        (["suggest", "--env", "CartPole-v1", "--gamma", "1"], "gamma must be in [0, 1), got 1.0"),
        (["suggest", "--env", "CartPole-v1", "--steps", "0"], "steps must be a whole number of 1"),
        (["suggest", "--data", "nowhere.npz"], "nowhere.npz"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("precious")
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "precious"


def test_files_in_the_way_are_named_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "figure1").mkdir()
    (tmp_path / "figure1" / "units").write_text("precious")
    assert main(["reproduce", "figure1", "--preset=smoke", f"--out={tmp_path}"]) == 2
    assert "units" in capsys.readouterr().err


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    command = f"set -o pipefail; {COMMAND[0]} list | head -1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert result.stderr == ""
    assert result.stdout.startswith("figure1")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["reproduce"],
        ["reproduce", "figure1", "--preset", "huge"],
        ["reproduce", "--seeds", "x"],
    ],
)
def test_what_does_not_parse_ends_with_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr().err


# Interruptible, even if whatever started pytest had it ignore interrupts.
INTERRUPTIBLE = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL);"
    " os.execv(sys.argv[1], sys.argv[1:])"
)


def start(arguments: list[str], cwd: Path) -> subprocess.Popen[str]:
    """The command in a group of its own, as from a terminal."""
    return subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, *COMMAND, *arguments],
        cwd=cwd,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def group_is_gone(group: int) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize(
    ("number", "jobs", "seeds"),
    [(signal.SIGINT, 2, 20), (signal.SIGINT, 1, 100), (signal.SIGTERM, 2, 20)],
)
def test_a_run_stops_when_it_is_told_to_and_goes_on(
    number: int, jobs: int, seeds: int, tmp_path: Path
) -> None:
    plan = ["reproduce", "figure1", "--preset=smoke", f"--seeds={seeds}", f"--jobs={jobs}"]
    process = start(plan, tmp_path)
    units = tmp_path / "out" / "figure1" / "units"
    deadline = time.monotonic() + 120
    while not list(units.glob("*.json")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as Ctrl-C does: to the whole group
    else:
        process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from here" in error
    assert "Traceback" not in error
    assert group_is_gone(process.pid)
    done = {path: path.stat().st_mtime_ns for path in units.glob("*.json")}
    assert 0 < len(done) < seeds / 2
    assert rewardshift(*plan, cwd=tmp_path).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in done} == done
    claims = json.loads((tmp_path / "out" / "figure1" / "claims.json").read_text())
    assert {claim["seeds"] for claim in claims} == {seeds}


def test_both_terminal_treatments_live_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = ["reproduce", "figure1", "--preset=smoke", "--seeds=1", f"--out={tmp_path}"]
    results = tmp_path / "figure1" / "results.csv"
    assert main(plan) == 0
    zero = results.read_bytes()
    assert main([*plan, "--terminal=absorbing"]) == 0
    assert results.read_bytes() != zero
    capsys.readouterr()
    assert main(plan) == 0
    assert "no unit of work is left to do" in capsys.readouterr().out
    assert results.read_bytes() == zero


def test_an_interrupted_command_that_keeps_nothing_promises_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(source: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rewardshift.cli.data.load_dataset", interrupt)
    assert main(["data", "inspect", "embedded/hopper-medium"]) == 130
    assert capsys.readouterr().err == "rewardshift: stopped\n"


@pytest.mark.parametrize("name", ["folder", "missing"])
def test_a_folder_without_data_is_told(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    assert main(["data", "inspect", str(tmp_path / name)]) == 2
    assert "is neither the folder of a Minari data set nor" in capsys.readouterr().err
