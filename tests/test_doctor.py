"""The doctor's numbers, on tasks whose values are known."""

import json
import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probes import Aim, Probe, delayed_value

from rewardshift import Shift, ShiftReward
from rewardshift.doctor import (
    AgentView,
    Diagnosis,
    Target,
    Transitions,
    diagnose,
    rules,
)
from rewardshift.errors import InputError
from rewardshift.optimism import value_bounds

NAME: Any = "CartPole-v1"
GAMMA = 0.9
SHIFT = Shift(-0.5, gamma=GAMMA)
LENGTH = 4
STATES = np.eye(LENGTH, dtype=np.float32)


def exact(shift: Shift, above: float = 0.0) -> Any:
    """The values of a `Probe`, and a constant on top."""
    values = np.array([delayed_value(shift, LENGTH - 1 - at) for at in range(LENGTH)])

    def value(observations: Any, actions: Any) -> Any:
        return values[observations.argmax(axis=-1)] + above

    return value


def first_action(observations: Any) -> np.ndarray:
    return np.zeros(len(observations), np.int64)


def agent(value: Any = None, shift: Any = SHIFT, **more: Any) -> AgentView:
    given = {"act": first_action, "actions": gym.spaces.Discrete(2), "gamma": GAMMA}
    return AgentView(value=value or exact(SHIFT), shift=shift, **{**given, **more})


def corridor(**more: Any) -> Probe:
    return Probe(LENGTH, pays=(1.0, 1.0), **more)


def steps(lengths: list[int], reward: Any = 0.0, **changed: Any) -> Transitions:
    """Episodes of these lengths along the corridor, which stay at its end; all end as terminal."""
    rows = np.concatenate([np.arange(length) for length in lengths])
    last = np.append(np.diff(rows) < 0, True)
    given = {
        "observation": STATES[np.minimum(rows, LENGTH - 1)],
        "action": first_action(rows),
        "reward": np.broadcast_to(reward, rows.shape),
        "terminated": last,
        "next_observation": STATES[np.minimum(rows + 1, LENGTH - 1)],
        "ended": last,
    }
    return Transitions(**{**given, **changed})


def replay(*, reward: float = 1.0, **changed: Any) -> Transitions:
    """One episode of the corridor, three times over."""
    return steps([LENGTH] * 3, np.tile([0.0] * (LENGTH - 1) + [reward], 3), **changed)


def names(found: Diagnosis) -> list[str]:
    return [finding.name for finding in found.findings]


def by_action(_: Any, actions: Any) -> Any:
    return np.where(actions == 1, 5.0, 1.0)


def distance(_: Any, actions: Any) -> Any:
    return -np.abs(actions[:, 0] - 1.0)


def zeros(_: Any, actions: Any) -> Any:
    return np.zeros(len(actions))


@pytest.mark.parametrize("above", [0.0, 2.0, -3.0])
@pytest.mark.parametrize("terminal", ["zero", "absorbing"])
def test_overestimation_is_what_is_added_to_the_truth(above: float, terminal: Any) -> None:
    shift = Shift(-0.5, 2.0, GAMMA, terminal)
    found: Any = diagnose(agent(exact(shift, above), shift), corridor(), episodes=2)
    assert found.belief.source == "episodes"
    assert len(found.belief.points) == 2 * LENGTH
    assert found.belief.overestimation == pytest.approx(above)
    assert found.belief.spread == pytest.approx(0.0, abs=1e-6)
    assert found.ends.excess == pytest.approx(above)


class Steady(Probe):
    """The corridor with a reward of 1 in every step."""

    def step(self, action: Any) -> Any:
        observation, _, terminated, truncated, info = super().step(action)
        return observation, 1.0, terminated, truncated, info


def test_a_time_limit_is_bootstrapped() -> None:
    forever = Shift(0.0, gamma=GAMMA).reward(1.0) / (1 - GAMMA)  # 1 a step, without an end
    env = Steady(LENGTH, terminates=False, pays=(1.0, 1.0))
    one = agent(lambda observations, _: np.full(len(observations), forever), 0.0)
    found: Any = diagnose(one, env, episodes=3)
    assert found.belief.overestimation == pytest.approx(0.0, abs=1e-9)
    assert found.ends is None


def test_a_shift_around_the_environment_is_undone() -> None:
    plain = diagnose(agent(), corridor(), episodes=2)
    shifted = diagnose(agent(), ShiftReward(corridor(), -0.5), episodes=2)
    assert plain == shifted


def test_returns_in_the_data_are_used_without_an_environment() -> None:
    found: Any = diagnose(agent(exact(SHIFT, 1.0)), data=replay())
    assert found.belief.source == "data"
    assert found.belief.overestimation == pytest.approx(1.0)


def test_seen_and_unseen_discrete_actions() -> None:
    found = diagnose(agent(by_action, act=lambda o: np.ones(len(o), np.int64)), data=replay())
    untried: Any = found.untried
    assert (untried.seen, untried.unseen, untried.policy) == (1.0, 5.0, 5.0)
    both = replay(action=np.array([0, 1, 0])[np.repeat(np.arange(3), LENGTH)])
    everything: Any = diagnose(agent(by_action), data=both).untried
    assert everything.unseen is None  # in every state both actions were taken


def test_seen_and_unseen_continuous_actions() -> None:
    env = Aim(LENGTH, goal=1.0)
    data = replay(action=np.ones((3 * LENGTH, 1), np.float32))
    act = lambda observations: np.full((len(observations), 1), 2.0, np.float32)  # noqa: E731
    one = AgentView(value=distance, act=act, actions=env.action_space, gamma=GAMMA)
    untried: Any = diagnose(one, env, data, episodes=1).untried
    assert (untried.seen, untried.policy) == (0.0, -1.0)
    assert untried.unseen < 0


def test_where_it_began_and_what_is_left() -> None:
    start = diagnose(agent(fresh=zeros, target=Target(1.0, 10, 100)), corridor(), episodes=1).start
    assert start.initial == pytest.approx(5.0)  # 0.5 / (1 - 0.9)
    assert start.spread == pytest.approx(0.0)
    assert start.optimism == pytest.approx(5.0)  # of a range from 0 to 1
    assert start.lifetime == pytest.approx(100)
    assert start.left == pytest.approx(np.exp(-1))
    spread: Any = diagnose(agent(fresh=by_action), corridor(), episodes=8).start.spread
    assert 0 < spread <= 2  # actions are worth 1 or 5


@given(
    rewards=st.lists(st.floats(-10, 10), min_size=1, max_size=20),
    ends=st.booleans(),
    gamma=st.floats(0, 0.99),
)
def test_no_return_is_beyond_the_bounds(rewards: list[float], ends: bool, gamma: float) -> None:
    reward, terminated = np.array(rewards), np.arange(1, len(rewards) + 1) == len(rewards) * ends
    low, high = value_bounds(reward, terminated, gamma)
    beyond = 0.0 if ends else (reward[~terminated].max() / (1 - gamma))
    for reward_now in reversed(rewards):
        beyond = reward_now + gamma * beyond
        assert low - 1e-6 <= beyond <= high + 1e-6


def test_a_diagnosis_is_text_json_and_scalars() -> None:
    found = diagnose(agent(), corridor(), replay(), episodes=1)
    body = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert body["belief"]["overestimation"] == pytest.approx(0.0, abs=1e-6)
    assert body["findings"] == []
    assert found.scalars()["belief/share"] == body["belief"]["share"]
    assert str(found).splitlines()[-1].startswith("Nothing stands out")
    assert diagnose(agent(), corridor(), replay(), episodes=1) == found


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: diagnose(agent()), "an environment, or transitions"),
        (lambda: diagnose(agent(), corridor(), episodes=0), "episodes must be .* got 0"),
        (lambda: diagnose(agent(), corridor(), seed=-1), "seed must be .* got -1"),
        (lambda: diagnose(agent(), gym.make("Pendulum-v1")), "does not fit the environment"),
        (
            lambda: diagnose(agent(act=lambda seen: first_action(seen @ np.ones(3))), corridor()),
            "cannot act on observations",
        ),
        (lambda: diagnose(agent(), NAME), "one Gymnasium environment, got 'CartPole-v1'"),
        (lambda: agent(gamma=1.0), r"gamma must be in \[0, 1\), got 1.0"),
        (lambda: agent(shift=Shift(0.0, gamma=0.5)), "gamma=0.9, but the shift"),
        (lambda: agent(actions=gym.spaces.Box(-np.inf, np.inf, (1,))), "finite bounds"),
        (lambda: agent(actions=gym.spaces.MultiBinary(2)), "Discrete actions and Box"),
        (lambda: diagnose(agent(lambda *_: np.zeros(1)), data=replay()), "one value for each"),
        (lambda: diagnose(agent(lambda _, actions: np.nan * actions), data=replay()), "diverged"),
        (lambda: diagnose(agent(act=lambda _: 0), corridor()), r"batch of actions, .* \(\) for 1"),
        (lambda: Transitions(STATES[:0], STATES[:0], STATES[:0], STATES[:0]), "no transitions"),
        (lambda: Transitions(STATES, first_action(STATES), np.ones(4), np.ones(3)), "3 rows of"),
    ],
)
def test_what_cannot_be_diagnosed_is_refused(call: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        call()


@pytest.mark.parametrize(
    ("pays", "start", "illness"),
    [(-1.0, "optimistic", "overestimation"), (1.0, "cautious", "underestimation")],
)
def test_values_where_they_began_are_not_called_wrong(
    pays: float, start: str, illness: str
) -> None:
    def zero(target: Target) -> Diagnosis:
        one = agent(zeros, 0.0, fresh=zeros, target=target)
        return diagnose(one, Probe(LENGTH, pays=(pays, pays)), replay(reward=pays))

    fresh, late = zero(Target(0.005, 1, 10)), zero(Target(0.5, 1, 10_000))
    assert fresh.findings == ()
    assert f"its {start} start explains: train longer" in fresh.sentences[-1]
    assert illness in names(late)
    assert "train longer" not in late.sentences[-1]


def test_the_symptoms_have_the_numbers_and_thresholds_of_the_rules() -> None:
    page = (Path(__file__).parents[1] / "docs" / "should-i-shift.md").read_text()
    rows = page.split("| symptom | number |")[1].split("\n\n")[0].splitlines()[2:]
    cells = [row.split(" | ")[1] for row in rows]
    assert len(cells) == 6
    table = diagnose(agent(), corridor(), replay(), episodes=1).table()
    assert all(name in table for cell in cells for name in re.findall("`(.+?)`", cell))
    share = f"above {rules.OVERESTIMATION} (*overestimation*)"
    pull = f"above {rules.PULL} (*untried actions*)"
    possible = f"between -{rules.UNDERESTIMATION} and {rules.OVERESTIMATION}"
    for said in (f"above {rules.BEYOND}, or", share, pull, possible):
        assert sum(said in cell for cell in cells) == 1
