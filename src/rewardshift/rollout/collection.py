"""A data set from a trained run: its policy in its environment, with as much noise as wanted."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from rewardshift.data.dataset import Dataset
from rewardshift.envs.tasks import TaskSpec, UnitBox, env_maker, flatten
from rewardshift.errors import FOREIGN, InputError, failed
from rewardshift.rollout.seeding import derive_seed
from rewardshift.training.policy import Policy, load_policy

# Takes the number of transitions so far and the returns of the episodes that have ended.
OnCollected = Callable[[int, list[float]], None]


def collect(
    folder: Path | str,
    transitions: int,
    noise: float = 0.0,
    random_actions: float = 0.0,
    seed: int = 0,
    run_seed: int = 0,
    *,
    on_progress: OnCollected | None = None,
) -> Dataset:
    """Rolls out the greedy policy of a run in its environment.

    The same for the same arguments. The last episode is truncated where there are enough
    transitions. Actions are kept on the environment's own scale.

    Args:
        folder: The run's folder.
        transitions: How many to collect.
        noise: Standard deviation of the noise on the actions, which are in [-1, 1] for it.
        random_actions: The probability of an action that is drawn uniformly instead.
        seed: The seed of all that is random here: starts of episodes, noise, random actions.
        run_seed: Which of the run's seeds acts.
        on_progress: Called after every transition.
    """
    if transitions < 1:
        raise InputError(f"transitions must be 1 or more, got {transitions}")
    if seed < 0:
        raise InputError(f"seed must be 0 or more, got {seed}")
    if not (noise >= 0 and math.isfinite(noise)):
        raise InputError(f"noise must be finite and 0 or more, got {noise}")
    if not 0 <= random_actions <= 1:
        raise InputError(f"random_actions must be in [0, 1], got {random_actions}")
    policy = load_policy(Path(folder), run_seed)
    if noise and not policy.spec.action_size:
        raise InputError(
            f"noise is for continuous actions, {policy.config.env} has discrete ones; use"
            " random_actions"
        )
    behave = _behaviour(policy, noise, random_actions, np.random.default_rng(seed))
    env = env_maker(policy.config.env)()
    try:
        steps = _roll_out(env, policy.spec, behave, transitions, seed, on_progress)
    finally:
        env.close()
    observation, action, reward, following, terminated, truncated = zip(*steps, strict=True)
    return Dataset(
        name=str(folder),
        observation=np.stack(observation),
        action=np.array(action, np.float32 if policy.spec.action_size else np.int32),
        reward=np.array(reward, np.float32),
        next_observation=np.stack(following),
        terminated=np.array(terminated, bool),
        truncated=np.array(truncated, bool),
        env=policy.config.env,
    )


def _behaviour(
    policy: Policy, noise: float, random_actions: float, generator: np.random.Generator
) -> Callable[[np.ndarray], Any]:
    """The policy with its noise. Draws as many numbers for every action, whatever it is."""
    size, count = policy.spec.action_size, policy.spec.num_actions

    def behave(observation: np.ndarray) -> Any:
        at_random = generator.random() < random_actions
        if not size:
            drawn = int(generator.integers(count))
            return drawn if at_random else int(policy.act(observation))
        uniform = generator.uniform(-1, 1, size).astype(np.float32)
        deviation = generator.standard_normal(size, np.float32)
        if at_random:
            return uniform
        return np.clip(policy.act(observation) + np.float32(noise) * deviation, -1, 1)

    return behave


def _roll_out(
    env: gym.Env[Any, Any],
    spec: TaskSpec,
    behave: Callable[[np.ndarray], Any],
    transitions: int,
    seed: int,
    on_progress: OnCollected | None,
) -> list[tuple[Any, ...]]:
    """The transitions, each in the order of the data set's fields."""
    steps: list[tuple[Any, ...]] = []
    returns: list[float] = []
    while len(steps) < transitions:
        observation = flatten(env.reset(seed=derive_seed(seed, len(returns)))[0], spec)
        total, ended = 0.0, False
        while not ended:
            action = behave(observation)
            try:
                raw, reward, terminated, truncated, _ = env.step(action)
                following = flatten(raw, spec)
            except FOREIGN as error:
                raise failed(f"the environment {env}, in step {len(steps) + 1},", error) from error
            truncated = truncated or (len(steps) == transitions - 1 and not terminated)
            own = _own_scale(env, action)
            steps.append((observation, own, reward, following, terminated, truncated))
            total, ended = total + float(reward), terminated or truncated
            observation = following
            if ended:
                returns.append(total)
            if on_progress is not None:
                on_progress(len(steps), returns)
    return steps


def _own_scale(env: gym.Env[Any, Any], action: Any) -> Any:
    """What the environment itself is handed by `env_maker`'s wrapper, if there is one."""
    return env.action(action) if isinstance(env, UnitBox) else action
