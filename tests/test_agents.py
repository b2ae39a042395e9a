"""What every agent that learns in an environment does: known values, members, refusals."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import test_dqn
import test_sac
import test_td3
from fuzzing import as_installed
from probes import Aim, Probe, delayed_value, ending, random_batch
from test_td3 import BIASES, BUDGET, KEY, assert_same, of_member

from rewardshift import DQN, MLP, RND, SAC, InputError, OnlineBudget, Shift, ddpg, train
from rewardshift.agents.selection import Optimistic

D, T, S = test_dqn.SMALL, test_td3.SMALL, test_sac.SMALL
terminals = pytest.mark.parametrize("terminal", ["zero", "absorbing"])


def task_of(agent: Any, *settings: Any, **more: Any) -> Any:
    return partial(Aim if agent.continuous else Probe, *settings, **more)


def learned(agent: Any, env: Any, observation: list[float]) -> np.ndarray:
    """Each member's value of the policy's action after training, or of a DQN's first action."""
    result = train(agent, env, seeds=1, budget=BUDGET)
    state = jax.tree.map(lambda leaf: leaf[0], result.state)
    seen = jnp.asarray([observation])
    action = agent.greedy(state, seen[0])[None] if agent.continuous else jnp.zeros(1, jnp.int32)
    return np.asarray(agent.values(state, seen, action))[:, 0]


def shift_of(bias: float, terminal: Any) -> Shift:
    return Shift(bias, gamma=0.5, terminal=terminal)


@terminals
@pytest.mark.parametrize(
    "agent",
    [D, T, replace(T, shift=0.5), replace(T, own_actors=True), S],
    ids=["DQN", "TD3", "one member", "own actors", "SAC"],
)
def test_one_step(agent: Any, terminal: Any) -> None:
    """SAC, too: no entropy is counted after a terminal state."""
    values = learned(ending(agent, terminal), task_of(agent), [1.0])
    expected = [shift_of(m.bias, terminal).reward(1.0, True) for m in agent.members]
    np.testing.assert_allclose(values, expected, atol=0.05)


@terminals
@pytest.mark.parametrize(
    "agent", [D, T, S, replace(S, temperature=0.0)], ids=["DQN", "TD3", "SAC", "SAC at 0"]
)
def test_its_truncated_twin_bootstraps(agent: Any, terminal: Any) -> None:
    """SAC has nothing but entropy to gain, so its policy becomes as uniform as it can be."""
    values = learned(ending(agent, terminal), task_of(agent, terminates=False), [1.0])
    entropy = 0.5 * (agent.temperature or 0.0) * np.log(2) if isinstance(agent, SAC) else 0.0
    tolerance = 0.15 if agent.continuous else 0.1
    np.testing.assert_allclose(values, [(1 + b + entropy) / 0.5 for b in BIASES], atol=tolerance)


@terminals
@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("agent", [D, T, S], ids=["DQN", "TD3", "SAC"])
def test_a_delay_of_two_steps(agent: Any, terminal: Any, n_step: int) -> None:
    """With three steps a target reaches the end, and no entropy is left to count."""
    several = replace(ending(agent, terminal), n_step=n_step)
    first = learned(several, task_of(agent, 3), [1.0, 0.0, 0.0])
    entropy = 0.5 * np.log(2) if isinstance(agent, SAC) and n_step == 1 else 0.0
    expected = [delayed_value(shift_of(bias, terminal), 2, entropy) for bias in BIASES]
    np.testing.assert_allclose(first, expected, atol=0.1)


@pytest.mark.parametrize(
    "agent",
    [
        T,
        replace(T, own_actors=True),
        replace(T, selection=Optimistic(0.3)),
        ddpg(gamma=0.5, learning_rate=3e-3, batch_size=16, tau=0.05),
        replace(S, temperature=0.1),
        replace(S, temperature=None),
        replace(S, temperature=0.1, selection=Optimistic(0.3)),
    ],
    ids=["TD3", "bootstrapped", "TD3 mixed", "DDPG", "SAC", "SAC tuned", "SAC mixed"],
)
def test_the_policy_finds_the_best_action_within_odd_bounds(agent: Any) -> None:
    """1.5 of [-1, 3], which is 0.25 of [-1, 1]."""
    agent = replace(agent, warm_up=300, network=MLP((32, 32)))
    result = train(agent, partial(Aim, goal=1.5), seeds=2, budget=BUDGET)
    assert min(row.evaluation_return for row in result.rows) > 0.9  # 0.75 in the middle, -5 at -1


def member_alone(state: Any, k: int) -> Any:
    """The state of an agent with one member, which was the k-th of several."""
    names = {"online", "target", "critics", "target_critics", "biases"} & set(state._fields)
    parts = {name: of_member(getattr(state, name), k) for name in names}
    zeros = jnp.zeros(1)
    lead = state.lead._replace(leader=jnp.zeros((), jnp.int32), last_return=zeros, progress=zeros)
    return state._replace(**parts, lead=lead)


@pytest.mark.parametrize("k", [0, 1, 2])
@pytest.mark.parametrize(
    "agent",
    [D, replace(D, normalise=True), T, S, replace(S, temperature=None)],
    ids=["DQN", "DQN normalised", "TD3", "SAC", "SAC tuned"],
)
def test_a_member_is_a_single_agent_with_its_bias(agent: Any, k: int) -> None:
    """The same batches, and the same policy: the one that follows this member."""
    case = test_td3 if agent.continuous else test_dqn
    together = agent.init(KEY, case.SPEC)
    for observation in random_batch(9).observation:
        together, _ = agent.observe(together, observation)
    led = together.lead._replace(leader=jnp.asarray(k, jnp.int32))
    single, together = member_alone(together, k), together._replace(lead=led)
    alone = replace(agent, shift=BIASES[k])
    for i in range(6):
        batch = random_batch(i, actions=2 if agent.continuous else 0)
        given = (batch, jax.random.fold_in(KEY, i), i % agent.period)
        together, _ = agent.update(together, *given)
        single, _ = alone.update(single, *given)
    lead = single.lead  # beside which nothing differs
    assert_same(member_alone(together, k)._replace(lead=lead), single)


@pytest.mark.parametrize(
    ("agent", "changes", "match"),
    [
        *[
            (agent, changes, match)
            for agent in (D, T, S)
            for changes, match in (
                ({"shift": ()}, "at least one number"),
                ({"shift": (float("nan"),)}, "bias must be finite.* got nan"),
                ({"shift": Shift(1.0, gamma=0.9)}, "gamma=0.5, or left out, got 0.9"),
                ({"shift": (1.0, Shift(1.0, terminal="absorbing"))}, "agree in terminal"),
                ({"gamma": 1.0}, r"gamma must be in \[0, 1\), got 1.0"),
                ({"tau": 0.0}, r"tau must be in \(0, 1\], got 0.0"),
                ({"learning_rate": -1.0}, "learning_rate must be finite and above 0"),
                ({"n_step": 0}, "n_step must be a whole number of 1 or more, below 2.31, got 0"),
                ({"initial": "one"}, "initial must be 'random' or 'zero', got 'one'"),
                ({"network": (16, 16)}, r"network must be a Network, got \(16, 16\)"),
            )
        ],
        (D, {"n_step": 2, "intrinsic": RND()}, "n_step=1"),
        (T, {"noise": float("nan")}, "noise must be finite and 0 or more, got nan"),
        (T, {"own_actors": True, "selection": Optimistic()}, "chooses one member"),
        (S, {"temperature": -0.1}, "temperature must be finite and 0 or more or None, got -0.1"),
        (S, {"target_entropy": -1.0}, r"got temperature=0\.5 and target_entropy=-1\.0"),
        (S, {"reward_range": (-1.0, 0.0)}, r"needs temperature=0.*got temperature=0\.5"),
    ],
)
def test_bad_settings_are_refused(agent: Any, changes: dict[str, Any], match: str) -> None:
    with as_installed(), pytest.raises(InputError, match=match):
        replace(agent, **changes)


@pytest.mark.parametrize("agent", [T, S], ids=["TD3", "SAC"])
def test_nothing_is_learned_in_the_warm_up(agent: Any) -> None:
    budget = OnlineBudget(steps=100, evaluate_every=50, evaluation_episodes=1)
    first, last = train(agent, partial(Aim, 3), budget=budget).rows
    assert first.metrics == {}
    assert last.metrics.keys() >= {"loss", "q"}
    with pytest.raises(InputError, match="the warm-up is 100 steps, the whole training 100"):
        train(replace(agent, warm_up=100), Aim, budget=budget)
    with pytest.raises(InputError, match=f"{type(agent).__name__} needs continuous actions"):
        train(agent, "MountainCar-v0", budget=budget)
    with pytest.raises(InputError, match="DQN needs discrete actions"):
        train(DQN(), Aim, budget=budget)
