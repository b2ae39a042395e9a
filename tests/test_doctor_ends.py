"""What the doctor says about the ends of episodes."""

from typing import Any

import numpy as np
import pytest
from test_doctor import GAMMA, LENGTH, Steady, agent, corridor, names, steps, zeros

from rewardshift.doctor import AgentView, Diagnosis, Earlier, Target, diagnose

EPISODES = 12
LAST = np.arange(LENGTH) == LENGTH - 1
FLAT = np.full(LENGTH, 1 / (1 - GAMMA))  # a reward of 1 at each step, for ever
LEARNED = (1 - GAMMA ** (LENGTH - np.arange(LENGTH))) / (1 - GAMMA)


def of_states(known: np.ndarray) -> Any:
    return lambda seen, _: known[seen.argmax(axis=-1)]


def valuing(known: np.ndarray, earlier: Earlier | None) -> AgentView:
    """An agent with these values of the states, and a lifetime of 20 updates."""
    return agent(of_states(known), 0.0, earlier=earlier, target=Target(0.5, 1, 10_000))


def steady() -> Steady:
    return Steady(LENGTH, pays=(1.0, 1.0))


def valued_ends(known: np.ndarray, earlier: Earlier | None = None, **more: Any) -> Diagnosis:
    """A diagnosis of these values in a corridor that pays 1 at each step."""
    data = steps([LENGTH] * EPISODES, 1.0, ended=None, **more)
    return diagnose(valuing(known, earlier), steady(), data, episodes=2)


@pytest.mark.parametrize(
    ("known", "settled", "share", "told"),
    [
        (FLAT, EPISODES, 1.0, True),
        (3 * FLAT, EPISODES, 1.0, True),
        (LEARNED, EPISODES, 0.0, False),
        (FLAT, EPISODES // 2, 1.0, True),
        (FLAT, 4, 1.0, False),  # too few to tell
        # As in a healthy DQN on CartPole, whose replay has few ends among its long episodes.
        (FLAT - 5.0 * LAST, EPISODES, 4 / 9, False),
        # Values that diverge for another reason.
        (3 * FLAT * (1 + 2 * LAST), EPISODES, 89 / 29, False),
    ],
)
def test_ends_that_are_valued_like_other_steps_in_two_looks_are_told(
    known: np.ndarray, settled: int, share: float, told: bool
) -> None:
    """What is new to the agent does not count."""
    old = np.arange(EPISODES * LENGTH) < settled * LENGTH
    found: Any = valued_ends(known, Earlier(of_states(known), 20), settled=old)
    assert (found.ends.source, found.ends.transitions) == ("data", settled)
    assert found.ends.before == found.ends.share == pytest.approx(share, abs=1e-9)
    assert ("ends" in names(found)) == told
    unsure = "It cannot tell whether it is still learning" in " ".join(found.sentences)
    assert unsure == (share == 4 / 9)


def test_one_look_cannot_tell_ends_that_are_not_learned_yet() -> None:
    found = valued_ends(FLAT)
    assert "ends" not in names(found)
    assert "One look cannot tell" in found.sentences[-1]
    learned_before = Earlier(lambda seen, _: np.ones(len(seen)), 20)
    forgotten: Any = valued_ends(FLAT, learned_before)  # rare by now, in a replay of a good policy
    assert forgotten.ends.before is None
    assert "ends" not in names(forgotten)


def test_ends_of_the_last_policy_alone_and_new_ends_alone_say_nothing() -> None:
    same = Earlier(of_states(FLAT), 20)
    played: Any = diagnose(valuing(FLAT, same), steady(), episodes=2)
    assert (played.ends.source, played.ends.share) == ("episodes", pytest.approx(1.0))
    new: Any = valued_ends(FLAT, same, settled=np.tile(~LAST, EPISODES))
    assert (new.ends.transitions, new.ends.stored, new.ends.excess) == (0, EPISODES, None)
    for found in (played, new):
        assert "ends" not in names(found)


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
    assert ("ends" in names(found)) == told


@pytest.mark.parametrize(
    ("lengths", "ended", "told"),
    [
        ([LENGTH] * 300, False, True),
        ([60] * 20, True, False),  # a limit cut them all: they may not have ended yet
        ([40, 60] * 12, True, True),
    ],
)
def test_ends_that_the_data_does_not_know_are_told(
    lengths: list[int], ended: bool, told: bool
) -> None:
    more = {} if ended else {"ended": None}
    data = steps(lengths, terminated=np.zeros(sum(lengths), bool), **more)
    found: Any = diagnose(agent(), corridor(), data, episodes=2)
    assert (found.ends.stored, found.ends.lived) == (0, 2)
    assert ("ends" in names(found)) == told


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
    assert ("time limits" in names(found)) == told
    if told:
        assert (found.ends.limit, found.ends.at_limit, found.ends.went_on) == (3, 11, 1.0)
