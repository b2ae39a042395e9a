"""What the doctor names from its numbers, what it advises, and what it says it cannot tell."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from test_doctor import (
    GAMMA,
    LENGTH,
    Steady,
    agent,
    by_action,
    corridor,
    exact,
    names,
    replay,
    steps,
    zeros,
)

from rewardshift import Shift
from rewardshift.doctor import Diagnosis, Target, Transitions, diagnose

SAME = Shift(-0.5, gamma=GAMMA, terminal="absorbing")
LATE = Target(0.5, 1, 10_000)


def advice(found: Diagnosis, name: str) -> str:
    (one,) = [finding for finding in found.findings if finding.name == name]
    return one.advice


@pytest.mark.parametrize("updates", [10, 100])
def test_what_an_optimistic_start_leaves_is_not_overestimation(updates: int) -> None:
    """Values of 0 are beyond every return, which is between -5 and -4, until they are learned."""
    one = agent(zeros, SAME, fresh=zeros, target=Target(1.0, 10, updates))
    found: Any = diagnose(one, corridor(), replay())
    assert found.belief.estimate > found.shift.from_primal(found.signal.high)
    assert found.findings == ()
    assert "its optimistic start explains" in found.sentences[0]


def test_values_above_an_optimistic_start_are_overestimation() -> None:
    one = agent(lambda _, a: np.full(len(a), 3.0), SAME, fresh=zeros, target=Target(1.0, 10, 100))
    assert names(diagnose(one, corridor(), replay())) == ["overestimation"]


def test_an_agent_without_an_update_is_told_so() -> None:
    one = agent(by_action, 0.0, fresh=zeros, target=Target(1.0, 10, 0))
    found = diagnose(one, corridor(), replay())
    assert names(found) == ["no update"]
    assert "0 updates" in found.sentences[0]
    assert "Nothing stands out" not in " ".join(found.sentences)


@pytest.mark.parametrize(
    ("gamma", "each", "told"), [(0.5, 0.0, True), (0.99, 0.0, False), (0.5, 1.0, False)]
)
def test_a_goal_beyond_the_horizon_is_told(gamma: float, each: float, told: bool) -> None:
    """A reward at each step has no horizon."""
    data = steps([50] * 3, np.tile(np.arange(50) == 49, 3) * 1.0 + each)
    found = diagnose(agent(zeros, 0.0, gamma=gamma), data=data)
    known = (None, None) if each else (50, gamma**50)
    assert (found.signal.distance, found.signal.weight) == known
    assert ("horizon" in names(found)) == told
    if told:
        assert "50 steps" in found.sentences[0]
        assert "larger discount, 0.98" in advice(found, "horizon")


@pytest.mark.parametrize(("pays", "told"), [(1_000.0, True), (100.0, False)])
def test_large_rewards_are_told(pays: float, told: bool) -> None:
    one = agent(zeros, 0.0, fresh=zeros, target=Target(0.005, 1, 100))
    env = gym.wrappers.TransformReward(corridor(), lambda r: pays * float(r))
    found = diagnose(one, env)
    assert ("large rewards" in names(found)) == told
    if told:
        assert found.signal.largest == pays
        assert "scale=0.001" in advice(found, "large rewards")
        assert "large rewards" not in names(diagnose(agent(zeros, Shift(0.0, 0.001)), env))


def with_rewards(reward: np.ndarray) -> Transitions:
    return steps([LENGTH] * (len(reward) // LENGTH), reward)


def test_a_bonus_in_the_rewards_is_told_and_values_are_not_compared() -> None:
    bonus = np.random.default_rng(0).uniform(1, 2, size=400)
    found = diagnose(agent(zeros, 0.0, target=LATE), corridor(), with_rewards(bonus))
    assert names(found) == ["other rewards"]
    assert found.signal.foreign == 1.0


class Noisy(Steady):
    """Pays something else in every step, depending on the action."""

    def step(self, action: Any) -> Any:
        observation, _, terminated, truncated, info = super().step(action)
        pays = 0.0 if action == 0 else float(self.np_random.normal())
        return observation, pays, terminated, truncated, info


def test_rewards_that_only_other_actions_get_are_not_a_bonus() -> None:
    """The policy takes one action, so its own rewards are all 0."""
    data = with_rewards(np.random.default_rng(0).normal(size=400))
    found = diagnose(agent(zeros, 0.0), Noisy(LENGTH, pays=(1.0, 1.0)), data)
    assert found.signal.foreign is None
    assert "other rewards" not in names(found)


def test_a_shift_that_was_not_told_shows_in_the_rewards() -> None:
    untold = diagnose(agent(zeros, 0.0), corridor(), with_rewards(np.full(400, -0.5)))
    assert "other rewards" in names(untold)
    assert "or the `shift`" in advice(untold, "other rewards")


def nothing(bias: float) -> Diagnosis:
    return diagnose(agent(zeros, bias, target=LATE), data=replay(reward=0.0))


def too_high(bias: float) -> Diagnosis:
    shift = Shift(bias, gamma=GAMMA)
    return diagnose(agent(exact(shift, 99.0), shift, target=LATE), corridor(), replay())


def elsewhere(bias: float) -> Diagnosis:
    one = agent(by_action, bias, act=lambda seen: np.ones(len(seen), np.int64))
    return diagnose(one, data=replay(reward=-1.0))


@pytest.mark.parametrize(
    ("ill", "name", "bias", "words"),
    [
        (nothing, "no signal", 0.0, "Try the shift of 'auto' first: a bias of -0.5 with"),
        (nothing, "no signal", -0.5, "a Q of zero stand for 5 already, and fades in 20 updates"),
        (nothing, "no signal", 0.5, "'auto' first instead of 0.5: a bias of -0.5"),
        (too_high, "overestimation", 0.0, "offline, a positive one is the first to try"),
        (too_high, "overestimation", -0.5, "Offline, train without the shift of -0.5"),
        (too_high, "overestimation", 0.5, "Its positive shift of 0.5 does not repair it"),
        (elsewhere, "untried actions", 0.0, "positive shift first, 0.1."),
        (elsewhere, "untried actions", 0.05, "positive shift first, 0.1 instead of 0.05"),
        (elsewhere, "untried actions", -0.5, "positive shift first, 0.1 instead of -0.5"),
        (elsewhere, "untried actions", 0.5, "its shift of 0.5 is below every return already"),
    ],
)
def test_advice_knows_the_shift(ill: Any, name: str, bias: float, words: str) -> None:
    assert words in advice(ill(bias), name)


@pytest.mark.parametrize("above", [0.5, 5e5])
def test_sentences_have_names_few_digits_and_no_pages(above: float) -> None:
    found = diagnose(agent(exact(Shift(0.0, gamma=GAMMA), above), 0.0, target=LATE), corridor())
    said = found.sentences[0]
    assert said.startswith("Overestimation: ")
    assert ("50% of the possible range" in said) == (above == 0.5)
    assert ("5e+05 times the possible range" in said) == (above == 5e5)
    assert ".md" not in said


def test_without_returns_it_says_that_it_cannot_tell() -> None:
    (first, *_) = diagnose(agent(), data=replay(ended=None)).sentences
    assert "It cannot tell whether the values are too high" in first
