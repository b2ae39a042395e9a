"""The doctor for algorithms of d3rlpy: afterwards, or as evaluators of `fit`."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Unpack

import gymnasium as gym
import numpy as np

from rewardshift.checks import Natural, checked
from rewardshift.doctor import (
    AgentView,
    Diagnosis,
    History,
    Options,
    Target,
    Transitions,
    diagnose,
)
from rewardshift.doctor.diagnosis import scalar_names
from rewardshift.errors import InputError, needs, shown
from rewardshift.integrations.d3rlpy import primal_rewards, trained_shift
from rewardshift.probe import same_randomness
from rewardshift.shift import Shift, as_single_shift

with needs("d3rlpy"):
    from d3rlpy.algos import QLearningAlgoBase
    from d3rlpy.constants import ActionSpace
    from d3rlpy.dataset import EpisodeBase, ReplayBuffer

KEPT = 20_000  # transitions of a data set that are looked at
EVALUATED = ("belief/overestimation", "untried/advantage", "untried/pull")


def doctor(
    algo: QLearningAlgoBase[Any, Any],
    dataset: ReplayBuffer,
    env: gym.Env[Any, Any] | None = None,
    *,
    shift: float | Shift | None = None,
    **options: Unpack[Options],
) -> Diagnosis:
    """A diagnosis of an algorithm with a Q function; values are the mean of its critics.

    Args:
        algo: A trained algorithm.
        dataset: The data set that it learned from.
        env: An environment for episodes of the policy. Without one, estimates are compared with
            the returns in the data.
        shift: The shift of the training; by default that of the data set or of the reward scaler.
        options: `episodes`, `steps`, `states` and `seed` of `diagnose`.
    """
    if not isinstance(algo, QLearningAlgoBase):
        raise InputError(f"expected an algorithm of d3rlpy with a Q function, got {shown(algo)}")
    if algo.impl is None:
        raise InputError(f"the {type(algo).__name__} has no networks yet: call fit first")
    if not isinstance(dataset, ReplayBuffer) or not dataset.episodes:
        raise InputError("the doctor needs the data set of d3rlpy that the algorithm learned from")
    trained = trained_shift(algo, dataset) if shift is None else as_single_shift(shift)
    rng = np.random.default_rng([0xD3, checked("seed", Natural, options.get("seed", 0))])
    with same_randomness():
        data = _transitions(dataset, rng)
        agent = _agent_view(algo, trained, _space(algo, data, env))
        return diagnose(agent, env, data, **options)


def evaluators(
    env: gym.Env[Any, Any] | None = None, numbers: Sequence[str] = EVALUATED, **options: Any
) -> dict[str, Callable[[Any, Any], float]]:
    """Evaluators for `fit(..., evaluators=...)`, which logs one number for each.

    They share one diagnosis per evaluation. A number that is unknown is NaN.

    Args:
        env: See `doctor`.
        numbers: The numbers by `group/name`, as in `Diagnosis.scalars`.
        options: Other arguments of `doctor`.
    """
    for name in numbers:
        if name not in scalar_names():
            raise InputError(f"no number {name!r}; there are {', '.join(scalar_names())}")
    latest: dict[tuple[int, int], Diagnosis] = {}

    def evaluate(name: str, algo: Any, dataset: Any) -> float:
        now = (id(algo), int(algo.grad_step))
        if now not in latest:
            latest.clear()
            latest[now] = doctor(algo, dataset, env, **options)
        return latest[now].scalars().get(name, math.nan)

    return {f"doctor_{name.replace('/', '_')}": partial(evaluate, name) for name in numbers}


def _agent_view(algo: Any, trained: Shift, space: gym.Space[Any]) -> AgentView:
    fresh = algo.config.create(device=False)
    fresh.create_impl(algo.observation_shape, algo.action_size)
    return AgentView(
        value=algo.predict_value,
        act=lambda observations: np.asarray(algo.predict(observations)),
        actions=space,
        gamma=algo.gamma,
        shift=Shift(trained.bias, trained.scale, None, trained.terminal),
        fresh=fresh.predict_value,
        target=_target(algo),
        agent_observation=_single_precision,
        env_action=int if isinstance(space, gym.spaces.Discrete) else np.asarray,
    )


def _single_precision(observation: Any) -> np.ndarray:
    """An observation as d3rlpy's networks take it; whole numbers, such as pixels, stay."""
    array = np.asarray(observation)
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def _target(algo: Any) -> Target | None:
    """The rule of the target network."""
    config, updates = algo.config, int(algo.grad_step)
    if hasattr(config, "target_update_interval"):
        return Target(1.0, config.target_update_interval, updates)
    if hasattr(config, "tau"):
        return Target(config.tau, getattr(config, "update_actor_interval", 1), updates)
    return None


def _space(algo: Any, data: Transitions, env: gym.Env[Any, Any] | None) -> gym.Space[Any]:
    """The space of actions: the environment's, or what the data span."""
    if algo.get_action_type() == ActionSpace.DISCRETE:
        return gym.spaces.Discrete(int(algo.action_size))
    if env is not None:
        return env.action_space
    low, high = data.action.min(axis=0), data.action.max(axis=0)
    return gym.spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)


def _transitions(dataset: ReplayBuffer, rng: np.random.Generator) -> Transitions:
    """Whole episodes, as many as are looked at, with the rewards of all."""
    every = list(dataset.episodes)
    if isinstance(every[0].observations, tuple | list):
        raise InputError("the doctor takes observations that are one array, got several parts")
    chosen, count = [], 0
    for number in rng.permutation(len(every)):
        if count >= KEPT:
            break
        chosen.append(every[number])
        count += len(every[number])
    observation, action, following, reward, terminated, ended = _joined(_columns, chosen)
    return Transitions(
        observation=observation,
        action=action[:, 0] if action.dtype.kind in "iu" and action.ndim == 2 else action,
        reward=reward,
        terminated=terminated,
        next_observation=following,
        ended=ended,
        whole=History(*_joined(_rewards, every)),
    )


def _joined(
    columns: Callable[[EpisodeBase], tuple[np.ndarray, ...]], episodes: Sequence[EpisodeBase]
) -> tuple[np.ndarray, ...]:
    """The columns of all episodes, one after the other."""
    return tuple(map(np.concatenate, zip(*map(columns, episodes), strict=True)))


def _columns(episode: EpisodeBase) -> tuple[np.ndarray, ...]:
    """The transitions of an episode; d3rlpy does not keep what follows the last observation."""
    seen, actions = np.asarray(episode.observations), np.asarray(episode.actions)
    count = episode.transition_count
    following = seen[np.minimum(np.arange(1, count + 1), len(seen) - 1)]
    return seen[:count], actions[:count], following, *_rewards(episode)


def _rewards(episode: EpisodeBase) -> tuple[np.ndarray, ...]:
    """The primal rewards, the terminal flags and the ends of an episode's transitions."""
    count = episode.transition_count
    last = np.arange(count) == count - 1
    return primal_rewards(episode)[:count, 0], last & episode.terminated, last
