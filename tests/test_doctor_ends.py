"""What the doctor says about the ends of episodes."""

from typing import Any

import numpy as np
import pytest
from test_doctor import GAMMA, LENGTH, Steady, agent, corridor, steps, zeros

from rewardshift.doctor import Diagnosis, Earlier, Target, diagnose


def test_ends_that_the_data_does_not_know_are_told() -> None:
    wrong = steps([LENGTH] * 300, ended=None, terminated=np.zeros(300 * LENGTH, bool))
    found: Any = diagnose(agent(), corridor(), wrong, episodes=2)
    assert [finding.name for finding in found.findings] == ["ends"]
    assert (found.ends.stored, found.ends.lived) == (0, 2)


HALF = 6  # episodes in each half of the data


def always(known: np.ndarray) -> Earlier:
    """The same values, some updates ago."""
    return Earlier(lambda seen, _: known[seen.argmax(axis=-1)], 20)


def named(found: Diagnosis) -> bool:
    return "ends" in [finding.name for finding in found.findings]


def valued_ends(known: np.ndarray, earlier: Earlier | None = None, **more: Any) -> Diagnosis:
    """A diagnosis of these values of the states of a corridor that pays 1 at each step."""
    target = Target(0.5, 1, 10_000)  # a lifetime of 20 updates
    one = agent(lambda seen, _: known[seen.argmax(axis=-1)], 0.0, earlier=earlier, target=target)
    data = steps([LENGTH] * 2 * HALF, 1.0, ended=None, **more)
    return diagnose(one, Steady(LENGTH, pays=(1.0, 1.0)), data, episodes=2)


FLAT = np.full(LENGTH, 1 / (1 - GAMMA))


@pytest.mark.parametrize(("learned", "share"), [(True, 0.0), (False, 1.0)])
def test_ends_that_are_valued_like_other_steps_are_told(learned: bool, share: float) -> None:
    left = LENGTH - np.arange(LENGTH)
    known = (1 - GAMMA**left) / (1 - GAMMA) if learned else FLAT
    found: Any = valued_ends(known, always(known))
    assert (found.ends.source, found.ends.transitions) == ("data", 2 * HALF)
    assert found.ends.share == pytest.approx(share, abs=1e-9)
    assert found.ends.before == found.ends.share
    assert named(found) != learned


def test_one_look_cannot_tell_ends_that_are_not_learned_yet() -> None:
    found = valued_ends(FLAT)
    assert not named(found)
    assert "One look cannot tell" in found.sentences[-1]
    learned_before = Earlier(lambda seen, _: np.ones(len(seen)), 20)
    forgotten: Any = valued_ends(FLAT, learned_before)  # rare by now, in a replay of a good policy
    assert forgotten.ends.before is None
    assert not named(forgotten)


def test_ends_that_are_half_forgotten_are_told_as_what_cannot_be_told() -> None:
    """As in a healthy DQN on CartPole, whose replay has few ends among its long episodes."""
    half = FLAT - 5.0 * (np.arange(LENGTH) == LENGTH - 1)
    found: Any = valued_ends(half, always(half))
    assert found.ends.before == found.ends.share == pytest.approx(4 / 9)
    assert not named(found)
    assert "It cannot tell whether it is still learning" in " ".join(found.sentences)


def test_ends_that_are_new_to_the_agent_and_few_ends_do_not_count() -> None:
    rows = np.arange(2 * HALF * LENGTH)
    first = rows < HALF * LENGTH
    half: Any = valued_ends(FLAT, always(FLAT), settled=first)
    assert half.ends.transitions == HALF
    assert half.ends.share == pytest.approx(1.0)
    few = valued_ends(FLAT, always(FLAT), settled=rows < 4 * LENGTH)
    none: Any = valued_ends(FLAT, settled=first & (rows % LENGTH != LENGTH - 1))
    assert (none.ends.transitions, none.ends.stored, none.ends.excess) == (0, 2 * HALF, None)
    one = agent(lambda seen, _: FLAT[seen.argmax(axis=-1)], 0.0, earlier=always(FLAT))
    alone: Any = diagnose(one, Steady(LENGTH, pays=(1.0, 1.0)), episodes=2)
    assert alone.ends.source == "episodes"
    assert alone.ends.share == pytest.approx(1.0)
    impossible = valued_ends(3 * FLAT, always(3 * FLAT))
    diverging = np.where(np.arange(LENGTH) == LENGTH - 1, 9 * FLAT, 3 * FLAT)
    diverged = valued_ends(diverging, always(diverging))
    for found in (half, impossible):
        assert named(found)
    for found in (few, none, alone, diverged):
        assert not named(found)


@pytest.mark.parametrize(
    ("excess", "updates", "shrinking", "told"),
    [(9.0, 20, 0.0, True), (10.0, 20, 0.1, False), (10.0, 40, 0.05, True), (8.0, 20, -0.125, True)],
)
def test_ends_whose_values_shrink_are_being_learned(
    excess: float, updates: int, shrinking: float, told: bool
) -> None:
    earlier = Earlier(lambda seen, _: np.full(len(seen), 1 + excess), updates)
    found: Any = valued_ends(FLAT, earlier)  # an excess of 9
    assert found.ends.shrinking == pytest.approx(shrinking)
    assert named(found) == told


def test_episodes_that_a_limit_cut_may_not_have_ended_yet() -> None:
    for lengths, told in (([60] * 20, False), ([40, 60] * 12, True)):
        data = steps(lengths, terminated=np.zeros(sum(lengths), bool))
        assert named(diagnose(agent(), corridor(), data, episodes=2)) == told


@pytest.mark.parametrize(
    ("lengths", "goes_on", "told"),
    [
        ([3] * 12, True, True),  # its own episodes have four steps
        ([3] * 12, False, False),  # its own end there, too
        ([3, 2] * 12, True, False),  # as many a step earlier: no limit
        ([1, 2, 2, 3, 3, 3], True, False),  # too few
    ],
)
def test_time_limits_that_are_stored_as_terminal(
    lengths: list[int], goes_on: bool, told: bool
) -> None:
    env = corridor() if goes_on else Steady(3, pays=(0.0, 0.0))
    data = steps(lengths, 0.0 if goes_on else 1.0)
    found: Any = diagnose(agent(zeros, 0.0), env, data, episodes=3)
    assert ("time limits" in [finding.name for finding in found.findings]) == told
    if told:
        assert (found.ends.limit, found.ends.at_limit, found.ends.went_on) == (3, 11, 1.0)
