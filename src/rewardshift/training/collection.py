"""Collection of a data set by a trained policy, with optional noise."""

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

from rewardshift.checks import Count, Natural, NonNegative, Share, checked
from rewardshift.data.dataset import Dataset
from rewardshift.envs.tasks import TaskSpec, UnitBox, env_maker, env_name, flatten
from rewardshift.episodes import episode_steps
from rewardshift.errors import InputError, blaming, shown
from rewardshift.training.evaluation import derive_seed
from rewardshift.training.policy import Policy

# A function of the number of transitions so far and the returns of the finished episodes.
OnCollected = Callable[[int, list[float]], None]


def collect(
    policy: Policy,
    transitions: int,
    noise: float = 0.0,
    random_actions: float = 0.0,
    seed: int = 0,
    *,
    on_progress: OnCollected | None = None,
) -> Dataset:
    """Collects a data set with a greedy policy in its environment.

    The same arguments give the same data set. The last episode is truncated when there are
    enough transitions. Actions are stored on the environment's own scale.

    Args:
        policy: The policy, for example `load(folder)`.
        transitions: The number of transitions to collect.
        noise: Standard deviation of the noise on continuous actions, on the scale [-1, 1].
        random_actions: The probability of a uniformly random action.
        seed: The seed of the starts of episodes, the noise and the random actions.
        on_progress: A function to call after every transition.
    """
    if not isinstance(policy, Policy):
        raise InputError(f"policy must be a Policy, such as load('FOLDER'), got {shown(policy)}")
    transitions, seed = checked("transitions", Count, transitions), checked("seed", Natural, seed)
    noise = checked("noise", NonNegative, noise)
    random_actions = checked("random_actions", Share, random_actions)
    if noise and not policy.spec.action_size:
        raise InputError(
            f"noise is for continuous actions, {env_name(policy.env)} has discrete ones; use"
            " random_actions"
        )
    behave = _behaviour(policy, noise, random_actions, np.random.default_rng(seed))
    env = env_maker(policy.env)()
    try:
        steps = _roll_out(env, policy.spec, behave, transitions, seed, on_progress)
    finally:
        env.close()
    observation, action, reward, following, terminated, truncated = zip(*steps, strict=True)
    return Dataset(
        name=env_name(policy.env),
        observation=np.stack(observation),
        action=np.array(action, np.float32 if policy.spec.action_size else np.int32),
        reward=np.array(reward, np.float32),
        next_observation=np.stack(following),
        terminated=np.array(terminated, bool),
        truncated=np.array(truncated, bool),
        env=env_name(policy.env),
    )


def _behaviour(
    policy: Policy, noise: float, random_actions: float, generator: np.random.Generator
) -> Callable[[np.ndarray], Any]:
    """The policy with its noise. Every action draws the same number of random numbers."""
    size, count = policy.spec.action_size, policy.spec.num_actions

    def behave(observation: np.ndarray) -> Any:
        at_random = generator.random() < random_actions
        if not size:
            drawn = int(generator.integers(count))
            return drawn if at_random else int(policy.greedy(observation))
        uniform = generator.uniform(-1, 1, size).astype(np.float32)
        deviation = generator.standard_normal(size, np.float32)
        if at_random:
            return uniform
        return np.clip(policy.greedy(observation) + np.float32(noise) * deviation, -1, 1)

    return behave


def _roll_out(
    env: gym.Env[Any, Any],
    spec: TaskSpec,
    behave: Callable[[np.ndarray], Any],
    transitions: int,
    seed: int,
    on_progress: OnCollected | None,
) -> list[tuple[Any, ...]]:
    """The transitions, with fields in the order of the data set's."""
    steps: list[tuple[Any, ...]] = []
    returns: list[float] = []
    while len(steps) < transitions:
        with blaming(f"the environment {env}, when reset after step {len(steps)},"):
            first, _ = env.reset(seed=derive_seed(seed, len(returns)))
        total = 0.0
        for moment in episode_steps(env, behave, first, partial(flatten, spec=spec)):
            enough = len(steps) == transitions - 1
            truncated = moment.truncated or (enough and not moment.terminated)
            own = env.action(moment.action) if isinstance(env, UnitBox) else moment.action
            steps.append(moment._replace(action=own, truncated=truncated))
            total += moment.reward
            if moment.terminated or truncated:
                returns.append(total)
            if on_progress is not None:
                on_progress(len(steps), returns)
            if enough:
                break
    return steps
