"""Engines: rows with streams of their own, and EnvPool beside Gymnasium, step by step."""

from typing import Any, NamedTuple

import envpool
import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from minigrid.core.constants import IDX_TO_COLOR, IDX_TO_OBJECT
from minigrid.core.grid import Grid
from minigrid.core.world_object import Door, Goal, Wall, WorldObj

from rewardshift.envs import four_rooms_id
from rewardshift.envs.engines import (
    ENVPOOL_TASKS,
    EnvPoolEngine,
    GymnasiumEngine,
    make_engine,
    resolve_engine,
)
from rewardshift.envs.minigrid import MAX_STEPS
from rewardshift.envs.tasks import TaskSpec, env_maker, task_spec
from rewardshift.errors import InputError

GRID = "MiniGrid-Empty-Random-6x6-v0"
MULTI_ROOM = "MiniGrid-MultiRoom-N2-S4-v0"
engines = pytest.mark.parametrize("engine", ["gymnasium", "envpool"])


def pool_engine(env: str, rows: int) -> EnvPoolEngine:
    engine = make_engine(env, rows, "envpool")
    assert isinstance(engine, EnvPoolEngine)
    return engine


# --- rows ----------------------------------------------------------------------------------


@engines
@pytest.mark.parametrize("env", ENVPOOL_TASKS)
def test_a_row_does_not_depend_on_its_neighbours(env: str, engine: Any) -> None:
    together, alone = make_engine(env, 3, engine), make_engine(env, 1, engine)
    rng = np.random.default_rng(0)
    first = together.restart([7, 8, 9])
    np.testing.assert_array_equal(first[1:2], alone.restart([8]))
    for _ in range(250):
        actions = rng.integers(together.spec.num_actions, size=3)
        ours, theirs = together.step(actions), alone.step(actions[1:2])
        for field, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(field[1:2], other)
    again = together.restart([7, 8, 9])
    np.testing.assert_array_equal(first, again)
    together.close()
    alone.close()


@engines
def test_an_ended_row_goes_on_with_a_new_episode(engine: Any) -> None:
    envs = make_engine("MountainCar-v0", 2, engine)
    envs.restart([1, 2])
    for step in range(1, 401):
        result = envs.step(np.array([1, 1]))
        assert result.reward.tolist() == [-1.0, -1.0]
        ended = result.terminated | result.truncated
        assert ended.all() == ended.any() == (step % 200 == 0)
        same = (result.observation == result.next_observation).all()
        assert same == (not ended.any())
        if ended.any():
            assert (result.observation[:, 1] == 0).all()  # a new start has no velocity
    envs.close()


def test_observations_are_flat_and_keep_their_bytes() -> None:
    for env in (GRID, MULTI_ROOM, four_rooms_id(7)):
        assert make_engine(env, 1, "gymnasium").spec == TaskSpec(147, "uint8", 7, shape=(7, 7, 3))
    assert make_engine("MountainCar-v0", 1, "gymnasium").spec == TaskSpec(
        2, "float32", 3, shape=(2,)
    )
    engine = make_engine(lambda: gym.make("CartPole-v1"), 2)
    assert isinstance(engine, GymnasiumEngine)
    assert engine.restart([0, 1]).shape == (2, 4)


def test_auto_takes_envpool_for_what_it_does_faster() -> None:
    assert resolve_engine(GRID, "auto") == "envpool"
    assert resolve_engine(MULTI_ROOM, "auto") == "gymnasium"
    assert resolve_engine("MountainCar-v0", "auto") == "gymnasium"
    assert resolve_engine("MountainCar-v0", "envpool") == "envpool"
    assert resolve_engine("CartPole-v1", "auto") == "gymnasium"
    assert resolve_engine(four_rooms_id(7), "auto") == "gymnasium"
    assert resolve_engine("MountainCar-v0", "gymnasium") == "gymnasium"
    assert resolve_engine(lambda: gym.make("MountainCar-v0"), "auto") == "gymnasium"


class Endless(gym.Env[Any, Any]):
    """Observations of any length."""

    observation_space = gym.spaces.Sequence(gym.spaces.Discrete(2))
    action_space: gym.Space[Any] = gym.spaces.Discrete(2)


@pytest.mark.parametrize(
    ("use", "match"),
    [
        (lambda: make_engine("NoSuchCar-v0", 1), "no environment 'NoSuchCar-v0'"),
        (lambda: make_engine(Endless, 1), "cannot be flattened into a fixed number of numbers"),
        (lambda: make_engine("CartPole-v1", 1, "envpool"), "engine 'envpool' runs"),
    ],
)
def test_what_cannot_be_trained_is_refused(use: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        use()


# --- FourRooms -----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [7, 9])
def test_small_four_rooms_are_four_rooms(size: int) -> None:
    env: Any = gym.make(four_rooms_id(size)).unwrapped
    for seed in range(20):
        env.reset(seed=seed)
        middle = size // 2
        column = [env.grid.get(middle, y) is None for y in range(1, size - 1)]
        row = [env.grid.get(x, middle) is None for x in range(1, size - 1)]
        goal = sum(isinstance(cell, Goal) for cell in env.grid.grid)
        for line in (column, row):
            assert sum(line[: middle - 1]) <= 1 >= sum(line[middle:])
        assert goal == 1
        assert env.max_steps == MAX_STEPS


# --- EnvPool beside Gymnasium --------------------------------------------------------------


@pytest.mark.parametrize("policy", ["random", "swing"])
def test_mountain_car_is_the_same(policy: str) -> None:
    rng = np.random.default_rng(3)
    pool = pool_engine("MountainCar-v0", 1)
    ends = []
    for seed in range(4):
        (observation,) = pool.restart([seed])
        env: Any = gym.make("MountainCar-v0")
        env.reset()
        env.unwrapped.state = observation.astype(np.float64)
        while True:
            swing = 2 if observation[1] >= 0 else 0
            action = swing if policy == "swing" else int(rng.integers(3))
            result = pool.step(np.array([action]))
            expected, reward, terminated, truncated, _ = env.step(action)
            observation = result.next_observation[0]
            np.testing.assert_allclose(observation, expected, atol=1e-5)
            assert result.reward[0] == reward
            assert (result.terminated[0], result.truncated[0]) == (terminated, truncated)
            if terminated or truncated:
                ends.append(terminated)
                break
    assert all(ends) if policy == "swing" else not any(ends)


class Recorded(NamedTuple):
    """An episode as EnvPool played it."""

    images: list[np.ndarray]
    positions: list[tuple[int, int]]
    directions: list[int]
    actions: list[int]
    rewards: list[float]
    ends: list[tuple[bool, bool]]


def play_in_pool(seed: int, rng: np.random.Generator) -> Recorded:
    """Random actions, mostly forward, until the episode ends."""
    engine = pool_engine(GRID, 1)
    engine.restart([seed])
    pool = engine._pool
    observation, info = pool.reset()
    episode = Recorded([], [], [], [], [], [])
    while True:
        episode.images.append(observation["image"][0])
        episode.positions.append(tuple(info["agent_pos"][0].tolist()))
        episode.directions.append(int(observation["direction"][0]))
        if episode.ends and any(episode.ends[-1]):
            return episode
        action = int(rng.choice(7, p=[0.2, 0.2, 0.4, 0.02, 0.02, 0.14, 0.02]))
        observation, reward, terminated, truncated, info = pool.step(np.array([action], np.int32))
        episode.actions.append(action)
        episode.rewards.append(float(reward[0]))
        episode.ends.append((bool(terminated[0]), bool(truncated[0])))


def as_object(code: np.ndarray) -> WorldObj | None:
    kind, color = IDX_TO_OBJECT[int(code[0])], IDX_TO_COLOR[int(code[1])]
    if kind == "door":
        return Door(color, is_open=code[2] == 0, is_locked=code[2] == 2)
    return {"wall": Wall(), "goal": Goal()}.get(kind)


def rebuild(env: Any, episode: Recorded) -> None:
    """Puts the grid that was seen in the episode, as it was first seen, into MiniGrid."""
    seen: dict[tuple[int, int], np.ndarray] = {}
    for image, position, direction in zip(
        episode.images, episode.positions, episode.directions, strict=True
    ):
        env.agent_pos, env.agent_dir = position, direction
        for x in range(env.width):
            for y in range(env.height):
                i, j = env.get_view_coords(x, y)
                visible = 0 <= i < 7 and 0 <= j < 7 and image[i, j, 0] > 0
                if visible and (x, y) != position:
                    seen.setdefault((x, y), image[i, j])
    env.grid = Grid(env.width, env.height)
    for x in range(env.width):
        for y in range(env.height):
            env.grid.set(x, y, as_object(seen[x, y]) if (x, y) in seen else None)
    env.agent_pos, env.agent_dir = episode.positions[0], episode.directions[0]
    env.step_count, env.carrying = 0, None


def test_grid_worlds_are_the_same() -> None:
    rng = np.random.default_rng(5)
    env: Any = env_maker(GRID)().unwrapped
    arrived = cut = 0
    for seed in range(100):
        episode = play_in_pool(seed, rng)
        env.reset(seed=0)
        rebuild(env, episode)
        np.testing.assert_array_equal(env.gen_obs()["image"], episode.images[0])
        for step, action in enumerate(episode.actions):
            observation, reward, *ends, _ = env.step(action)
            np.testing.assert_array_equal(observation["image"], episode.images[step + 1])
            assert observation["direction"] == episode.directions[step + 1]
            assert reward == pytest.approx(episode.rewards[step])
            assert tuple(ends) == episode.ends[step]
        arrived += episode.ends[-1][0]
        cut += episode.ends[-1][1]
    assert arrived >= 2
    assert cut >= 2


def test_episodes_start_in_the_same_places() -> None:
    """The same positions and directions occur, and about equally often."""
    env: Any = env_maker(GRID)().unwrapped
    pool = pool_engine(GRID, 1)
    pool.restart([0])
    theirs: dict[tuple[int, ...], int] = {}
    ours: dict[tuple[int, ...], int] = {}
    for seed in range(1500):
        observation, info = pool._pool.reset()
        start = (*info["agent_pos"][0].tolist(), int(observation["direction"][0]))
        theirs[start] = theirs.get(start, 0) + 1
        env.reset(seed=seed)
        start = (*map(int, env.agent_pos), int(env.agent_dir))
        ours[start] = ours.get(start, 0) + 1
    assert set(ours) == set(theirs)
    expected = 1500 / len(ours)
    for start, count in ours.items():
        assert abs(count - theirs[start]) < 6 * np.sqrt(2 * expected)


def test_a_door_in_envpools_multi_room_opens_onto_a_wall() -> None:
    """The reason not to list it: the room has no other door, and the goal is outside of it."""
    pool = envpool.make_gymnasium(MULTI_ROOM, num_envs=1, seed=[1])
    pool.reset()
    _, info = pool.reset()
    assert info["agent_pos"].tolist() == [[13, 6]]
    left, right, forward, toggle = 0, 1, 2, 5
    for action in (left, forward, left, forward, right, toggle, forward):
        observation, *_, info = pool.step(np.array([action], np.int32))
    assert info["agent_pos"].tolist() == [[15, 5]]  # in the door
    image = observation["image"][0, :, :, 0]  # the agent is at (3, 6) and looks at (3, 5)
    assert [IDX_TO_OBJECT[image[at]] for at in ((2, 6), (3, 5), (4, 6))] == ["wall"] * 3
    pool.close()


def test_any_environment_of_the_users_own() -> None:
    def make() -> gym.Env[Any, Any]:
        return TimeLimit(gym.make("CartPole-v1").unwrapped, 5)

    assert task_spec(make()) == TaskSpec(4, "float32", 2, shape=(4,))
    engine = make_engine(make, 2)
    engine.restart([0, 1])
    truncated = [engine.step(np.array([0, 1])).truncated.tolist() for _ in range(5)]
    assert truncated[-1] == [True, True]
