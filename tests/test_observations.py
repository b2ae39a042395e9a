"""Observations of any space, one or a batch, flattened as Gymnasium does and without the task."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from probes import Rooms

from rewardshift import DQN, MLP, InputError, OnlineBudget, Policy, load, train
from rewardshift.envs import BIT_FLIP, four_rooms_id
from rewardshift.envs.observations import flat_rows, flat_size, frozen, space_of, structure_of
from rewardshift.envs.tasks import TaskSpec, probe_spec

BUDGET = OnlineBudget(steps=20, evaluate_every=20, evaluation_episodes=1)
AGENT = DQN(network=MLP((8,)), batch_size=8)

SHAPES = st.lists(st.integers(1, 3), max_size=2).map(tuple)
LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.builds(partial(spaces.Box, -1, 1), SHAPES),
    st.builds(lambda shape: spaces.Box(0, 255, shape, np.uint8), SHAPES),
    st.builds(
        lambda n, start: spaces.Discrete(n, start=start), st.integers(1, 4), st.integers(-9, 9)
    ),
    st.lists(st.integers(1, 3), min_size=1, max_size=3).map(spaces.MultiDiscrete),
    st.sampled_from([(1,), (4,), (2, 3)]).map(spaces.MultiBinary),
)
SPACES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.dictionaries(st.text(min_size=1), inner, min_size=1, max_size=3).map(spaces.Dict),
        st.lists(inner, min_size=1, max_size=3).map(spaces.Tuple),
    ),
    max_leaves=4,
)


def batch_of(space: gym.Space[Any], rows: list[Any]) -> Any:
    """The batch that a vector environment makes of the observations."""
    together: Any = gym.vector.utils.create_empty_array(space, len(rows))
    return gym.vector.utils.concatenate(space, rows, together)


@given(SPACES, st.integers(0, 2**31 - 1), st.integers(1, 3))
def test_one_and_many_are_flattened_as_gymnasium_does(
    space: gym.Space[Any], seed: int, count: int
) -> None:
    """Also by the space that a file keeps, which has no bounds."""
    space.seed(seed)
    rows = [space.sample() for _ in range(count)]
    structure = structure_of(space)
    assert frozen(json.loads(json.dumps(structure))) == structure
    assert flat_size(structure) == spaces.flatdim(space)
    kept = space_of(structure)
    flat = [np.asarray(spaces.flatten(space, row), np.float32) for row in rows]
    for own in (space, kept):
        found = flat_rows(own, rows[0])
        assert found is not None
        np.testing.assert_array_equal(found[0].astype(np.float32), flat[:1])
        assert found[1]
        found = flat_rows(own, batch_of(space, rows))
        assert found is not None
        np.testing.assert_array_equal(found[0].astype(np.float32), flat)
        assert not found[1]


@pytest.mark.parametrize(
    ("space", "wrong"),
    [
        (spaces.Discrete(3), 3),
        (spaces.Discrete(3), -1),
        (spaces.Discrete(3), 1.0),
        (spaces.Discrete(3), [0, 3]),
        (spaces.MultiDiscrete([3, 2]), [0.0, 1.0]),
        (spaces.MultiDiscrete([3, 2]), [0, 2]),
        (spaces.Box(0, 1, (2,)), "ab"),
        (spaces.Box(0, 1, (2,)), [[1, 2], [3]]),
        (spaces.Dict({"a": spaces.Discrete(2)}), {"b": 1}),
        (spaces.Dict({"a": spaces.Discrete(2)}), 1),
        (spaces.Tuple([spaces.Discrete(2)] * 2), (1,)),
        (spaces.Tuple([spaces.Discrete(2)] * 2), ([1, 1], [1])),
        (spaces.Tuple([spaces.Discrete(2)] * 2), ([1], 1)),
    ],
)
def test_observations_of_other_spaces_do_not_fit(space: gym.Space[Any], wrong: Any) -> None:
    assert flat_rows(space, wrong) is None


@pytest.mark.parametrize(
    "structure",
    [
        (),
        ("Sequence", 2),
        ("Box", 3.5),
        ("Box", (-1,)),
        ("Discrete", 0, 0),
        ("Discrete", "5", 0),
        ("MultiDiscrete", (0, 2), (0, 0)),
        ("Dict", (("a", ("Box",)),)),
        ("Tuple", 5),
    ],
)
def test_a_damaged_structure_is_refused(structure: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="no space has the structure"):
        space_of(structure)


def test_a_structure_of_another_size_is_refused_without_being_built() -> None:
    body = probe_spec(partial(Rooms, spaces.Discrete(5)))._asdict()
    assert TaskSpec.from_json(json.loads(json.dumps(body))).structure == ("Discrete", 5, 0)
    for changed in ({"structure": ["Box", [2**20, 2**20]]}, {"features": 6}):
        with pytest.raises(ValueError, match="its observations do not have"):
            TaskSpec.from_json({**body, **changed})


MIXED = spaces.Dict(
    {"image": spaces.Box(0, 255, (2, 2, 3), np.uint8), "speed": spaces.Box(-1, 1, (2,))}
)
KINDS: dict[str, Any] = {
    "discrete": spaces.Discrete(5),
    "number": spaces.Box(-1, 1, ()),
    "dict": spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Box(-1, 1, (3,))}),
    "tuple": spaces.Tuple((spaces.Discrete(2), spaces.MultiDiscrete([3, 2]))),
    "bits": spaces.MultiBinary(4),
    "image and more": MIXED,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_policy_acts_without_its_environment(kind: str, tmp_path: Path) -> None:
    """The run's folder cannot make the environment, which a function made."""
    make = partial(Rooms, KINDS[kind])
    train(AGENT, make, budget=BUDGET, folder=tmp_path / "run")
    policy = load(tmp_path / "run")
    envs = gym.vector.SyncVectorEnv([make] * 3)
    many, _ = envs.reset(seed=0)
    actions = policy.act(many)
    assert np.shape(actions) == (3,)
    ones = [make().reset(seed=row)[0] for row in range(3)]
    assert [policy.act(one) for one in ones] == list(np.asarray(actions))
    flat = [np.asarray(spaces.flatten(KINDS[kind], one), np.float32) for one in ones]
    assert [policy.act(one) for one in flat] == list(np.asarray(actions))
    values = policy.value(many, actions)
    assert values.shifted.shape == (1, 3)
    alone = gym.vector.SyncVectorEnv([make])
    assert np.shape(policy.act(alone.reset(seed=0)[0])) == (1,)
    assert policy.evaluate(3, env=make).lengths.tolist() == [1, 1, 1]


@pytest.mark.parametrize("env", [BIT_FLIP, four_rooms_id(7)])
def test_a_vector_environment_of_one_row(env: str) -> None:
    """Goals, and MiniGrid's observations."""
    policy: Policy = train(AGENT, env, budget=BUDGET).policy()
    for rows in (1, 2):
        envs = gym.make_vec(env, num_envs=rows)
        assert np.shape(policy.act(envs.reset(seed=0)[0])) == (rows,)
    assert np.shape(policy.act(gym.make(env).reset(seed=0)[0])) == ()


@pytest.mark.parametrize(
    "space",
    [
        spaces.Dict({}),
        spaces.Tuple(()),
        spaces.Box(0, 1, (0,)),
        spaces.Box(0, 1, (3, 0)),
        spaces.Discrete(2**62),
    ],
)
def test_observations_without_a_number_or_with_too_many_are_refused(space: gym.Space[Any]) -> None:
    with pytest.raises(InputError, match="observations must hold a number at least"):
        train(AGENT, partial(Rooms, space), budget=BUDGET)


def test_a_space_of_ones_own_class_is_kept_as_what_it_is() -> None:
    class Speed(spaces.Box):
        pass

    space = spaces.Dict({"speed": Speed(-1, 1, (2,))})
    assert structure_of(space) == ("Dict", (("speed", ("Box", (2,))),))


def test_an_image_does_not_hide_what_is_beside_it() -> None:
    spec = probe_spec(partial(Rooms, MIXED))
    assert (spec.features, spec.dtype, spec.shape) == (14, "float32", ())
    assert probe_spec(four_rooms_id(7)).shape == (7, 7, 3)


def test_goals_of_any_shape() -> None:
    goals = {name: spaces.Box(0, 1, (1, 2)) for name in ("achieved_goal", "desired_goal")}
    space = spaces.Dict({"observation": spaces.Box(0, 1, (3,)), **goals})
    policy = train(AGENT, partial(Rooms, space), budget=BUDGET).policy()
    assert (policy.spec.features, policy.spec.goal_size) == (7, 2)
    one = space.sample()
    assert np.shape(policy.act(one)) == ()
    assert policy.act(batch_of(space, [one])) == [policy.act(one)]


def test_an_observation_of_another_space_is_refused() -> None:
    policy = train(AGENT, partial(Rooms, KINDS["dict"]), budget=BUDGET).policy()
    for wrong in ({"a": 1}, None, "text", np.zeros(4), [np.zeros(5, int)], object()):
        with pytest.raises(InputError, match=r"acts on an observation of Dict\('a': Discrete\(2\)"):
            policy.act(wrong)
