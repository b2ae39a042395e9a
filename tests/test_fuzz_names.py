"""Hostile names: none leaves its folder, and each is shown as it is and nothing more."""

import os
import subprocess
from pathlib import Path

import pytest
from data_makers import ROWS, write_npz
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_cli import COMMAND

from rewardshift import BCQ, DQN, OnlineBudget
from rewardshift.cli import main
from rewardshift.data.writing import check_target
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import InputError
from rewardshift.pictures import as_file, drawing
from rewardshift.report.plots import finish, new_canvas
from rewardshift.training.budgets import OfflineBudget
from rewardshift.training.config import DataConfig, RunConfig

SPEC = TaskSpec(4, "float32")
MARKUP = ["[red]", "[/]", "[bold", "a[/b]c", "{task}", "<b>"]
hostile = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["..", "../../x", "/etc/x", "a\0b", "a/../b", "~", ".", "x" * 999, "ü" * 200]),
)


@settings(max_examples=150)
@given(hostile)
def test_a_run_is_named_after_what_it_is_and_stays_in_its_folder(name: str) -> None:
    data = DataConfig(name, "0")
    for config in (
        RunConfig(DQN(), name, SPEC, (0,), OnlineBudget()),
        RunConfig(BCQ(), "x", SPEC, (0,), OfflineBudget(), data),
    ):
        assert Path(config.name).name == config.name != ".."
        assert len(os.fsencode(config.name)) < 200


parts = st.sampled_from(["..", ".", "", "data", "ab", "a-b", "a\\b", "a\0b", "~", "x" * 300, "ü"])
ids = st.lists(parts, min_size=1, max_size=4).map("/".join)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.one_of(ids, ids.map(lambda name: f"{name}-v0"), hostile))
def test_a_data_set_stays_in_minaris_folder(name: str, minari_root: Path) -> None:
    try:
        target = check_target(name)
    except (InputError, OSError):
        return
    assert target.resolve().is_relative_to(minari_root.resolve())
    assert target.resolve() != minari_root.resolve()


@pytest.mark.parametrize("name", [name for name in MARKUP if "/" not in name])
def test_a_name_is_no_markup_for_the_terminal(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["train", "dqn", "--env", "CartPole-v1", "--steps", "2", "--batch-size", "2"]
    assert main([*line, "--evaluation-episodes", "1", "--out", str(tmp_path / name)]) == 0
    assert capsys.readouterr().err.count(name) == 1


@pytest.mark.parametrize("name", [*MARKUP, "$x_{$", "a\nb", "\x1b[2J", "💥", "\udcff", "&amp;--"])
def test_a_name_is_no_formula_for_a_picture(name: str) -> None:
    with drawing():
        canvas, _ = new_canvas(1, 1)
        finish(canvas, name, name)
        assert as_file(canvas).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["data", "inspect", b"[red]\xff.npz"], 0),
        (["report", b"\xff"], 2),
        (["train", "dqn", "--env", "[/]\x1b[2J"], 2),
        (["resume", "a\nb"], 2),
        (["suggest", "--env", "[red]\x1b[2J"], 2),
    ],
)
def test_the_real_command_with_bad_input(
    arguments: list[str | bytes], code: int, tmp_path: Path
) -> None:
    write_npz(tmp_path / os.fsdecode(b"[red]\xff.npz"), ROWS)
    (tmp_path / os.fsdecode(b"\xff")).mkdir()
    before = sorted(tmp_path.iterdir())
    result = subprocess.run(
        [*COMMAND, *arguments], cwd=tmp_path, capture_output=True, timeout=300, check=False
    )
    told = result.stderr.decode()
    assert result.returncode == code, told
    assert told.count("\n") == (1 if code else 0)
    assert told.startswith("rewardshift: " if code else "")
    assert code == 0 or sorted(tmp_path.iterdir()) == before
