"""What the doctor says about the ends of episodes."""

from typing import Any

import numpy as np
import pytest
from test_doctor import GAMMA, LENGTH, STATES, Steady, agent, corridor, first_action

from rewardshift.doctor import Diagnosis, Earlier, Target, Transitions, diagnose


def test_ends_that_the_data_does_not_know_are_told() -> None:
    rows = np.tile(np.arange(LENGTH), 300)
    last = rows == LENGTH - 1
    wrong = Transitions(
        observation=STATES[rows],
        action=first_action(rows),
        reward=np.where(last, 1.0, 0.0),
        terminated=np.zeros(len(rows), bool),
        next_observation=STATES[np.minimum(rows + 1, LENGTH - 1)],
    )
    found = diagnose(agent(), corridor(), wrong, episodes=2)
    assert [finding.name for finding in found.findings] == ["ends"]
    assert found.ends is not None
    assert (found.ends.stored, found.ends.lived) == (0, 2)


def valued_ends(known: np.ndarray, earlier: Earlier | None = None, **more: Any) -> Diagnosis:
    """A diagnosis of these values of the states of a corridor that pays 1 at each step."""
    target = Target(0.5, 1, 10_000)  # a lifetime of 20 updates
    one = agent(lambda seen, _: known[seen.argmax(axis=-1)], 0.0, earlier=earlier, target=target)
    rows = np.tile(np.arange(LENGTH), 2)
    data = Transitions(
        observation=STATES[rows],
        action=first_action(rows),
        reward=np.ones(len(rows)),
        terminated=rows == LENGTH - 1,
        next_observation=STATES[np.minimum(rows + 1, LENGTH - 1)],
        **more,
    )
    return diagnose(one, Steady(LENGTH, pays=(1.0, 1.0)), data, episodes=2)


FLAT = np.full(LENGTH, 1 / (1 - GAMMA))


@pytest.mark.parametrize(("learned", "share"), [(True, 0.0), (False, 1.0)])
def test_ends_that_are_valued_like_other_steps_are_told(learned: bool, share: float) -> None:
    left = LENGTH - np.arange(LENGTH)
    found = valued_ends((1 - GAMMA**left) / (1 - GAMMA) if learned else FLAT)
    assert found.ends is not None
    assert (found.ends.source, found.ends.transitions) == ("data", 2)
    assert found.ends.share == pytest.approx(share, abs=1e-9)
    assert ("ends" in [finding.name for finding in found.findings]) != learned


def test_ends_that_are_new_to_the_agent_and_impossible_values_do_not_count() -> None:
    first = np.arange(2 * LENGTH) < LENGTH
    half = valued_ends(FLAT, settled=first)
    assert half.ends is not None
    assert half.ends.transitions == 1
    assert half.ends.share == pytest.approx(1.0)
    none = valued_ends(FLAT, settled=first & (np.arange(2 * LENGTH) != LENGTH - 1))
    assert none.ends is not None
    assert (none.ends.transitions, none.ends.stored, none.ends.excess) == (0, 2, None)
    one = agent(lambda seen, _: FLAT[seen.argmax(axis=-1)], 0.0)
    alone = diagnose(one, Steady(LENGTH, pays=(1.0, 1.0)), episodes=2)
    assert alone.ends is not None
    assert alone.ends.source == "episodes"
    assert alone.ends.share == pytest.approx(1.0)
    impossible = valued_ends(3 * FLAT)
    for found, told in ((half, True), (none, False), (alone, False), (impossible, False)):
        assert ("ends" in [finding.name for finding in found.findings]) == told


@pytest.mark.parametrize(
    ("excess", "updates", "shrinking", "told"),
    [(9.0, 20, 0.0, True), (10.0, 20, 0.1, False), (10.0, 40, 0.05, True), (8.0, 20, -0.125, True)],
)
def test_ends_whose_values_shrink_are_being_learned(
    excess: float, updates: int, shrinking: float, told: bool
) -> None:
    earlier = Earlier(lambda seen, _: np.full(len(seen), 1 + excess), updates)
    found = valued_ends(FLAT, earlier)  # an excess of 9
    assert found.ends is not None
    assert found.ends.shrinking == pytest.approx(shrinking)
    assert ("ends" in [finding.name for finding in found.findings]) == told
