"""Collection of a data set by a trained policy, with optional noise."""

import contextlib
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from rewardshift.checks import Count, Natural, NonNegative, Share, checked
from rewardshift.data.dataset import Dataset
from rewardshift.envs.tasks import UnitBox, env_maker, env_name, flatten
from rewardshift.episodes import Step, episode_steps
from rewardshift.errors import InputError, blaming, shown
from rewardshift.training.evaluation import derive_seed
from rewardshift.training.policy import Policy


def collect(
    policy: Policy,
    transitions: int,
    noise: float = 0.0,
    random_actions: float = 0.0,
    seed: int = 0,
    *,
    on_progress: Callable[[int], None] | None = None,
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
        on_progress: A function to call after every transition, with their number so far.
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
    spec, generator = policy.spec, np.random.default_rng(seed)
    behave = partial(_action, policy, noise, random_actions, generator)
    steps: list[Step] = []
    episodes = 0
    with contextlib.closing(env_maker(policy.env)()) as env:
        while len(steps) < transitions:
            with blaming(f"the environment {env}, when reset after step {len(steps)},"):
                first, _ = env.reset(seed=derive_seed(seed, episodes))
            episode = episode_steps(env, behave, first, partial(flatten, spec=spec))
            episodes += 1
            for step in islice(episode, transitions - len(steps)):
                own = env.action(step.action) if isinstance(env, UnitBox) else step.action
                steps.append(step._replace(action=own))
                if on_progress is not None:
                    on_progress(len(steps))
    observation, action, reward, following, terminated, truncated = zip(*steps, strict=True)
    dataset = Dataset(
        name=env_name(policy.env),
        observation=np.stack(observation),
        action=np.array(action, np.float32 if spec.action_size else np.int32),
        reward=np.array(reward, np.float32),
        next_observation=np.stack(following),
        terminated=np.array(terminated, bool),
        # As data sets are read: what is terminal is not truncated.
        truncated=np.array(truncated, bool) & ~np.array(terminated, bool),
        env=env_name(policy.env),
    )
    dataset.truncated[-1] |= not dataset.terminated[-1]
    return dataset


def _action(
    policy: Policy,
    noise: float,
    random_actions: float,
    generator: np.random.Generator,
    observation: np.ndarray,
) -> Any:
    """The policy's action with its noise. Every one draws the same number of random numbers."""
    size, at_random = policy.spec.action_size, generator.random() < random_actions
    if not size:
        drawn = int(generator.integers(policy.spec.num_actions))
        return drawn if at_random else int(policy.greedy(observation))
    uniform = generator.uniform(-1, 1, size).astype(np.float32)
    deviation = generator.standard_normal(size, np.float32)
    if at_random:
        return uniform
    return np.clip(policy.greedy(observation) + np.float32(noise) * deviation, -1, 1)
