"""The flags of `rewardshift train` are the settings of agents, budgets and parts."""

import re
from dataclasses import dataclass, fields
from typing import Any

import outside
import pytest
import tyro
from fuzzing import as_installed, refused
from hypothesis import given
from hypothesis import strategies as st

from rewardshift import (
    DQN,
    MLP,
    RND,
    SAC,
    TD3,
    Agent,
    Hindsight,
    OfflineBudget,
    OnlineBudget,
    Shift,
)
from rewardshift.agents.intrinsic import Intrinsic
from rewardshift.agents.networks import Network
from rewardshift.agents.selection import Drawing, Optimistic, ProgressSoftmax
from rewardshift.cli import main
from rewardshift.cli.parts import EMPTY, FLAGS, SLOTS, Slot, part_from_text, part_to_text
from rewardshift.cli.train import AGENTS, Job, by_agent
from rewardshift.errors import InputError

SHORT = {"dqn": "--env=CartPole-v1", "td3": "--env=Pendulum-v1", "sac": "--env=Pendulum-v1"}
agents = pytest.mark.parametrize("name", AGENTS)


def parse(*arguments: str) -> tuple[Any, Any]:
    """The agent and the budget that a command line asks for."""
    markers = (tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes)
    kind = by_agent(Job, arguments[0] if ":" in arguments[0] else None)
    with as_installed(), FLAGS:
        job: Job[Any, Any, Any] = tyro.cli(kind, args=arguments, config=markers)
    return job.shift.given_to(job.agent), job.budget


def needed(name: str) -> str:
    return SHORT.get(name, "--data=a.npz")


def flags(name: str, monkeypatch: Any, capsys: Any) -> dict[str, str]:
    """The flags of an agent, each with its help."""
    monkeypatch.setenv("COLUMNS", "100")  # wider, and they stand side by side
    with pytest.raises(SystemExit) as end:
        main(["train", name, "--help"])
    assert end.value.code == 0
    lines = [line.strip("│ \n") for line in capsys.readouterr().out.splitlines()]
    blocks = re.split(r"\n(?=--)", "\n".join(lines))[1:]
    return {block.split()[0].strip(",").split("=")[0]: block for block in blocks}


@agents
def test_every_setting_has_a_flag_with_a_help(name: str, monkeypatch: Any, capsys: Any) -> None:
    kind, budget = AGENTS[name]
    found = flags(name, monkeypatch, capsys)
    for field in (*fields(kind), *fields(budget)):
        text = found[f"--{field.name.replace('_', '-')}"]
        assert re.search(r"[a-z]{3}[^.]*\.\s", text.replace("(...)", "")), text
        assert "{fixed}" not in text


@agents
def test_no_flag_gives_the_defaults(name: str) -> None:
    kind, budget = AGENTS[name]
    assert parse(name, needed(name)) == (kind(), budget)


def test_flags_give_what_python_gives() -> None:
    agent, budget = parse(
        *("dqn", "--env=CartPole-v1", "--shift", "-0.5", "0.5", "--scale=2", "--no-double"),
        *("--terminal=absorbing", "--network=mlp(hidden=(8, 4), input_range=((-1, 1), (0, 2)))"),
        *("--intrinsic", "rnd(shift=-1, clear_gradients=False)", "--steps=7", "--diagnose"),
        "--selection=progress-softmax(temperature=0.5)",
    )
    shift = tuple(Shift(bias, 2.0, None, "absorbing") for bias in (-0.5, 0.5))
    assert agent == DQN(
        shift=shift,
        network=MLP((8, 4), input_range=((-1.0, 1.0), (0.0, 2.0))),
        intrinsic=RND(-1.0, clear_gradients=False),
        selection=ProgressSoftmax(0.5),
    )
    assert budget == OnlineBudget(steps=7, diagnose=True)
    smooth, _ = parse("td3", "--env=Pendulum-v1", "--target-noise-clip=0.3", "--shift=1")
    assert smooth == TD3(shift=1.0, target_noise_clip=0.3)
    soft, _ = parse("sac", "--env=Pendulum-v1", "--temperature=0.2")
    assert soft == SAC(temperature=0.2)
    tuned, _ = parse("sac", "--env=Pendulum-v1", "--temperature=None", "--hindsight=none")
    assert tuned == SAC()


def slot(kind: Any) -> Slot:
    """The slot of a setting that may be empty."""
    name, makers = SLOTS[kind]
    return Slot(name, EMPTY | makers)


numbers = st.floats(-5, 5)
parts = st.one_of(
    st.tuples(st.just(Intrinsic), st.none()),
    st.tuples(st.just(Intrinsic), st.builds(RND, numbers, st.integers(1, 9))),
    st.tuples(st.just(Intrinsic), st.builds(RND, numbers, evaluated=st.just("stored"))),
    st.tuples(st.just(Drawing), st.builds(Optimistic, st.floats(0, 1))),
    st.tuples(st.just(Drawing), st.builds(ProgressSoftmax, st.floats(0.1, 9))),
    st.tuples(st.just(Hindsight), st.builds(Hindsight, st.floats(0, 9), st.booleans())),
    st.tuples(st.just(Network), st.sampled_from([MLP(), MLP((4, 2), ((0.0, 1.0),))])),
)


@given(parts)
def test_a_part_comes_back_from_its_text(case: tuple[Any, Any]) -> None:
    kind, part = case
    assert part_from_text(part_to_text(part, slot(kind)), slot(kind)) == part


def test_a_part_of_ones_own() -> None:
    part = outside.Fading(shift=-1.0, speed=0.5)
    text = part_to_text(part, slot(Intrinsic))
    assert text == "outside:Fading(shift=-1.0, speed=0.5)"
    assert part_from_text(text, slot(Intrinsic)) == part


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"intrinsic must be none \| rnd\(shift=0.0, width=512, .* got ''"),
        ("rdn", r"intrinsic must be none \| rnd\(.*\) \| MODULE:CLASS\(...\), got 'rdn'"),
        ("rnd(wide=3)", "intrinsic rnd got an unexpected .*'wide'; its settings are: shift, width"),
        ("rnd(width=0)", "width must be a whole number of 1 or more, below 2.31, got 0"),
        ("rnd(3)", r"settings of intrinsic rnd must be like \(name=value, ...\), .* got '3'"),
        ("rnd(width=len)", "must be like"),
        ("rnd(width=1, width=2)", "must be like"),
        ("rnd(**{'width': 1})", "must be like"),
        ("rnd(width=1)(2)", "must be like"),
        ("os:system(command='true')", "the module 'os' has no dataclass 'system'"),
        ("no_such_module:X", "'no_such_module', which is not imported"),
        ("none(1)", r"settings of intrinsic none must be like"),
    ],
)
def test_a_text_that_is_no_part_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        part_from_text(text, slot(Intrinsic))


def test_a_part_that_is_refused_names_its_flag() -> None:
    line = ("train", "dqn", "--env=CartPole-v1", "--intrinsic")
    told = refused(*line, "rnd(wide=3)")
    assert "Error parsing --intrinsic: intrinsic rnd got an unexpected keyword" in told
    assert "Error parsing --intrinsic: width must be a whole" in refused(*line, "rnd(width=0)")


def test_a_part_for_another_slot_is_refused() -> None:
    told = refused("train", "dqn", "--env=CartPole-v1", "--intrinsic=outside:Alternating")
    assert "intrinsic must be an Intrinsic or None, got Alternating" in told


@dataclass(frozen=True)
class Needy(outside.Linear):
    """An agent that needs a setting and refuses some values.

    Args:
        seed_of_doubt: How much it doubts.
        helper: A part of its own kind.
    """

    seed_of_doubt: int = 1
    helper: outside.Fading | None = None

    def __post_init__(self) -> None:
        if self.seed_of_doubt > 3:
            raise ValueError("seed_of_doubt must be at most 3")


@dataclass(frozen=True)
class Clashing(outside.Linear):
    steps: int = 3


@dataclass(frozen=True)
class FromData(outside.Linear):
    act = Agent.act


def test_an_own_agent_without_act_learns_from_data() -> None:
    assert parse(f"{__name__}:FromData", "--data=a.npz")[1] == OfflineBudget()


def test_an_agent_of_ones_own() -> None:
    name = f"{__name__}:Needy"
    arguments = (name, "--env=CartPole-v1", "--helper=outside:Fading(speed=2)")
    needy = Needy(seed_of_doubt=2, helper=outside.Fading(speed=2))
    assert parse(*arguments, "--seed-of-doubt=2") == (needy, OnlineBudget())
    told = refused("train", *arguments, "--seed-of-doubt=4")
    assert "Error parsing job.agent: seed_of_doubt must be at most 3" in told
    assert "which is no Shift, or 'auto'" in refused("train", *arguments, "--scale=2")
    for wrong, message in (
        (f"{__name__}:Clashing", "the setting 'steps' of"),
        ("nowhere:X", "not imported"),
        (f"{__name__}:parse", "no dataclass"),
    ):
        assert message in refused("train", wrong, "--env=CartPole-v1")


def test_a_shift_is_a_number_or_a_rule_or_several_for_members() -> None:
    for text, shift in (("8", 8.0), ("auto", "auto")):
        agent, _ = parse("bcq", "--data=a.npz", f"--shift={text}")
        assert agent == AGENTS["bcq"][0](shift=shift)
    for agent, wrong, message in (
        ("bcq", "1 2", "shift must be FLOAT | auto("),
        ("bcq", "auto 1", "got auto 1"),
        ("bcq", "automatic", "a shift that is no number must be auto("),
        ("dqn", "1 auto", "shift must be FLOAT [FLOAT ...] | auto("),
    ):
        assert message in refused("train", agent, needed(agent), "--shift", *wrong.split())
