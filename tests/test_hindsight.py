"""Relabelling, against what may be read off episodes whose transitions are numbered."""

from functools import partial
from itertools import accumulate
from typing import Any

import gymnasium as gym
import gymnasium_robotics
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

from rewardshift import DQN, RND, TD3, Shift
from rewardshift.agents.base import Batch, Biases
from rewardshift.agents.targets import member_targets, value_range
from rewardshift.envs.goals import goal_reward
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import InputError
from rewardshift.training.hindsight import Hindsight, HindsightReplay
from rewardshift.training.replay import unpack

SPEC = TaskSpec(3, "float32", num_actions=2, goal_size=1)  # its number, achieved, desired
ORIGINAL = -7.0


def sparse(achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
    return -(achieved != desired).any(axis=1).astype(np.float32)


def numbered(
    lengths: list[int],
    capacity: int,
    hindsight: Hindsight,
    *,
    rows: int = 1,
    running: int = 0,
    paid: float = -1.0,
) -> HindsightReplay:
    """Episodes of these lengths, and some steps of one more; every transition achieves its number.

    The second row's episodes end a step later, but for the last; it achieves 1,000 more.
    """
    replay = HindsightReplay(rows, capacity, SPEC, hindsight=hindsight, reward=sparse)
    ends = set(accumulate(lengths))
    offset = 1000.0 * np.arange(rows)
    total = sum(lengths) if not running else 0
    for number in range(sum(lengths) + running):
        before = np.stack([offset + number, offset + number - 1, np.full(rows, ORIGINAL)], axis=1)
        after = np.stack([offset + number, offset + number, np.full(rows, ORIGINAL)], axis=1)
        replay.add(
            observation=before,
            next_observation=after,
            action=np.zeros(rows),
            reward=np.full(rows, paid),
            terminated=np.zeros(rows, bool),
            ended=np.array([number + 1 in ends, number in ends or number + 1 == total][:rows]),
        )
    return replay


def sampled(replay: HindsightReplay, count: int, seed: int = 0) -> Batch:
    rows = len(replay.records)
    draws = np.random.default_rng(seed).random((rows, 3 * count), np.float32)
    return jax.tree.map(np.asarray, jax.jit(partial(unpack, spec=SPEC))(replay.sample(draws)))


episodes = st.lists(st.integers(1, 6), min_size=1, max_size=8)


@settings(max_examples=60)
@given(episodes, st.integers(8, 30), st.integers(0, 5))
def test_goals_are_those_achieved_later_in_the_episode(
    lengths: list[int], capacity: int, running: int
) -> None:
    replay = numbered(lengths, capacity, Hindsight(ratio=1e9), rows=2, running=running)
    batch = sampled(replay, 200)
    for row in range(2):
        stops = [*(end + row for end in accumulate(lengths)), sum(lengths) + running]
        seen: dict[int, set[int]] = {}
        for observation in batch.observation[row] - 1000 * row:
            seen.setdefault(int(observation[0]), set()).add(int(observation[2]))
        for number, goals in seen.items():
            stop = min(stop for stop in stops if stop > number)
            assert goals <= set(range(number, stop)), (number, goals, stop)
    np.testing.assert_array_equal(batch.observation[..., 2], batch.next_observation[..., 2])


def test_every_goal_that_may_be_taken_is_taken() -> None:
    replay = numbered([3, 5], 8, Hindsight(ratio=1e9))
    batch = sampled(replay, 3000)
    pairs = {(int(o[0]), int(o[2])) for o in batch.observation[0]}
    expected = {(n, g) for n in range(3) for g in range(n, 3)}
    assert pairs == expected | {(n, g) for n in range(3, 8) for g in range(n, 8)}


def test_one_in_five_stays_as_it_was_and_none_without_a_ratio() -> None:
    batch = sampled(numbered([4, 4], 8, Hindsight()), 5000)
    assert (batch.observation[..., 2] == ORIGINAL).mean() == pytest.approx(0.2, abs=0.02)
    batch = sampled(numbered([4, 4], 8, Hindsight(ratio=0.0)), 100)
    assert (batch.observation[..., 2] == ORIGINAL).all()


def test_rewards_of_real_and_relabelled_transitions_are_computed_alike() -> None:
    batch = sampled(numbered([4, 4], 8, Hindsight()), 500)
    reached = batch.next_observation[..., 1] == batch.next_observation[..., 2]
    assert 0 < reached.mean() < 1
    np.testing.assert_array_equal(batch.reward, np.where(reached, 0.0, -1.0))
    assert not batch.terminated.any()


def test_success_ends_where_that_is_asked_for() -> None:
    replay = numbered([4, 4], 8, Hindsight(success_ends=True))
    replay.records["terminated"][0, 5] = 1  # some other end
    batch = sampled(replay, 500)
    np.testing.assert_array_equal(
        batch.terminated, (batch.reward == 0) | (batch.observation[..., 0] == 5)
    )


@settings(max_examples=30)
@given(episodes, st.integers(8, 20))
def test_what_is_restored_samples_the_same(lengths: list[int], capacity: int) -> None:
    replay = numbered(lengths, capacity, Hindsight(), rows=2)
    other = numbered([1], capacity, Hindsight(), rows=2)
    other.restore(replay.newest(replay.size), replay.added)
    for twin in (replay, other):  # and goes on the same
        fields = {name: replay.records[name][:, 0] for name in replay.records.dtype.names or ()}
        twin.add(**{name: fields[name].copy() for name in fields if name != "padding"})
    for ours, theirs in zip(sampled(replay, 50), sampled(other, 50), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_of_an_episode_longer_than_the_ring_what_is_kept_counts() -> None:
    batch = sampled(numbered([9], 6, Hindsight(ratio=1e9)), 200)
    number, goal = batch.observation[0, :, 0], batch.observation[0, :, 2]
    assert set(number) == set(goal) == {3, 4, 5, 6, 7, 8}
    assert (goal >= number).all()


def test_rewards_that_steps_did_not_pay_are_refused() -> None:
    sampled(numbered([9], 9, Hindsight(), paid=-1.00001), 500)
    with pytest.raises(InputError, match="says -1 where a step paid 9, and it disagreed in"):
        sampled(numbered([9], 9, Hindsight(), paid=9.0), 500)
    sampled(numbered([9], 9, Hindsight(), paid=9.0), 20)  # so few may lie on a threshold


@pytest.fixture(scope="module")
def fetch() -> Any:
    gym.register_envs(gymnasium_robotics)
    return gym.make("FetchReach-v4").unwrapped


@given(st.lists(st.integers(-3, 3), min_size=3, max_size=3), st.integers(-4, 4))
def test_rewards_are_the_environments_own_up_to_the_last_bit(
    fetch: Any, direction: list[int], bits: int
) -> None:
    """Goals at the very distance of the threshold, in float32, and a few bits beside it."""
    norm = max(float(np.linalg.norm(direction)), 1.0)
    achieved = np.array([1.3, 0.7, 0.5], np.float32)
    desired = (achieved + np.array(direction) / norm * fetch.distance_threshold).astype(np.float32)
    for _ in range(abs(bits)):
        desired = np.nextafter(desired, np.float32(np.inf * np.sign(bits)))
    reward = reward_of_reach()(np.stack([achieved] * 3), np.stack([desired] * 3))
    own = fetch.compute_reward(achieved, desired, {})
    np.testing.assert_array_equal(reward, np.full(3, own))


REACH: list[Any] = []


def reward_of_reach() -> Any:
    """Made once: it makes an environment."""
    if not REACH:
        REACH.append(goal_reward("FetchReach-v4"))
    return REACH[0]


biases = st.floats(-3, 3, allow_nan=False)


@given(biases, st.floats(0.0, 0.99))
def test_a_range_is_shifted_as_the_values_are(bias: float, gamma: float) -> None:
    """With absorbing ends another bias is another initial value."""
    plain, shifted = (
        value_range(Shift(b, gamma=gamma, terminal="absorbing"), (-1.0, 0.5)) for b in (0.0, bias)
    )
    moved = [value + bias / (1 - gamma) for value in plain]
    np.testing.assert_allclose(shifted, moved, rtol=1e-4, atol=1e-3)


@given(biases, st.integers(1, 30), st.sampled_from(["zero", "absorbing"]))
def test_no_sum_of_rewards_is_out_of_the_range(bias: float, steps: int, terminal: Any) -> None:
    shift = Shift(bias, gamma=0.9, terminal=terminal)
    least, most = value_range(shift, (-1.0, 0.0))
    for reward in (-1.0, 0.0):
        value = shift.reward(reward, True)
        for _ in range(steps - 1):
            value = shift.reward(reward, False) + 0.9 * value
        assert least - 1e-3 <= value <= most + 1e-3


@pytest.mark.parametrize("agent", [TD3, DQN])
def test_targets_stay_in_the_range_unless_the_task_ends(agent: Any) -> None:
    bound = agent(shift=(0.0, -1.0), gamma=0.9, reward_range=(-1.0, 0.0))
    flag = np.array([False, False, True])
    zeros = jnp.zeros((3, 1))
    batch = Batch(zeros, zeros, jnp.full(3, -1.0), zeros, flag, *(jnp.ones(3),) * 2)  # type: ignore[arg-type]
    value = jnp.array([[-50.0, 50.0, 50.0]] * 2)
    # Of the second member the best is one reward of -1, and then the end.
    expected = [[-10.0, 0.0, -1.0], [-20.0, -1.0, -2.0]]
    np.testing.assert_allclose(
        member_targets(bound, Biases.of(bound.members), batch, value), expected, rtol=1e-5
    )


def test_a_range_goes_with_no_intrinsic_reward() -> None:
    with pytest.raises(ValueError, match="takes values outside of reward_range"):
        DQN(intrinsic=RND(), reward_range=(0.0, 1.0))
