"""Training on fixed data: the optimum is found, caution is what is said of it, runs resume."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from data_makers import random_data
from probes import Aim, Probe

from rewardshift.agents.base import Agent
from rewardshift.agents.bcq import BCQ
from rewardshift.agents.cql import CQL
from rewardshift.agents.dqn import DQN
from rewardshift.agents.intrinsic import RND
from rewardshift.agents.networks import MLP
from rewardshift.agents.tabular import QLearning, Transition
from rewardshift.agents.td3 import TD3
from rewardshift.data.dataset import Dataset
from rewardshift.envs.tabular import TableSpec
from rewardshift.envs.tasks import probe_spec
from rewardshift.errors import InputError
from rewardshift.shift import Shift
from rewardshift.training import offline
from rewardshift.training.budgets import OfflineBudget, OnlineBudget
from rewardshift.training.metrics import unseen_actions
from rewardshift.training.runs import train, train_offline

AIM = partial(Aim, 2, goal=2.0)  # not the middle of [-1, 3], where an untrained policy is
SMALL: dict[str, Any] = {
    "network": MLP((16, 16)),
    "batch_size": 32,
    "tau": 0.02,
    "learning_rate": 3e-3,
}
BCQ_SMALL = BCQ(**SMALL, proposer=MLP((16,)), perturbation=0.5, acting_candidates=20)
CQL_SMALL = CQL(**SMALL, candidates=4, weight=0.5, policy_rate=3e-3, cloning_updates=10)
TINY = OfflineBudget(updates=12, evaluate_every=4, evaluation_episodes=2, checkpoint_every=6)


@pytest.fixture(scope="module")
def aims() -> Dataset:
    return random_data(AIM, 2000)


@pytest.mark.parametrize(
    "agent",
    [
        BCQ_SMALL,
        replace(BCQ_SMALL, shift=0.5),
        CQL_SMALL,
        replace(CQL_SMALL, threshold=5.0),
        TD3(**SMALL),
    ],
    ids=["bcq", "bcq shifted", "cql", "cql lagrange", "td3"],
)
def test_complete_data_give_the_best_continuous_policy(agent: Agent, aims: Dataset) -> None:
    budget = OfflineBudget(updates=1200, evaluate_every=1200, evaluation_episodes=4)
    result = train_offline(agent, aims, AIM, budget=budget)
    assert result.rows[-1].evaluation_return > 0.9  # the best is 1, an untrained policy's about 0


@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_complete_data_give_the_best_discrete_policy(bias: float) -> None:
    make = partial(Probe, 3, pays=(0.2, 1.0, 0.6))
    agent = DQN(shift=bias, network=MLP((32,)), batch_size=32, gamma=0.9)
    budget = OfflineBudget(updates=800, evaluate_every=800, evaluation_episodes=1)
    assert (
        train_offline(agent, random_data(make, 300), make, budget=budget).rows[-1].evaluation_return
        == 1.0
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_positive_shift_keeps_unseen_actions_below_the_seen_ones(seed: int) -> None:
    """The paper's mechanism, with a discrete head: action 2 is not in the data."""
    make = partial(Probe, 3, pays=(0.3, 0.6, 0.9), terminates=False)
    data = random_data(make, 600)
    seen = data.action < 2
    fields = ("observation", "action", "reward", "next_observation", "terminated", "truncated")
    data = replace(data, **{name: getattr(data, name)[seen] for name in fields})

    def gap(bias: float) -> float:
        """By how much the unseen action is below the worst of the seen ones, on average."""
        agent = DQN(shift=bias, network=MLP((32,)), batch_size=32, gamma=0.9)
        budget = OfflineBudget(updates=1000, evaluate_every=1000, evaluation_episodes=1)
        result = train_offline(agent, data, make, seeds=(seed,), budget=budget)
        state = jax.tree.map(lambda leaf: leaf[0], result.state)
        values = np.asarray(agent.values(state, jnp.eye(3)))[0]
        return float((values[:, :2].min(axis=1) - values[:, 2]).mean())

    assert gap(2.0) > 0 > gap(-2.0)


def test_a_positive_shift_keeps_unseen_actions_below_the_seen_ones_in_a_table() -> None:
    """What is not in the data keeps its zero; the seen ones go where the shift takes them."""
    for bias in (0.5, -0.5):
        agent = QLearning(Shift(bias, gamma=0.9))
        state = agent.init(jax.random.key(0), TableSpec(2, 3))
        update = jax.jit(partial(agent.update, key=jax.random.key(0)))
        for number in range(200):
            here, action = number % 2, number // 2 % 2  # action 2 is never taken
            values = (here, action, 0.1 * action, 1 - here, False, True)
            step = Transition(*(jnp.asarray(value) for value in values))
            state, _ = update(state, step)
        gap = np.asarray(state.q)[:, :2].min(axis=1) - np.asarray(state.q)[:, 2]
        assert (np.sign(gap) == np.sign(bias)).all()


def test_what_is_thought_of_the_data_is_told() -> None:
    """Of all rows, if they are few, with actions on the agent's scale."""
    data, agent = random_data(AIM, 300), replace(CQL_SMALL, shift=Shift(0.0, 2.0))
    result = train_offline(agent, data, AIM, budget=TINY)
    state, row = jax.tree.map(lambda leaf: leaf[0], result.state), result.rows[-1]
    unit = jnp.asarray((data.action - 1) / 2)  # Aim's actions are in [-1, 3]
    seen, unseen = (
        float(agent.values(state, jnp.asarray(data.observation), action).mean())
        for action in (unit, unseen_actions(unit.shape))
    )
    assert seen != unseen
    assert (row.q_seen, row.q_unseen) == pytest.approx((seen, unseen), rel=1e-4)
    assert row.unseen_advantage == pytest.approx((unseen - seen) / 2.0, abs=1e-5)


@pytest.mark.parametrize("terminal", ["zero", "absorbing"])
@pytest.mark.parametrize("agent", [BCQ_SMALL, CQL_SMALL], ids=["bcq", "cql"])
def test_the_return_that_followed_is_told_on_the_shifted_scale(
    agent: Any, terminal: Any, aims: Dataset
) -> None:
    agent = replace(agent, shift=Shift(0.7, 2.0, terminal=terminal), gamma=0.9)
    pays = partial(Aim, 2)  # 1 at the end, whatever is done
    row = train_offline(agent, aims, pays, budget=TINY).rows[-1]
    after = 0.9 * 0.7 / 0.1 if terminal == "absorbing" else 0.0
    assert row.shifted_return == pytest.approx(0.7 + 0.9 * (2.0 + 0.7 + after))
    assert row.overestimation == pytest.approx((row.estimate - row.shifted_return) / 2.0)


@pytest.mark.parametrize(("terminates", "value"), [(True, 0.5 + 0.9 * 1.5), (False, 14.0)])
def test_agents_come_to_estimate_what_follows(terminates: bool, value: float) -> None:
    """Beyond a time limit too: there the last state pays 1.5 for ever, which is worth 15."""
    make = partial(Aim, 2, terminates=terminates)
    agent = replace(BCQ_SMALL, shift=0.5, gamma=0.9)
    budget = OfflineBudget(updates=2000, evaluate_every=2000, evaluation_episodes=1)
    row = train_offline(agent, random_data(make, 500), make, budget=budget).rows[-1]
    assert row.estimate == pytest.approx(value, rel=0.05)
    assert row.shifted_return == pytest.approx(value, rel=0.05)
    if terminates:
        assert row.shifted_return == pytest.approx(value)


def test_all_of_the_data_is_learned_from(aims: Dataset) -> None:
    """The first half says that every action is as good, the second half which one is best."""
    reward = np.where(np.arange(len(aims)) < len(aims) // 2, 0.0, aims.reward)
    halves = replace(aims, reward=reward.astype(np.float32))
    budget = OfflineBudget(updates=1200, evaluate_every=1200, evaluation_episodes=4)
    assert train_offline(TD3(**SMALL), halves, AIM, budget=budget).rows[-1].evaluation_return > 0.9


def test_the_cut_into_calls_changes_nothing(aims: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train_offline(BCQ_SMALL, aims, AIM, budget=TINY)
    monkeypatch.setattr(offline, "LONGEST_CALL", 1)
    single = train_offline(BCQ_SMALL, aims, AIM, budget=TINY)
    assert whole.rows == single.rows


def test_seeds_together_and_alone_start_the_same(aims: Dataset) -> None:
    together = train_offline(CQL_SMALL, aims, AIM, seeds=2, budget=TINY)
    alone = train_offline(CQL_SMALL, aims, AIM, seeds=(1,), budget=TINY)
    assert together.rows[1].metrics == pytest.approx(alone.rows[0].metrics, rel=1e-4)


def test_a_run_does_not_go_on_with_other_data(aims: Dataset, tmp_path: Path) -> None:
    train_offline(BCQ_SMALL, aims, AIM, budget=TINY, folder=tmp_path / "run")
    other = replace(aims, reward=aims.reward + 1)
    with pytest.raises(InputError, match="another configuration"):
        train_offline(BCQ_SMALL, other, AIM, budget=TINY, folder=tmp_path / "run")


def test_what_does_not_fit_is_refused_before_any_work(aims: Dataset, tmp_path: Path) -> None:
    discrete = partial(Probe, 2, pays=(1.0, 0.0))
    run = partial(train_offline, budget=TINY, folder=tmp_path / "run")
    with pytest.raises(InputError, match="does not say its environment"):
        run(BCQ_SMALL, aims)
    with pytest.raises(InputError, match=r"observations of 2 numbers, .* of 3"):
        run(BCQ_SMALL, aims, partial(Aim, 3))
    with pytest.raises(InputError, match="BCQ needs continuous actions"):
        run(BCQ_SMALL, aims, discrete)
    with pytest.raises(InputError, match=r"actions beyond those of .*, 0 to 1"):
        run(DQN(), aims, discrete)
    with pytest.raises(InputError, match="actions of shape"):
        run(TD3(), replace(aims, action=np.zeros(len(aims), np.int32)), AIM)
    with pytest.raises(InputError, match="evaluate_every must be a multiple of 2"):
        run(TD3(), aims, AIM, budget=replace(TINY, evaluate_every=3))
    with pytest.raises(InputError, match="intrinsic"):
        run(DQN(intrinsic=RND()), random_data(discrete, 10), discrete)
    with pytest.raises(InputError, match="a selection that mixes members, got 2 shifts"):
        run(TD3(shift=(0.0, 1.0)), aims, AIM)
    far = replace(aims, action=np.where(np.arange(len(aims))[:, None] == 7, 4.0, aims.action))
    with pytest.raises(InputError, match=r"action out of the bounds of .* in row 7: \[4.\]"):
        run(BCQ_SMALL, far, AIM)
    with pytest.raises(InputError, match=r"seeds must be .* below 2\^31, got \(2147483648,\)"):
        run(BCQ_SMALL, aims, AIM, seeds=(2**31,))
    with pytest.raises(InputError, match="n_step must be 1, got 3"):
        run(TD3(n_step=3), aims, AIM)
    with pytest.raises(InputError, match="normalise works online only"):
        run(TD3(normalise=True), aims, AIM)
    with pytest.raises(InputError, match="CQL learns from a data set"):
        train(CQL_SMALL, AIM, budget=OnlineBudget(steps=10))
    with pytest.raises(InputError, match=r"updates must be a whole number of 1 or more, .* got 0"):
        OfflineBudget(updates=0)
    assert not (tmp_path / "run").exists()


def test_an_environment_that_rescales_actions_itself_is_taken_as_it_is() -> None:
    def own() -> gym.Env[Any, Any]:
        return gym.wrappers.RescaleAction(gym.make("Pendulum-v1"), np.float32(-1), np.float32(1))

    data = random_data(own, 30)
    np.testing.assert_array_equal(offline.as_batch(data, own, probe_spec(own)).action, data.action)
    wide = replace(data, action=2 * data.action)
    scaled = offline.as_batch(wide, "Pendulum-v1", probe_spec("Pendulum-v1"))
    np.testing.assert_allclose(scaled.action, data.action, rtol=1e-6, atol=1e-6)


def test_floats_are_not_taken_for_bytes() -> None:
    data = random_data(lambda: gym.make("CartPole-v1"), 5)
    wide = np.zeros((5, 147), np.float32)
    with pytest.raises(InputError, match="observations of float32"):
        offline.as_batch(
            replace(data, observation=wide, next_observation=wide),
            "MiniGrid-Empty-Random-6x6-v0",
            probe_spec("MiniGrid-Empty-Random-6x6-v0"),
        )
