"""The shift that chooses itself, in agents, wrappers and on the command line."""

import json
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fuzzing import as_installed
from outside import Centred

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
)
from rewardshift.agents.base import Batch
from rewardshift.cli import main
from rewardshift.envs.goals import BitFlip
from rewardshift.envs.tasks import TaskSpec

WRONG: Any = "car"
MOVING: Any = Centred()
FIRST = Auto(1.0, least=0.0)
TINY: dict[str, Any] = {"network": MLP((4,)), "batch_size": 4}
BUDGET = OnlineBudget(steps=60, evaluate_every=20, evaluation_episodes=1, checkpoint_every=20)


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


def test_a_wrapper_chooses_once() -> None:
    env = ShiftReward(Paying(), FIRST, gamma=0.5)
    env.reset(seed=0)
    assert env.shift == Shift(-0.5, 1.0, 0.5, "goal")
    told = [float(env.step(0)[1]) for _ in range(4)]
    assert told == [-0.5, -0.5, -1.5, -0.25]
    assert env.shift == Shift(-0.5, 0.25, 0.5, "goal")
    with pytest.raises(InputError, match="shifted already"):
        ShiftReward(env, -0.5)


def test_a_spec_makes_the_wrapper_again() -> None:
    for shift in ("auto", FIRST, Auto(2.0, "absorbing")):
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
    envs = VectorShiftReward(gym.vector.SyncVectorEnv(rows), FIRST, gamma=0.5)
    envs.reset(seed=0)
    told = [envs.step(np.zeros(2, int))[1].tolist() for _ in range(3)]
    assert told == [[-0.5, -0.5], [-0.5, -1.5], [1.0, 2.0]]


@pytest.mark.parametrize("gamma", ["0.9", 1.0])
def test_a_discount_that_is_none_is_refused(gamma: Any) -> None:
    with pytest.raises(InputError, match=r"gamma must be in \[0, 1\), got "):
        ShiftReward(Paying(), "auto", gamma=gamma)


@pytest.mark.parametrize("paid", [float("nan"), float("inf")])
def test_a_reward_that_is_no_number_is_refused(paid: float) -> None:
    env = ShiftReward(Paying((paid,)), "auto", gamma=0.5)
    env.reset(seed=0)
    with pytest.raises(InputError, match="needs finite rewards"):
        env.step(0)


@pytest.mark.parametrize("paid", [(0.0,), (-1.0,), (1e30,), (1e-30, 0.0)])
def test_an_agent_learns_whatever_is_paid(paid: tuple[float, ...]) -> None:
    done = train(DQN(shift=FIRST, **TINY), lambda: Paying(paid), budget=BUDGET)
    assert done.finished
    size = done.rows[-1].metrics["reward_size"]
    assert size == pytest.approx(abs(paid[0]))
    assert done.policy().shifts[0].scale == pytest.approx(1 / (abs(paid[0]) or 1.0))


def test_an_agent_learns_with_the_state_of_its_rule() -> None:
    """The metrics are those of the last update, which follows the last reward."""
    budget = replace(BUDGET, checkpoint_every=60)  # a checkpoint would cut an episode
    paid = Paying().paid
    centred = train(DQN(shift=Centred(), **TINY), Paying, budget=budget)
    episode = [paid[t % 4] for t in range(10)]
    assert centred.rows[-1].metrics["mean_reward"] == pytest.approx(np.mean(episode), rel=1e-5)
    (shift,) = centred.policy().shifts
    assert (shift.bias, shift.scale) == (pytest.approx(-np.mean(episode), rel=1e-5), 1.0)


def test_a_bonus_beside_the_rewards_does_not_stop_the_rule() -> None:
    """The shift of the targets follows the rule, with an intrinsic reward too."""
    agent = DQN(shift=Auto(1.0, "zero"), intrinsic=RND(width=4), gamma=0.5, **TINY)
    state = agent.init(jax.random.key(0), TaskSpec(features=2, dtype="float32", num_actions=2))
    batch = Batch(
        observation=jnp.zeros((4, 2)),
        action=jnp.zeros(4, jnp.int32),
        reward=jnp.full(4, 8.0),
        next_observation=jnp.zeros((4, 2)),
        terminated=jnp.ones(4, bool),
        intrinsic=jnp.zeros(4),
        steps=jnp.ones(4, jnp.int32),
    )
    state = agent.adapt(state, jnp.float32(4.0), ended=False)
    target = agent._target(state, batch, jnp.zeros(4))
    np.testing.assert_allclose(target, np.full((1, 4), 8.0 / 4.0 - 0.5))


@pytest.mark.parametrize("agent", [DQN, TD3, SAC])
def test_an_agent_with_auto_is_one_with_the_shift_that_it_chooses(agent: Any) -> None:
    """Pendulum and CartPole pay at the first step, so the choice is there from the start."""
    env = "CartPole-v1" if agent is DQN else "Pendulum-v1"
    settings = TINY if agent is DQN else {**TINY, "warm_up": 10}
    chosen = train(agent(shift=FIRST, **settings), env, budget=BUDGET, seeds=(3,))
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


@pytest.mark.parametrize("rule", ["auto", Auto((0.0, 1.0)), Centred()])
def test_a_stopped_run_goes_on_as_if_it_had_not_stopped(rule: Any, tmp_path: Path) -> None:
    agent = TD3(shift=rule, warm_up=30, **TINY)
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
        (lambda: ShiftReward(Paying(), MOVING, gamma=0.9), "needs a constant shift"),
        (lambda: ShiftReward(Paying(), WRONG), "'auto'"),
    ],
)
def test_what_does_not_go_with_auto_is_refused(make: Any, words: str) -> None:
    with as_installed(), pytest.raises(InputError, match=words):
        make()


def test_the_command_line_takes_auto(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--steps=40", "--evaluate-every=20", "--evaluation-episodes=1", "--batch-size=4"]
    for text, rule, kind in (
        ("auto", Auto(), "Auto"),
        ("auto(optimism=(0, 1))", Auto((0.0, 1.0)), "Auto"),
        ("outside:Centred", Centred(), "outside:Centred"),
    ):
        out = tmp_path / str(len(text))
        arguments = ["--env=CartPole-v1", f"--shift={text}", f"--out={out}"]
        assert main(["train", "dqn", *arguments, *flags]) == 0
        assert load(out).agent.shift == rule
        kept = json.loads((out / "config.json").read_text())["agent"]["shift"]
        assert kept["type"] == kind
    for wrong, words in (("automatic", "auto"), ("auto(size=1)", "optimism")):
        assert main(["train", "dqn", "--env=CartPole-v1", f"--shift={wrong}", *flags]) == 2
        assert words in capsys.readouterr().err


def test_the_command_line_chooses_the_treatment_of_auto(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", "dqn", "--env=CartPole-v1", "--shift=auto", "--steps=20", "--batch-size=4"]
    few = ["--evaluate-every=20", "--evaluation-episodes=1", f"--out={tmp_path / 'run'}"]
    assert main([*command, *few, "--terminal=zero"]) == 0
    assert load(tmp_path / "run").agent.shift == Auto(terminal="zero")
    assert main([*command, "--scale=2"]) == 2
    assert "'auto' has a scale of its own, got --scale 2" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::UserWarning")  # by which Gymnasium logs a worker's error
@pytest.mark.parametrize(
    "vectorise",
    [gym.vector.SyncVectorEnv, partial(gym.vector.AsyncVectorEnv, context="spawn")],
)
def test_environments_of_a_vector_do_not_choose_one_by_one(vectorise: Any) -> None:
    envs = vectorise([lambda: ShiftReward(gym.make("CartPole-v1"), "auto", gamma=0.5)] * 2)
    with pytest.raises(InputError, match="around the vector"):
        envs.reset(seed=0)
    envs.close()


def test_what_was_chosen_can_be_given_again() -> None:
    """As JSON, for a training that goes on in another process."""
    env = ShiftReward(Paying(), FIRST, gamma=0.5)
    env.reset(seed=0)
    for _ in range(4):
        env.step(0)
    again = ShiftReward(Paying((7.0,)), json.loads(json.dumps(asdict(env.shift))))
    again.reset(seed=0)
    assert again.step(0)[1] == 7.0 / 4 - 0.5


class Costly(BitFlip):
    """A goal costs nothing, every other step 4."""

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return 4.0 * super().compute_reward(achieved_goal, desired_goal, info)


def test_a_relabelled_reward_has_the_unit_of_the_others() -> None:
    """The first reward decides, whether it is paid or relabelled."""
    env = ShiftReward(Costly(2), Auto(1.0, "zero", least=0.0), gamma=0.5)
    near, far = np.array([0, 1]), np.array([1, 1])
    assert env.compute_reward(near, far, {}) == -1.5
    assert env.shift == Shift(-0.5, 0.25, 0.5, "zero")
