"""Parts from outside the package train, go on after a stop, play and collect like ours."""

import json
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import jax.numpy as jnp
import outside
import pytest
from fuzzing import as_installed

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift import DQN, TD3, Agent, Auto, InputError, OnlineBudget, Shift, resume, train
from rewardshift.agents.networks import MLP
from rewardshift.lab import FIGURES, register

BUDGET = OnlineBudget(steps=60, evaluate_every=20, evaluation_episodes=1, checkpoint_every=20)
SMALL: dict[str, Any] = {"network": MLP((8,)), "batch_size": 8}
CASES: dict[str, tuple[Any, str]] = {
    "agent": (outside.Linear(shift=-0.5), "CartPole-v1"),
    "selection": (DQN(shift=(-0.5, 0.5), selection=outside.Alternating(), **SMALL), "CartPole-v1"),
    "selection of TD3": (
        TD3(shift=(-0.5, 0.5), selection=outside.Alternating(), warm_up=10, lead_steps=0, **SMALL),
        "Pendulum-v1",
    ),
    "bonus": (DQN(intrinsic=outside.Fading(shift=-1.0), **SMALL), "CartPole-v1"),
    "network": (DQN(network=outside.Fourier(), initial="zero", batch_size=8), "CartPole-v1"),
    "network of TD3": (TD3(network=outside.Fourier(), warm_up=10, batch_size=8), "Pendulum-v1"),
}


def command(*arguments: Any) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, where nothing is imported yet."""
    code = "import sys; from rewardshift.cli import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=Path(outside.__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_line_finds_a_part_whose_module_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(*CASES["agent"], budget=BUDGET, folder=folder)
    refused = command("play", folder)
    assert refused.returncode == 2
    assert "Linear is from the module 'outside', which is not imported" in refused.stderr
    assert command("--import", "outside", "play", folder).returncode == 0
    collected = command(
        "--import", "outside", "collect", folder, "--transitions", 50, "--id", "own/data-v0",
        "--folder", tmp_path / "data",
    )  # fmt: skip
    assert collected.returncode == 0, collected.stderr
    recipe = (tmp_path / "data" / "README.md").read_text()
    assert '"command": "rewardshift --import outside collect run ' in recipe
    assert "surprise" in (folder / "metrics.csv").read_text().splitlines()[0]


@pytest.mark.parametrize("case", CASES)
def test_it_survives_a_kill(case: str, tmp_path: Path) -> None:
    """Killed from outside after its first checkpoint, it goes on bit for bit."""
    agent, env = CASES[case]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    train(agent, env, seeds=2, budget=BUDGET, folder=whole)
    code = (
        "import os, signal, sys, test_your_own as own; from rewardshift import train\n"
        "agent, env = own.CASES[sys.argv[1]]\n"
        "kill = lambda step, _: step == 30 and os.kill(os.getpid(), signal.SIGKILL)\n"
        "train(agent, env, seeds=2, budget=own.BUDGET, folder=sys.argv[2], on_progress=kill)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, case, str(killed)],
        cwd=Path(outside.__file__).parent,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert resume(killed).finished
    for name in ("metrics.csv", "parameters.npz", "config.json"):
        assert (whole / name).read_bytes() == (killed / name).read_bytes()


def test_a_figure_is_reproduced_in_processes_and_shown(tmp_path: Path) -> None:
    arguments = ("reproduce", "my-figure", "--out", tmp_path, "--jobs", 2)
    assert command(*arguments).returncode == 2  # nobody knows it yet
    done = command("--import", "outside_figure", *arguments)
    assert done.returncode == 0, done.stderr
    assert "A shift of -0.5 helps" in (tmp_path / "report.html").read_text()
    for name in ("claims.json", "figure.png", "figure.svg", "results.csv", "provenance.json"):
        assert (tmp_path / "my-figure" / name).stat().st_size > 0
    assert "my-figure" in command("--import", "outside_figure", "list").stdout
    made = json.loads((tmp_path / "my-figure" / "provenance.json").read_text())
    assert made["command"].startswith("rewardshift --import outside_figure reproduce my-figure ")


def test_a_figure_needs_a_name_of_its_own() -> None:
    for name, words in (("figure1", "take another name"), ("../up", "lower-case letters")):
        with pytest.raises(InputError, match=words):
            register(replace(FIGURES["fetch"], name=name), module="outside")


def test_a_figure_that_names_what_it_has_not_is_refused() -> None:
    figure = replace(FIGURES["fetch"], name="mine")
    claim, panel = figure.claims[0], figure.panels[0]
    for wrong, words in (
        ({"claims": (replace(claim, better="none"),)}, "must name a panel and two methods"),
        ({"claims": (claim, claim)}, "have the same id"),
        ({"panels": (replace(panel, task="none"),)}, "names no task"),
        ({"presets": {"smoke": figure.presets["smoke"]}}, "needs a preset called 'quick'"),
    ):
        with pytest.raises(InputError, match=words):
            register(replace(figure, **wrong), module="outside")


def test_the_command_line_trains_an_agent_whose_module_is_named(tmp_path: Path) -> None:
    mine, same = tmp_path / "mine", tmp_path / "same"
    train(*CASES["agent"], budget=BUDGET, folder=mine)
    flags = ("--steps=60", "--evaluate-every=20", "--evaluation-episodes=1")
    task = ("--env=CartPole-v1", "--shift=-0.5", *flags, "--checkpoint-every=20")
    own = ("train", "outside:Linear", *task, "--out", same)
    refused = command(*own)
    assert refused.returncode == 2
    assert "Linear is from the module 'outside', which is not imported" in refused.stderr
    trained = command("--import", "outside", *own)
    assert trained.returncode == 0, trained.stderr
    assert (mine / "config.json").read_bytes() == (same / "config.json").read_bytes()


def test_importing_a_module_that_is_not_there_is_refused() -> None:
    for arguments in (["--import"], ["--import", "no_such_module", "list"]):
        refused = command(*arguments)
        assert refused.returncode == 2
        assert refused.stderr.startswith("rewardshift: --import")


@dataclass(frozen=True)
class Unkept(outside.Linear):
    """With a setting that no file can hold."""

    how: Any = len


def test_what_could_not_be_restored_is_refused_before_training(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Local(outside.Linear):
        pass

    for agent, words in (
        (Local(), "at the top of a module"),
        (Unkept(), "numbers, texts"),
    ):
        with pytest.raises(InputError, match=words):
            train(agent, "CartPole-v1", budget=BUDGET, folder=tmp_path / "run")
        assert not (tmp_path / "run").exists()
        assert train(agent, "CartPole-v1", budget=BUDGET).finished  # in memory all is well


@dataclass(frozen=True)
class Empty:
    """A part with no function but those that it is given."""


def changed(kind: type[Any] = outside.Linear, **functions: Any) -> Any:
    """A part with other functions."""
    return type("Broken", (kind,), functions)()


def wide(self: Any, state: Any, *_: Any) -> Any:
    return state._replace(weights=state.weights.astype("int32")), {}


def one_output(self: Any, *given: Any) -> Any:
    return outside.Fourier.apply(self, *given)[..., :1]


def choosing(**functions: Any) -> DQN:
    """An agent with a selection of these functions."""
    return DQN(shift=(0.0, 1.0), selection=changed(Empty, **functions))


def column(_: Any, state: Any, observation: Any) -> Any:
    """An axis too many, which would spread over the whole batch."""
    return jnp.zeros((*observation.shape[:-1], 1))


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (-0.5, "must return a Shift of one bias and one scale, got -0.5"),
        (Shift(jnp.ones(2)), r"one bias and one scale, got Shift"),
    ],
)
def test_a_rule_that_returns_no_shift_is_refused(returned: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        DQN(shift=changed(Auto, shift_at=lambda *_: returned))


def test_an_agent_that_does_not_explore_learns_from_data_only() -> None:
    with pytest.raises(InputError, match="Broken learns from a data set, not from CartPole-v1"):
        train(changed(act=Agent.act), "CartPole-v1", budget=BUDGET)


def test_what_is_no_agent_is_refused() -> None:
    for wrong in (outside.Linear, outside.Alternating(), "dqn", None):
        with as_installed(), pytest.raises(InputError, match="agent must be an Agent"):
            train(wrong, "CartPole-v1", budget=BUDGET)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (changed(networks=("biases",)), r"networks of Broken must name fields .* weights, got"),
        (changed(networks=()), "greedy fails on the fields of the state that networks names"),
        (changed(init=lambda *_: {"weights": 0}), "of its state, a NamedTuple with the fields"),
        (changed(act=lambda *_: jnp.zeros(1, int)), r"act must return a whole number, got int32"),
        (changed(greedy=lambda *_: jnp.zeros(())), "greedy must return a whole number, got float"),
        (changed(update=lambda _, state, *__: state), "must return the new state and a dict of"),
        (changed(__hash__=lambda _: hash([])), "must be frozen dataclasses"),
        (changed(update=wide), r"\.weights was float32\(2, 4\), is int32\(2, 4\)"),
        (
            DQN(network=changed(outside.Fourier, apply=one_output)),
            r"must have the shape \(1, 1, 2\), got \(1, 1, 1\)",
        ),
        (choosing(draw=lambda *given: 0.5 * given[-1]), r"was int32\(\), is float32"),
        (changed(draws=lambda *_: None), "draws of Broken must be a whole number of 0 or more"),
        (choosing(draw=lambda *_: jnp.int32(2)), r"must return a member, from 0 to 1, got \[2"),
        (choosing(draw=lambda *_: None), r"return a member, .* got \[None"),
        (
            choosing(weights=lambda _, shifts: shifts / 0 * 0),
            "finite numbers, got .*nan",
        ),
        (choosing(weights=lambda *_: jnp.ones(3)), "one number for each of 2 members"),
        (
            DQN(intrinsic=changed(outside.Fading, bonus=column)),
            r"here the shape \(64,\), got \(64, 1\)",
        ),
    ],
)
def test_a_part_that_breaks_its_contract_is_refused_before_training(agent: Any, words: str) -> None:
    with as_installed(), pytest.raises(InputError, match=words):
        train(agent, "CartPole-v1", budget=BUDGET)


def test_a_class_is_no_part() -> None:
    with pytest.raises(
        InputError, match=r"selection must be .*, got <class 'outside.Alternating'>"
    ):
        DQN(shift=(0.0, 1.0), selection=outside.Alternating)  # type: ignore[arg-type]


def test_a_bonus_says_when_it_is_computed() -> None:
    class Late(outside.Fading):
        evaluated: ClassVar[Any] = "later"

    with pytest.raises(InputError, match="must be 'fresh' or 'stored', got 'later'"):
        DQN(intrinsic=Late())
