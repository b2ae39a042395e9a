"""The doctor for our own runs, from their checkpoints and their replay or data set."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Unpack

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from rewardshift.doctor import (
    AgentView,
    Diagnosis,
    Earlier,
    Options,
    Target,
    Transitions,
    diagnose,
)
from rewardshift.envs.tasks import (
    MakeEnv,
    TaskSpec,
    UnitBox,
    env_maker,
    flatten,
    refuse_shifted,
    task_spec,
)
from rewardshift.errors import InputError
from rewardshift.files import as_path
from rewardshift.training.budgets import OnlineBudget
from rewardshift.training.checkpoint import Checkpoints
from rewardshift.training.config import RunConfig
from rewardshift.training.policy import Policy
from rewardshift.training.replay import record_type
from rewardshift.training.run_folder import how_to_resume, read_config


def doctor(
    folder: Path | str,
    run_seed: int | None = None,
    *,
    env: str | MakeEnv | None = None,
    **options: Unpack[Options],
) -> Diagnosis:
    """A diagnosis of a run at its last checkpoint.

    Args:
        folder: The run's folder, which is only read.
        run_seed: The run's seed to examine; by default its first.
        env: The environment, if it is not the run's own: a registered name, or a function that
            makes it.
        options: `episodes`, `steps`, `states` and `seed` of `diagnose`.
    """
    folder = as_path("folder", folder)
    config = read_config(folder)
    row = config.row(run_seed)
    agent = _agent_view(config, _policies(folder, config, row))
    data = _data(folder, config, row)
    with _opened(config.env if env is None else env, config.spec) as made:
        return diagnose(agent, made, data, **options)


def _policies(folder: Path, config: RunConfig, row: int) -> list[Policy]:
    """The policies of a row: untrained, and at every kept checkpoint."""
    agent, spec, seed = config.agent, config.spec, config.seeds[row]
    if getattr(agent, "intrinsic", None) is not None:
        raise InputError(
            "the agent adds an intrinsic reward, so its values cannot be compared with returns;"
            " the doctor takes runs without one"
        )
    # As a training of this seed begins.
    fresh = agent.init(jax.random.split(jax.random.key(seed))[0], spec)
    rows = len(config.seeds)
    template = jax.tree.map(lambda leaf: np.empty((rows, *leaf.shape), leaf.dtype), fresh)
    kept = Checkpoints(folder / "checkpoints", config.digests).agents(template)
    if not kept:
        raise InputError(
            f"the run in {str(folder)!r} has no checkpoint yet: {how_to_resume(folder)}"
        )
    trained = [(step, jax.tree.map(lambda leaf: jnp.asarray(leaf[row]), one)) for step, one in kept]
    if hasattr(fresh, "normaliser"):  # which has seen nothing at first
        fresh = fresh._replace(normaliser=trained[-1][1].normaliser)
    states = [(0, fresh), *trained]
    return [Policy(agent, spec, state, config.env, seed, step) for step, state in states]


def _agent_view(config: RunConfig, policies: list[Policy]) -> AgentView:
    """The last policy as the doctor sees it; the one before it is its past."""
    *_, before, last = policies
    agent, spec = config.agent, config.spec
    leader = int(getattr(getattr(last.state, "lead", None), "leader", 0))
    warm_up = agent.warm_up if config.data is None else 0
    updates, until = (max(0, policy.step - warm_up) for policy in (last, before))
    tau, n_step = getattr(agent, "tau", None), getattr(agent, "n_step", 1)
    return AgentView(
        value=_leading(last, leader),
        act=lambda seen: np.asarray(last.act(seen)),
        actions=_own_actions(spec),
        gamma=agent.gamma,
        shift=last.shifts[leader],
        fresh=_leading(policies[0], leader),
        target=None if tau is None else Target(tau, agent.period, updates, n_step),
        earlier=None if before.step == 0 else Earlier(_leading(before, leader), updates - until),
        agent_observation=lambda raw: flatten(raw, spec),
        env_action=lambda action: int(action) if np.ndim(action) == 0 else action,
    )


def _leading(policy: Policy, leader: int) -> Any:
    """The Q function of the leading member, on its own scale."""
    return lambda observations, actions: policy.value(observations, actions).shifted[leader]


def _own_actions(spec: TaskSpec) -> gym.Space[Any]:
    if spec.num_actions:
        return gym.spaces.Discrete(spec.num_actions)
    low, high = np.asarray(spec.low, np.float32), np.asarray(spec.high, np.float32)
    return gym.spaces.Box(low, high, dtype=np.float32)


def _data(folder: Path, config: RunConfig, row: int) -> Transitions:
    """The transitions that the run learned from, in a data set or in its replay."""
    if config.data is not None:
        data = config.data.load()
        return Transitions(
            observation=data.observation,
            action=data.action,
            reward=data.reward,
            terminated=data.terminated,
            next_observation=data.next_observation,
        )
    spec, path = config.spec, folder / "checkpoints"
    rows = len(config.row_seeds)
    segments = Checkpoints(path, config.digests, record_type(spec), rows).transitions()
    parts = [segment[row].copy() for segment in segments]
    if not parts:
        raise InputError(f"the last checkpoint of the run in {str(folder)!r} has no replay")
    kept, budget = np.concatenate(parts), config.budget
    assert isinstance(budget, OnlineBudget)
    size = min(len(kept), budget.capacity)  # a checkpoint keeps some that have left the replay
    age, action = np.arange(len(kept))[::-1], kept["action"]
    return Transitions(
        observation=kept["observation"],
        action=spec.own_scale(action) if spec.action_size else action,
        reward=kept["reward"],
        terminated=kept["terminated"] != 0,
        next_observation=kept["next_observation"],
        ended=kept["ended"] != 0,
        settled=(age >= size / 2) & (age < size),
    )


@contextlib.contextmanager
def _opened(env: str | MakeEnv, spec: TaskSpec) -> Iterator[gym.Env[Any, Any]]:
    """The environment with its own actions; raises if its task is not the run's."""
    with contextlib.closing(refuse_shifted(env_maker(env)())) as made:
        found = task_spec(made)
        if found != spec:
            raise InputError(f"the run was trained on {spec}; this environment has {found}")
        yield made.env if isinstance(made, UnitBox) else made
