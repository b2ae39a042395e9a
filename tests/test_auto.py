"""The shift that chooses itself, in agents, wrappers and on the command line."""

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fuzzing import as_installed
from hypothesis import given
from hypothesis import strategies as st

from rewardshift import (
    DQN,
    MLP,
    RND,
    SAC,
    TD3,
    Auto,
    InputError,
    OnlineBudget,
    Shift,
    ShiftReward,
    VectorShiftReward,
    load,
    resume,
    train,
    train_offline,
)
from rewardshift.cli import main

WRONG: Any = "car"
TINY: dict[str, Any] = {"network": MLP((4,)), "batch_size": 4}
BUDGET = OnlineBudget(steps=60, evaluate_every=20, evaluation_episodes=1, checkpoint_every=20)
rewards = st.floats(-1e6, 1e6).filter(lambda reward: reward == 0 or abs(reward) > 1e-6)


class Paying(gym.Env[np.ndarray, Any]):
    """Pays the given rewards, one a step; an episode lasts ten steps."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, paid: tuple[float, ...] = (0.0, 0.0, -4.0, 1.0)) -> None:
        self.paid, self.time = paid, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        reward = self.paid[self.time % len(self.paid)]
        self.time += 1
        return np.zeros(2, np.float32), reward, self.time == 10, False, {}


gym.register("rewardshift-tests/Paying-v0", f"{__name__}:Paying")


@given(st.lists(rewards, max_size=8), st.floats(0.0, 0.99))
def test_the_first_reward_decides_and_no_other(seen: list[float], gamma: float) -> None:
    rule, size, several = Auto(), 0.0, jnp.zeros(3)
    for reward in seen:
        size = rule.see(size, reward)
        several = rule.see(several, jnp.asarray([0.0, reward, reward], jnp.float32))
    first = next((abs(reward) for reward in seen if reward), 0.0)
    assert size == first
    np.testing.assert_allclose(several, [0.0, first, first], rtol=1e-6)
    (shift,) = rule.shifts(size, gamma)
    assert shift == Shift(gamma - 1, 1 / first if first else 1.0, gamma, "goal")
    # A zero-initialised value stands for one such reward.
    assert shift.initial_value == pytest.approx(first or 1.0)


@given(rewards, st.floats(0.1, 10.0))
def test_a_unit_has_a_least_size(first: float, least: float) -> None:
    rule = Auto(least=least)
    (shift,) = rule.shifts(rule.see(0.0, first), 0.5)
    assert shift.initial_value == pytest.approx(max(abs(first), least))
    (several,) = rule.shifts(rule.see(jnp.zeros(2), jnp.asarray([0.0, first], jnp.float32)), 0.5)
    np.testing.assert_allclose(several.scale, [1 / least, shift.scale], rtol=1e-6)


@given(st.lists(st.just(0.0), max_size=5), rewards.filter(bool), st.booleans())
def test_what_came_before_the_choice_needs_no_other_shift(
    zeros: list[float], first: float, terminated: bool
) -> None:
    rule = Auto()
    (before,), (after,) = (rule.shifts(size, 0.9) for size in (0.0, abs(first)))
    for reward in zeros:
        assert before.reward(reward, terminated) == after.reward(reward, terminated)


def test_a_goal_ends_the_shift_and_a_fall_does_not() -> None:
    for bias in (-0.5, 0.5):
        zero, absorbing, goal = (
            Shift(bias, 2.0, 0.9, terminal) for terminal in ("zero", "absorbing", "goal")
        )
        for kind in (float, np.float32, jnp.float32):
            for reward, same in ((kind(3), zero), (kind(0), absorbing), (kind(-3), absorbing)):
                assert goal.reward(reward, True) == same.reward(reward, True)
                assert goal.reward(reward, False) == zero.reward(reward)
        paid, ended = np.array([3.0, 0.0, -1.0, 3.0]), np.array([True, True, True, False])
        credited = np.array([False, True, True, False])
        expected = np.where(credited, absorbing.reward(paid, ended), zero.reward(paid))
        assert goal.reward(paid, ended).tolist() == expected.tolist()
    with pytest.raises(InputError, match="no multi-step return"):
        goal.multistep_return(1.0, 2)
    with pytest.raises(InputError, match="needs the discount"):
        ShiftReward(Paying(), Shift(-0.5, terminal="goal"))


def test_a_wrapper_chooses_once() -> None:
    env = ShiftReward(Paying(), "auto", gamma=0.5)
    env.reset(seed=0)
    assert env.shift == Shift(-0.5, 1.0, 0.5, "goal")
    told = [float(env.step(0)[1]) for _ in range(4)]
    assert told == [-0.5, -0.5, -1.5, -0.25]
    assert env.shift == Shift(-0.5, 0.25, 0.5, "goal")
    with pytest.raises(InputError, match="shifted already"):
        ShiftReward(env, -0.5)


def test_a_spec_makes_the_wrapper_again() -> None:
    for shift in ("auto", Auto(2.0, "absorbing")):
        env = ShiftReward(gym.make("rewardshift-tests/Paying-v0"), shift, gamma=0.5)
        assert env.spec is not None
        made = gym.make(type(env.spec).from_json(env.spec.to_json()))
        made.reset(seed=0)
        assert made.get_wrapper_attr("shift") == env.shift
        assert [made.step(0)[1] for _ in range(4)][2] == pytest.approx(env.shift.bias - 1)


def test_a_vector_chooses_one_shift_for_all_rows() -> None:
    def make(paid: tuple[float, ...]) -> Any:
        return lambda: Paying(paid)

    rows = [make((0.0, 0.0, 3.0)), make((0.0, -2.0, 5.0))]
    envs = VectorShiftReward(gym.vector.SyncVectorEnv(rows), "auto", gamma=0.5)
    envs.reset(seed=0)
    told = [envs.step(np.zeros(2, int))[1].tolist() for _ in range(3)]
    assert told == [[-0.5, -0.5], [-0.5, -1.5], [1.0, 2.0]]


@pytest.mark.parametrize("paid", [float("nan"), float("inf")])
def test_a_reward_that_is_no_number_is_refused(paid: float) -> None:
    env = ShiftReward(Paying((paid,)), "auto", gamma=0.5)
    env.reset(seed=0)
    with pytest.raises(InputError, match="needs finite rewards"):
        env.step(0)


@pytest.mark.parametrize("paid", [(0.0,), (-1.0,), (1e30,), (1e-30, 0.0)])
def test_an_agent_learns_whatever_is_paid(paid: tuple[float, ...]) -> None:
    done = train(DQN(shift="auto", **TINY), lambda: Paying(paid), budget=BUDGET)
    assert done.finished
    size = done.rows[-1].metrics["reward_size"]
    assert size == pytest.approx(abs(paid[0]))
    assert done.policy().shifts[0].scale == pytest.approx(1 / (abs(paid[0]) or 1.0))


@pytest.mark.parametrize("agent", [DQN, TD3, SAC])
def test_an_agent_with_auto_is_one_with_the_shift_that_it_chooses(agent: Any) -> None:
    """Pendulum and CartPole pay at the first step, so the choice is there from the start."""
    env = "CartPole-v1" if agent is DQN else "Pendulum-v1"
    settings = TINY if agent is DQN else {**TINY, "warm_up": 10}
    chosen = train(agent(shift="auto", **settings), env, budget=BUDGET, seeds=(3,))
    (shift,) = chosen.policy().shifts
    assert shift.scale == pytest.approx(1 / chosen.rows[-1].metrics["reward_size"])
    fixed = train(agent(shift=shift, **settings), env, budget=BUDGET, seeds=(3,))
    assert fixed.rows[-1].metrics["q"] == pytest.approx(chosen.rows[-1].metrics["q"], rel=1e-4)
    assert fixed.rows[-1].metrics["loss"] == pytest.approx(
        chosen.rows[-1].metrics["loss"], rel=1e-3
    )


def test_seeds_choose_apart() -> None:
    agent = SAC(shift=Auto((0.0, 1.0)), warm_up=10, **TINY)
    both = train(agent, "Pendulum-v1", budget=BUDGET, seeds=(1, 2))
    alone = train(agent, "Pendulum-v1", budget=BUDGET, seeds=(2,))
    sizes = {row.seed: row.metrics["reward_size"] for row in both.rows}
    assert sizes[1] != sizes[2]
    assert sizes[2] == alone.rows[-1].metrics["reward_size"]
    low, high = alone.policy().shifts
    assert (low.bias, high.bias) == (0.0, pytest.approx(-0.01))


def test_a_stopped_run_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    agent = TD3(shift="auto", warm_up=30, **TINY)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    train(agent, "Pendulum-v1", budget=BUDGET, folder=whole)

    def stop(step: int, _: Any) -> None:
        if step == 50:
            raise KeyboardInterrupt

    assert not train(agent, "Pendulum-v1", budget=BUDGET, folder=cut, on_progress=stop).finished
    assert resume(cut).finished
    for name in ("metrics.csv", "parameters.npz"):
        assert (whole / name).read_bytes() == (cut / name).read_bytes()
    assert load(cut).shifts == load(whole).shifts
    policy = tmp_path / "policy.npz"
    load(cut).save(policy)
    assert load(policy).shifts == load(whole).shifts


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: DQN(shift=WRONG), "'auto'"),
        (lambda: DQN(shift="auto", n_step=3), "needs n_step=1"),
        (lambda: DQN(shift="auto", reward_range=(0.0, 1.0)), "no reward_range"),
        (lambda: DQN(shift="auto", intrinsic=RND()), "intrinsic"),
        (lambda: Auto(()), "at least one number"),
        (lambda: Auto(float("nan")), "optimism must be finite"),
        (lambda: ShiftReward(Paying(), "auto"), "needs the agent's discount"),
        (lambda: ShiftReward(Paying(), "auto", gamma=1.0), "gamma must be"),
        (lambda: ShiftReward(Paying(), Auto((0.0, 1.0)), gamma=0.9), "one optimism"),
        (lambda: ShiftReward(Paying(), -0.5, gamma=0.9), "gamma is for"),
        (lambda: ShiftReward(Paying(), WRONG), "'auto'"),
    ],
)
def test_what_does_not_go_with_auto_is_refused(make: Any, words: str) -> None:
    with as_installed(), pytest.raises(InputError, match=words):
        make()


def test_fixed_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="on a data set shift must be a number"):
        train_offline(TD3(shift="auto"), "embedded/hopper-medium")


def test_the_command_line_takes_auto(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--steps=40", "--evaluate-every=20", "--evaluation-episodes=1", "--batch-size=4"]
    for text, rule in (("auto", Auto()), ("auto(optimism=(0, 1))", Auto((0.0, 1.0)))):
        out = tmp_path / str(len(text))
        arguments = ["--env=CartPole-v1", f"--shift={text}", f"--out={out}"]
        assert main(["train", "dqn", *arguments, *flags]) == 0
        assert load(out).agent.shift == rule  # type: ignore[attr-defined]
        assert json.loads((out / "config.json").read_text())["agent"]["shift"]["type"] == "Auto"
    for wrong, words in (("automatic", "auto"), ("auto(size=1)", "optimism")):
        assert main(["train", "dqn", "--env=CartPole-v1", f"--shift={wrong}", *flags]) == 2
        assert words in capsys.readouterr().err


def test_the_command_line_chooses_the_treatment_of_auto(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", "dqn", "--env=CartPole-v1", "--shift=auto", "--steps=20", "--batch-size=4"]
    few = ["--evaluate-every=20", "--evaluation-episodes=1", f"--out={tmp_path / 'run'}"]
    assert main([*command, *few, "--terminal=zero"]) == 0
    assert load(tmp_path / "run").agent.shift == Auto(terminal="zero")  # type: ignore[attr-defined]
    assert main([*command, "--scale=2"]) == 2
    assert "'auto' chooses the scale by itself, got --scale 2" in capsys.readouterr().err


def test_values_of_a_compiled_rule_follow_the_state() -> None:
    rule = Auto()

    @jax.jit
    def shifted(size: Any, reward: Any) -> Any:
        return rule.shifts(size, 0.5)[0].reward(reward, True)

    assert shifted(jnp.float32(0), jnp.float32(0)) == -1.0
    assert shifted(jnp.float32(4), jnp.float32(8)) == 1.5
