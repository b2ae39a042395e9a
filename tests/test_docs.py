"""What the docs say of names, here and elsewhere, against the names that there are."""

import inspect
import re
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import stable_baselines3
from stable_baselines3.her import HerReplayBuffer

import rewardshift
from rewardshift import BCQ, CQL, DQN, TD3, Hindsight, OfflineBudget, OnlineBudget
from rewardshift.cli import COMMANDS
from rewardshift.cli.train import OfflineTask, OnlineTask, RunOptions, ShiftOptions

DOCS = Path(__file__).parents[1] / "docs"
MIGRATING = (DOCS / "migrating.md").read_text()
OURS = (BCQ, CQL, DQN, TD3, Hindsight, OfflineBudget, OnlineBudget)


def test_the_page_of_commands_has_the_help_of_every_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(DOCS)
    module = import_module("command_help")
    assert module.MARK in (DOCS / "commands.md").read_text()
    page = module.command_reference()
    for name in COMMANDS:
        assert f"## {name}\n" in page
    for agent in ("dqn", "td3", "sac", "bcq", "cql"):
        assert f"usage: rewardshift train {agent} " in page
    assert "--evaluate-every INT" in page


def section(title: str) -> list[list[str]]:
    """The cells of the tables in a section of the page, row by row."""
    body = MIGRATING.split(f"## {title}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in body.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows if not row[0].startswith(" ---")]


def code(cell: str) -> list[str]:
    """The identifiers that stand alone in backticks in a cell, or begin what stands there."""
    return re.findall(r"`([a-z_]+)(?:`|=)", cell)


def parameters(function: Any) -> set[str]:
    return set(inspect.signature(function).parameters)


@pytest.mark.parametrize("name", rewardshift.__all__)
def test_the_reference_has_every_public_name(name: str) -> None:
    assert re.search(rf"::\s+rewardshift\.{name}$", (DOCS / "reference.md").read_text(), re.M)


def test_settings_of_stable_baselines3_go_by_their_names() -> None:
    theirs = parameters(stable_baselines3.DQN) | parameters(stable_baselines3.TD3)
    theirs |= parameters(HerReplayBuffer) | {"save", "load"}
    named = [name for row in section("From Stable-Baselines3")[1:] for name in code(row[0])]
    assert len(named) > 20
    assert set(named) <= theirs


@pytest.mark.parametrize("title", ["From Stable-Baselines3", "From d3rlpy"])
def test_settings_of_ours_go_by_their_names(title: str) -> None:
    ours = {field.name for kind in OURS for field in fields(kind)}
    ours |= {"train", "seeds", "resume", "load_dataset", "overestimation", "unseen_advantage"}
    named = [name for row in section(title)[1:] for name in code(row[1])]
    assert len(named) > 10
    assert set(named) <= ours


def test_options_that_take_the_place_of_the_authors_are_options() -> None:
    kinds = (*OURS, OnlineTask, OfflineTask, RunOptions, ShiftOptions)
    options = {f"--{field.name.replace('_', '-')}" for kind in kinds for field in fields(kind)}
    options |= {"--noise", "--random-actions"}  # of collect
    named = re.findall(
        r"--[a-z-]+", " ".join(row[1] for row in section("From the authors' scripts"))
    )
    assert len(named) > 30
    assert set(named) <= options
