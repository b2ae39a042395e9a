"""Settings and command lines at random: taken, or refused in one clear line."""

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from data_makers import ROWS, write_npz
from fuzzing import as_installed, assert_clear, contents, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rewardshift import (
    BCQ,
    CQL,
    DQN,
    MLP,
    RND,
    SAC,
    TD3,
    Hindsight,
    Shift,
    Subset,
)
from rewardshift.agents.selection import SELECTIONS
from rewardshift.cli import COMMANDS
from rewardshift.envs.tasks import TaskSpec
from rewardshift.training.budgets import OfflineBudget, OnlineBudget
from rewardshift.training.config import OURS, DataConfig, part_from_json, part_to_json
from rewardshift.training.tabular import TabularBudget

CONFIGS = (
    *(DQN, TD3, SAC, BCQ, CQL, RND, Hindsight, MLP),
    *SELECTIONS.values(),
    *(OnlineBudget, OfflineBudget, TabularBudget, Subset, DataConfig),
)
GIVEN: dict[type[Any], dict[str, Any]] = {
    Subset: {"transitions": 1},
    DataConfig: {"source": "a.npz", "digest": "0"},
}
# Whose words for a setting are others than its name.
ALSO = {"shift": "bias", "selection": "own_actors"}

numbers = st.one_of(
    st.integers(-2, 40),
    st.sampled_from([2**31 - 1, 2**31, -(2**63), 10**30, 10**5000]),
    st.floats(-2, 40),
    st.sampled_from([float("nan"), float("inf"), -float("inf"), 1e308, 5e-324]),
    st.sampled_from([np.float32(0.5), np.int64(3), np.uint8(1), np.bool_(True), np.array(2.0)]),
    st.booleans(),
)
words = st.sampled_from(
    ["", "zero", "absorbing", "linear", "fresh", "stored", "final", "episodes", "1", "a\nb", "[/]"]
)
scalars = st.one_of(numbers, words, st.none(), st.binary(max_size=2))
values = st.one_of(
    scalars,
    st.lists(numbers, max_size=3),
    st.lists(numbers, max_size=3).map(tuple),
    st.lists(st.integers(1, 9), min_size=1, max_size=3),
    st.lists(scalars, max_size=2).map(tuple),
    st.dictionaries(words, numbers, max_size=1),
    st.sampled_from([np.ones(2), np.ones((2, 2), int), np.array(["x"]), object(), DQN, len]),
    st.sampled_from([RND(), Hindsight(), SELECTIONS["optimistic"](), Subset(3), Shift(1)]),
    st.just(MLP((3,))),
)


@st.composite
def changed_settings(draw: st.DrawFn) -> tuple[type[Any], dict[str, Any]]:
    kind = draw(st.sampled_from(CONFIGS))
    names = [field.name for field in fields(kind)]
    if not names:
        return kind, {}
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    return kind, {name: draw(values) for name in chosen}


@settings(max_examples=900)
@given(changed_settings())
def test_settings_are_usable_or_refused_by_name(case: tuple[type[Any], dict[str, Any]]) -> None:
    kind, changed = case
    try:
        with as_installed():
            config = kind(**{**GIVEN.get(kind, {}), **changed})
    except ValueError as error:
        text = str(error)
        assert_clear(text, "got ")
        assert len(text) < 400
        assert any(name in text or ALSO.get(name, name) in text for name in changed)
        return
    assert replace(config) == config  # now with every type checked
    if kind.__name__ in OURS:
        assert part_from_json(json.loads(json.dumps(part_to_json(config)))) == config
    if kind is RND:
        config = DQN(intrinsic=config)
    if hasattr(config, "greedy"):
        actions = (0, 2) if config.continuous else (2, 0)
        spec = TaskSpec(3, "float32", *actions)
        jax.eval_shape(lambda key: config.init(key, spec), jax.random.key(0))


# Words of command lines: of every kind, and none that would start real work.
ANY = st.one_of(
    st.sampled_from(["0", "1", "-1", "0.5", "nan", "inf", "-inf", "1e400", "9" * 25, "9" * 5000]),
    st.sampled_from(["", " ", "-", "--", "-h", "--help", "--version", "=", "None", "()", "True"]),
    st.sampled_from(["[red]", "[/]", "<b>", "a\nb", "a\0b", "\x1b[2J", "\udcff", "ü💥", "x" * 300]),
    st.sampled_from([".", "..", "../..", "/", "file", "file/x", "empty", "a.npz", "b.npz", "out"]),
    st.sampled_from(["embedded/x", "embedded/..", "a.npz/..", "no/x.h5", "--seeds", "--gamma=2"]),
    st.text(max_size=6),
)
NUMBER = st.sampled_from(["0", "1", "-1", "0.5", "0.99", "3", "nan", "inf", "1e308", "x", "9" * 25])
PART = st.one_of(
    ANY,
    st.sampled_from(["none", "rnd", "rnd(shift=-1)", "rnd(width=0)", "rnd(wide=1)", "rnd(1)"]),
    st.sampled_from(["uniform", "optimistic(beta=2)", "uniform(", "uniform)", "uniform()()"]),
    st.sampled_from(["future(ratio=1e999)", "final(ratio=-1)", f"uniform({'(' * 999}"]),
    st.sampled_from(["os:system(command='touch x')", "no.module:X", "a:b:c", ":", "f()"]),
    st.text(max_size=6).map("optimistic(beta={})".format),
)
# None of these can be trained in: they are not there, or not for this agent.
UNFIT = {
    "dqn": ["Nope-v0", "", "..", "[/]", "a\nb", "a:b:c", "no.module:X-v0", "Pendulum-v1", "\0"],
    "td3": ["Nope-v0", "", "..", "[/]", "a\nb", "a:b:c", "no.module:X-v0", "CartPole-v1", "\0"],
    "sac": ["Nope-v0", "", "..", "[/]", "a\nb", "a:b:c", "no.module:X-v0", "CartPole-v1", "\0"],
}
TRAINING = {
    "--shift": NUMBER, "--seeds": NUMBER, "--first-seed": NUMBER, "--out": ANY, "--gamma": NUMBER,
    "--terminal": ANY, "--network": ANY, "--learning-rate": NUMBER, "--batch-size": NUMBER,
    "--tau": NUMBER, "--evaluate-every": NUMBER, "--checkpoint-every": NUMBER,
}  # fmt: skip
ONLINE = {
    **TRAINING, "--hindsight": PART, "--n-step": NUMBER, "--selection": PART,
    "--steps": NUMBER, "--capacity": NUMBER,
}  # fmt: skip
CONSTANTS = st.lists(
    st.one_of(NUMBER, st.sampled_from(["auto", "auto(optimism=2)", ""])), max_size=3
)
SWEPT = {
    "--shift": CONSTANTS.map(tuple), "--seeds": NUMBER, "--jobs": NUMBER,
    "--on": st.sampled_from(["here", "x"]), "--address": ANY, "--scale": NUMBER,
    "--terminal": ANY, "--out": ANY,
}  # fmt: skip
OPTIONS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "suggest": {
        "--env": st.sampled_from(["CartPole-v1", "x"]), "--data": ANY, "--steps": NUMBER,
        "--gamma": NUMBER, "--agent": ANY, "--seconds": NUMBER,
    },
    "list": {},
    "report": {},
    "data inspect": {},
    "train dqn": {**ONLINE, "--intrinsic": PART, "--input-range": NUMBER, "--epsilon": ANY},
    "train td3": {**ONLINE, "--noise": NUMBER, "--twins": NUMBER},
    "train sac": {**ONLINE, "--temperature": NUMBER, "--target-entropy": NUMBER},
    "train bcq": {**TRAINING, "--candidates": NUMBER, "--updates": NUMBER, "--data-seed": NUMBER},
    "train cql": {**TRAINING, "--threshold": NUMBER, "--transitions": NUMBER, "--pick": ANY},
    "sweep dqn": {**ONLINE, **SWEPT, "--intrinsic": PART},
    "sweep td3": {**ONLINE, **SWEPT, "--noise": NUMBER},
    "sweep sac": {**ONLINE, **SWEPT},
    "sweep bcq": {**TRAINING, **SWEPT, "--transitions": NUMBER},
    "sweep cql": {**TRAINING, **SWEPT, "--updates": NUMBER},
    "doctor": {"--run-seed": NUMBER, "--episodes": NUMBER, "--seed": NUMBER, "--out": ANY},
    "evaluate": {"--episodes": NUMBER, "--run-seed": NUMBER, "--seed": NUMBER},
    "resume": {"--steps": NUMBER},
    "play": {"--film": ANY, "--run-seed": NUMBER, "--episode": NUMBER},
    "collect": {"--id": ANY, "--transitions": NUMBER, "--noise": NUMBER, "--folder": ANY},
    "reproduce": {
        "--preset": ANY, "--out": ANY, "--terminal": ANY, "--address": ANY,
        "--on": st.sampled_from(["here", "x"]),
    },
}  # fmt: skip
FOLDERS = ("data inspect", "resume", "play", "collect", "doctor", "evaluate")
# Without one of these, a figure would be run.
NO_PLAN = st.sampled_from(
    [
        *(["figure1", "--seeds=0"], ["figure1", "--seeds=-3"], ["figure1", f"--seeds={10**12}"]),
        *(["figure1", "--jobs=0"], ["all", "--jobs=-1"], ["figure1", f"--jobs={'9' * 5000}"]),
        *(["figure1", "--out=file"], ["figure1", "--out=a\0b"], ["figure1", f"--out={'x' * 300}"]),
        *(["[/]"], ["../x"], [""], ["figure"], ["<b>"], ["a\nb"], ["--seeds=2"]),
    ]
)


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    command = draw(st.sampled_from(sorted(OPTIONS)))
    line = command.split()
    options = OPTIONS[command]
    for name in draw(st.lists(st.sampled_from(sorted(options)), max_size=4)) if options else []:
        value = draw(options[name])
        line += [name, *(value if isinstance(value, tuple) else (value,))]
    agent = command.partition(" ")[2] if line[0] in ("train", "sweep") else ""
    if command == "reproduce":
        line += draw(NO_PLAN)
    elif agent in UNFIT:
        line += ["--env", draw(st.sampled_from(UNFIT[agent]))]
    elif agent:
        line += ["--data", draw(ANY), "--env", "CartPole-v1"]
    elif command in FOLDERS or draw(st.booleans()):
        line += [draw(ANY)]
    if draw(st.integers(0, 4)) == 0:
        line.insert(draw(st.integers(0, len(line))), draw(ANY))
    return line


def test_every_command_has_random_lines() -> None:
    assert {command.split()[0] for command in OPTIONS} == set(COMMANDS)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "above" / "work"
    (folder / "empty").mkdir(parents=True)
    (folder / "file").write_text("precious")
    write_npz(folder / "a.npz", ROWS)
    (folder / "b.npz").write_text("no data")
    monkeypatch.chdir(folder)
    return folder


@settings(max_examples=900, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=command_lines())
def test_a_command_line_is_followed_or_refused(line: list[str], workplace: Path) -> None:
    before = contents(workplace.parent)
    code, told, parsing = run(line)
    assert code in (0, 2), told
    assert "Traceback" not in told
    if code == 0:
        for name in contents(workplace.parent).keys() - before.keys():
            Path(name).unlink()  # a picture that was asked for
        return
    assert contents(workplace.parent) == before
    if not parsing:
        assert told.startswith("rewardshift: ")
        assert told.count("\n") == 1
        assert told[:-1].isprintable()
