"""The shift that chooses itself, in agents, wrappers and on the command line."""

import json
import random
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fuzzing import as_installed, refused
from hypothesis import given
from outside import Centred
from stable_baselines3.common.monitor import Monitor

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
    suggest_shift,
    train,
)
from rewardshift.agents.base import Batch
from rewardshift.cli import main
from rewardshift.envs import SPARSE_CHEETAH
from rewardshift.envs.goals import BitFlip
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import ForeignError

WRONG: Any = "car"
MOVING: Any = Centred()
TINY: dict[str, Any] = {"network": MLP((4,)), "batch_size": 4}
BUDGET = OnlineBudget(steps=60, evaluate_every=20, evaluation_episodes=1, checkpoint_every=20)


class Paying(gym.Env[np.ndarray, Any]):
    """Pays the given rewards, one a step; an episode ends after all of them.

    Its observation is a random number.
    """

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, paid: tuple[float, ...] = (0.0, -4.0, 8.0, 0.0)) -> None:
        self.paid, self.time = paid, 0

    def _observation(self) -> np.ndarray:
        return self.np_random.random(2).astype(np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.time = 0
        return self._observation(), {}

    def step(self, action: Any) -> Any:
        reward = self.paid[self.time]
        self.time += 1
        return self._observation(), reward, self.time == len(self.paid), False, {}


gym.register("rewardshift-tests/Paying-v0", f"{__name__}:Paying")


@pytest.mark.parametrize(
    ("paid", "ended", "shift"),
    [
        ((0.0, 4.0), (False, True), (-2.5, 0.25)),  # once
        ((0.0, 0.5), (False, True), (-2.5, 1.0)),  # once, below the least unit
        ((4.0, 9.0), (False, True), (-0.5, 0.25)),  # at every step
        ((0.25, 9.0), (False, True), (-0.125, 1.0)),  # at every step, below the least unit
        ((0.0, -1.0), (False, True), (-2.5, 1.0)),  # nothing yet
        ((-1.0, -1.0, 0.0), (False, False, True), (0.0, 1.0)),  # every step costs
        ((-1.0, 4.0), (False, True), (-2.5, 0.25)),  # costs on the way to a goal
    ],
)
def test_the_first_positive_reward_decides(paid: Any, ended: Any, shift: Any) -> None:
    bias, scale = shift
    assert Auto().shift(paid, ended, 0.5) == Shift(bias, scale, 0.5, "goal")


REWARDS = st.floats(-1e6, 1e6).filter(lambda reward: reward == 0 or abs(reward) > 1e-6)


@given(st.lists(st.tuples(REWARDS, st.booleans()), min_size=1, max_size=20))
def test_a_rule_that_follows_the_rewards_comes_to_the_shift_of_all(steps: Any) -> None:
    rule, state = Auto(2.0), Auto(2.0).start()
    for reward, ended in steps:
        state = rule.observe(state, reward, ended, 0.9)
    followed = rule.shift_at(state, 0.9)
    rewards, ends = zip(*steps, strict=True)
    assert followed == rule.shift(rewards, ends, 0.9)


@given(st.floats(1e-3, 1e3), st.floats(0.5, 0.999))
def test_what_every_step_pays_still_pays_after_the_shift(reward: float, gamma: float) -> None:
    """So no agent is taught to end its episode, whatever the end pays."""
    shift = Auto().shift([reward], [False], gamma)
    longer = [shift.reward(reward) * (1 - gamma**n) / (1 - gamma) for n in (1, 10, 100)]
    assert shift.reward(reward) > 0
    assert longer == sorted(longer)


def test_an_agent_with_a_shift_that_it_chose_does_not_learn_to_fall() -> None:
    """A fall in CartPole pays 1, so `terminal="goal"` takes it for a goal."""
    agent = DQN(shift="auto", network=MLP((64,)), learning_rate=1e-3, batch_size=64)
    budget = OnlineBudget(steps=6_000, evaluate_every=6_000, evaluation_episodes=5)
    trained = train(agent, "CartPole-v1", budget=budget)
    assert trained.policy().shifts[0].bias == -0.5
    assert trained.rows[-1].evaluation_return > 60  # a random policy has 22, the fastest fall 9


def test_a_wrapper_decides_before_the_first_step() -> None:
    env = ShiftReward(Paying(), "auto", gamma=0.5)
    assert env.shift == Shift(-0.5, 0.125, 0.5, "goal")
    env.reset(seed=0)
    assert [env.step(0)[1] for _ in range(3)] == [-0.5, -1.0, 0.5]
    with pytest.raises(InputError, match="shifted already"):
        ShiftReward(env, -0.5)


def test_the_environment_stays_untouched(tmp_path: Path) -> None:
    """Its random numbers, and what its wrappers record."""
    plain, shifted = Paying(), Monitor(Paying(), str(tmp_path / "log"))
    for env in (plain, shifted):
        env.reset(seed=7)
    log = (tmp_path / "log.monitor.csv").read_bytes()
    wrapped = ShiftReward(shifted, "auto", gamma=0.5)
    assert (tmp_path / "log.monitor.csv").read_bytes() == log
    for _ in range(3):
        np.testing.assert_array_equal(plain.step(0)[0], wrapped.step(0)[0])
    wrapped.close()


class Chance(Paying):
    """Pays what the global random numbers tell."""

    def step(self, action: Any) -> Any:
        chance = np.random.random() + random.random()  # noqa: NPY002
        return self._observation(), chance, False, False, {}


def test_random_numbers_that_environments_share_stay_untouched() -> None:
    """Those of Python and NumPy, and of an action space that belongs to the class."""

    def drawn() -> tuple[float, ...]:
        actions = Chance.action_space.sample()
        return float(actions), random.random(), float(np.random.random())  # noqa: NPY002

    def seeded(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
        Chance.action_space = gym.spaces.Discrete(1_000_000, seed=3)
        random.seed(3)
        np.random.seed(3)  # noqa: NPY002
        return env

    seeded(Chance())
    expected = drawn()
    first = ShiftReward(seeded(Chance()), "auto", gamma=0.5)
    assert drawn() == expected
    assert ShiftReward(Chance(), "auto", gamma=0.5).shift == first.shift


class Timed(gym.Wrapper[Any, Any, Any, Any]):
    """Pays the time of the environment, which it has at hand."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.inside: Any = env.unwrapped

    def step(self, action: Any) -> Any:
        observation, _, *rest = self.env.step(action)
        return observation, 2.0 * self.inside.time, *rest


def test_a_wrapper_in_the_copy_has_the_environment_of_the_copy() -> None:
    for env in (Paying(), Monitor(Paying())):
        assert ShiftReward(Timed(Timed(env)), "auto", gamma=0.5).shift.scale == 1 / 2


class Stuck(Paying):
    """An environment that does not close."""

    def close(self) -> None:
        raise RuntimeError("stuck")


def test_an_environment_that_does_not_close_is_named() -> None:
    for look in (lambda: ShiftReward(Stuck(), "auto", gamma=0.5), lambda: suggest_shift(Stuck)):
        with pytest.raises(ForeignError, match=r"Stuck.* failed.* stuck"):
            look()


def test_a_spec_keeps_what_was_chosen() -> None:
    env = ShiftReward(gym.make("rewardshift-tests/Paying-v0"), Auto(2.0, "absorbing"), gamma=0.5)
    assert env.spec is not None
    made = gym.make(type(env.spec).from_json(env.spec.to_json()))
    assert made.get_wrapper_attr("shift") == env.shift == Shift(-0.2, 0.125, 0.5, "absorbing")


class Tripled(gym.wrappers.vector.TransformReward):
    """A wrapper around a vector that changes rewards."""

    def __init__(self, env: Any) -> None:
        super().__init__(env, lambda reward: 3 * reward)


@pytest.mark.parametrize("how", ["sync", "async"])
def test_every_kind_of_vector_takes_the_shift_of_one_environment(how: Any) -> None:
    one = ShiftReward(gym.make("CartPole-v1", sutton_barto_reward=True), "auto", gamma=0.9)
    spawned = {"vector_kwargs": {"context": "spawn"}} if how == "async" else {}  # JAX has threads
    given: dict[str, Any] = {"num_envs": 2, "sutton_barto_reward": True, **spawned}
    envs = gym.make_vec("CartPole-v1", vectorization_mode=how, **given)
    assert VectorShiftReward(envs, "auto", gamma=0.9).shift == one.shift
    recorded = gym.wrappers.vector.RecordEpisodeStatistics(envs)
    assert VectorShiftReward(recorded, "auto", gamma=0.9).shift == one.shift
    with pytest.raises(InputError, match=r"suggest_shift\(make_env, gamma\)\.shift"):
        VectorShiftReward(Tripled(envs), "auto", gamma=0.9)
    envs.close()


def test_a_vector_without_environments_takes_a_number() -> None:
    envs = gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode="vector_entry_point")
    assert VectorShiftReward(envs, -0.5).shift.bias == -0.5
    with pytest.raises(InputError, match="suggest_shift"):
        VectorShiftReward(envs, "auto", gamma=0.9)
    envs.close()


def test_environments_of_a_vector_choose_the_same() -> None:
    envs = gym.vector.SyncVectorEnv(
        [lambda: ShiftReward(gym.make("FrozenLake-v1"), "auto", gamma=0.5)] * 2
    )
    first, second = (env.get_wrapper_attr("shift") for env in envs.envs)
    assert first == second == Shift(-2.5, 1.0, 0.5, "goal")


class Locked(Paying):
    """An environment that cannot be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


def test_an_environment_that_cannot_be_copied_needs_a_number() -> None:
    with pytest.raises(InputError, match=r"cannot be copied.*make_env, gamma\)\.shift"):
        ShiftReward(Locked(), "auto", gamma=0.5)
    shift = suggest_shift(Locked, 0.5).shift
    assert ShiftReward(Locked(), shift).shift == Shift(-0.5, 0.125, 0.5, "goal")


@pytest.mark.parametrize("paid", [float("nan"), float("inf")])
def test_a_reward_that_is_no_number_is_refused(paid: float) -> None:
    with pytest.raises(InputError, match=f"needs finite rewards, .* paid {paid}"):
        ShiftReward(Paying((paid,)), "auto", gamma=0.5)


@pytest.mark.parametrize("paid", [(0.0,), (-1.0, -1.0), (1e30, 0.0), (1e-30, 0.0), (0.0, 3.0)])
def test_an_agent_learns_whatever_is_paid(paid: tuple[float, ...]) -> None:
    done = train(DQN(shift="auto", **TINY), lambda: Paying(paid), budget=BUDGET)
    assert done.finished
    ends = [time == len(paid) - 1 for time in range(len(paid))]
    expected = Auto().shift(paid, ends, 0.99)
    (shift,) = done.policy().shifts
    assert (shift.bias, shift.scale) == pytest.approx((expected.bias, expected.scale))
    assert done.rows[-1].metrics["reward_size"] == pytest.approx(max(0.0, *paid))
    assert done.rows[-1].metrics["reward_once"] == (paid[-1] > 0)


def test_an_agent_learns_with_the_state_of_its_rule() -> None:
    """The metrics are those of the last update, which follows the last reward."""
    budget = replace(BUDGET, checkpoint_every=60)  # a checkpoint would cut an episode
    episode = Paying().paid
    centred = train(DQN(shift=Centred(), **TINY), Paying, budget=budget)
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
    state = agent.adapt(state, jnp.float32(4.0), True)
    target = agent._target(state, batch, jnp.zeros(4))
    np.testing.assert_allclose(target, np.full((1, 4), 8.0 / 4.0 - 0.5))


@pytest.mark.parametrize("agent", [DQN, TD3, SAC])
def test_an_agent_with_auto_is_one_with_the_shift_that_it_chooses(agent: Any) -> None:
    """The environments pay before the first update, so the choice is there from the start."""
    env = "CartPole-v1" if agent is DQN else SPARSE_CHEETAH
    settings = TINY if agent is DQN else {**TINY, "warm_up": 30}
    chosen = train(agent(shift="auto", **settings), env, budget=BUDGET, seeds=(3,))
    (shift,) = chosen.policy().shifts
    assert (shift.bias, shift.scale) == (-0.5, 1.0)
    fixed = train(agent(shift=shift, **settings), env, budget=BUDGET, seeds=(3,))
    assert fixed.rows[-1].metrics["q"] == pytest.approx(chosen.rows[-1].metrics["q"], rel=1e-4)
    assert fixed.rows[-1].metrics["loss"] == pytest.approx(
        chosen.rows[-1].metrics["loss"], rel=1e-3
    )


def test_seeds_choose_apart() -> None:
    agent = SAC(shift=Auto(1.0), warm_up=10, **TINY)
    both = train(agent, "HalfCheetah-v5", budget=BUDGET, seeds=(1, 2))
    alone = train(agent, "HalfCheetah-v5", budget=BUDGET, seeds=(2,))
    sizes = {row.seed: row.metrics["reward_size"] for row in both.rows}
    assert sizes[1] != sizes[2]
    assert sizes[2] == alone.rows[-1].metrics["reward_size"]
    (shift,) = alone.policy().shifts
    assert shift.bias == pytest.approx(-0.1 * min(1.0, sizes[2]))


@pytest.mark.parametrize("rule", ["auto", Centred()])
def test_a_stopped_run_goes_on_as_if_it_had_not_stopped(rule: Any, tmp_path: Path) -> None:
    agent = TD3(shift=rule, warm_up=30, **TINY)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    train(agent, SPARSE_CHEETAH, budget=BUDGET, folder=whole)

    def stop(step: int, _: Any) -> None:
        if step == 50:
            raise KeyboardInterrupt

    assert not train(agent, SPARSE_CHEETAH, budget=BUDGET, folder=cut, on_progress=stop).finished
    assert resume(cut).finished
    for name in ("metrics.csv", "parameters.npz"):
        assert (whole / name).read_bytes() == (cut / name).read_bytes()
    assert load(cut).shifts == load(whole).shifts


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: DQN(shift=WRONG), "'auto'"),
        (lambda: DQN(shift="auto", n_step=3), "needs n_step=1"),
        (lambda: DQN(shift="auto", reward_range=(0.0, 1.0)), "no reward_range"),
        (lambda: DQN(shift="auto", intrinsic=RND()), "intrinsic"),
        (lambda: Auto(float("nan")), "optimism must be finite"),
        (lambda: ShiftReward(Paying(), "auto"), "needs the agent's discount"),
        (lambda: ShiftReward(Paying(), "auto", gamma=1.0), "gamma must be"),
        (lambda: ShiftReward(Paying(), -0.5, gamma=0.9), "gamma is for"),
        (lambda: ShiftReward(Paying(), MOVING, gamma=0.9), "here a rule is 'auto' or Auto"),
        (lambda: ShiftReward(Paying(), WRONG), "'auto'"),
    ],
)
def test_what_does_not_go_with_auto_is_refused(make: Any, words: str) -> None:
    with as_installed(), pytest.raises(InputError, match=words):
        make()


def test_the_command_line_takes_auto(tmp_path: Path) -> None:
    flags = ["--steps=40", "--evaluate-every=20", "--evaluation-episodes=1", "--batch-size=4"]
    for text, rule, kind in (
        ("auto", Auto(), "Auto"),
        ("auto(optimism=2)", Auto(2.0), "Auto"),
        ("outside:Centred", Centred(), "outside:Centred"),
    ):
        out = tmp_path / str(len(text))
        arguments = ["--env=CartPole-v1", f"--shift={text}", f"--out={out}"]
        assert main(["train", "dqn", *arguments, *flags]) == 0
        assert load(out).agent.shift == rule
        kept = json.loads((out / "config.json").read_text())["agent"]["shift"]
        assert kept["type"] == kind
    train_zero = ["train", "dqn", "--env=CartPole-v1", "--shift=auto", "--terminal=zero", *flags]
    assert main([*train_zero, f"--out={tmp_path / 'zero'}"]) == 0
    assert load(tmp_path / "zero").agent.shift == Auto(terminal="zero")
    for wrong, words in (("automatic", "auto"), ("auto(size=1)", "optimism")):
        assert words in refused("train", "dqn", "--env=CartPole-v1", f"--shift={wrong}", *flags)


def test_relabelled_rewards_are_shifted_like_the_others() -> None:
    """Bit flipping costs 1 in every step but at the goal, which random play does find."""
    env = ShiftReward(BitFlip(2), Auto(terminal="zero"), gamma=0.5)
    near, far = np.array([0, 1]), np.array([1, 1])
    assert env.compute_reward(near, far, {}) == env.shift.bias - 1
    assert env.compute_reward(near, near, {}) == env.shift.bias
