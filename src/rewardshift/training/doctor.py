"""The doctor for our own runs, from their checkpoints and their replay or data set."""

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from rewardshift.agents.base import Agent
from rewardshift.doctor import (
    AgentView,
    Diagnosis,
    Earlier,
    History,
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
from rewardshift.training.checkpoint import Checkpoints
from rewardshift.training.config import RunConfig
from rewardshift.training.policy import Policy
from rewardshift.training.replay import RecordLayout
from rewardshift.training.run_folder import how_to_resume, read_config

KEPT = 20_000  # transitions of a replay that are looked at


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
    agent, spec = config.agent, config.spec
    if getattr(agent, "intrinsic", None) is not None:
        raise InputError(
            "the agent adds an intrinsic reward, so its values cannot be compared with returns;"
            " the doctor takes runs without one"
        )

    fresh, rows = _fresh(agent, spec, config.seeds[row]), len(config.seeds)
    template = jax.tree.map(lambda leaf: np.empty((rows, *leaf.shape), leaf.dtype), fresh)
    kept = Checkpoints(folder / "checkpoints", config.digests).agents(template)
    if not kept:
        raise InputError(
            f"the run in {str(folder)!r} has no checkpoint yet: {how_to_resume(folder)}"
        )
    trained = [(step, jax.tree.map(lambda leaf: jnp.asarray(leaf[row]), one)) for step, one in kept]
    if hasattr(fresh, "normaliser"):  # which has seen nothing at first
        fresh = fresh._replace(normaliser=trained[-1][1].normaliser)
    seed = config.seeds[row]
    return [
        Policy(agent, spec, state, config.env, seed, step) for step, state in [(0, fresh), *trained]
    ]


# The agent is static and the state is not, so that seeds and checkpoints share what is compiled.
@partial(jax.jit, static_argnums=(0, 1))
def _fresh(agent: Agent, spec: TaskSpec, seed: Any) -> Any:
    """The agent's state before its first update, as a training of this seed begins."""
    return agent.init(jax.random.split(jax.random.key(seed))[0], spec)


@partial(jax.jit, static_argnums=0)
def _greedy(agent: Agent, state: Any, observations: Any) -> Any:
    return jax.vmap(lambda observation: agent.greedy(state, observation))(observations)


def _agent_view(config: RunConfig, policies: list[Policy]) -> AgentView:
    """The last policy as the doctor sees it; the one before it is its past."""
    fresh, *before, last = policies
    agent, spec = config.agent, config.spec
    leader = int(getattr(getattr(last.state, "lead", None), "leader", 0))
    warm_up = agent.warm_up if config.data is None else 0
    updates = max(0, last.step - warm_up)
    tau, n_step = getattr(agent, "tau", None), getattr(agent, "n_step", 1)
    since = updates - max(0, before[-1].step - warm_up) if before else 0
    return AgentView(
        value=_leading(last, leader),
        act=lambda seen: spec.own_scale(np.asarray(_greedy(agent, last.state, seen))),
        actions=_own_actions(spec),
        gamma=agent.gamma,
        shift=last.shifts[leader],
        fresh=_leading(fresh, leader),
        target=None if tau is None else Target(tau, agent.period, updates, n_step),
        earlier=Earlier(_leading(before[-1], leader), since) if before else None,
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
    """The transitions that the run learned from."""
    if config.data is None:
        return _replay(folder, config, row)
    data = config.data.load()
    return Transitions(
        observation=data.observation,
        action=data.action,
        reward=data.reward,
        terminated=data.terminated,
        next_observation=data.next_observation,
    )


def _replay(folder: Path, config: RunConfig, row: int) -> Transitions:
    """A sample of the replay, with the rewards of all of it."""
    spec = config.spec
    record = RecordLayout(spec.features, spec.dtype, spec.action_size).record
    rng = np.random.default_rng(0)
    seeds = len(config.seeds)
    checkpoints = Checkpoints(folder / "checkpoints", config.digests, record, seeds)
    parts = [part[row].copy() for part in checkpoints.transitions()]
    if not parts:
        raise InputError(f"the last checkpoint of the run in {str(folder)!r} has no replay")
    mine = np.concatenate(parts)
    capacity = getattr(config.budget, "capacity", KEPT)
    chosen = np.flatnonzero(rng.random(len(mine)) < KEPT / min(config.budget.steps, capacity))
    rows, age = mine[chosen], len(mine) - 1 - chosen
    size = min(len(mine), capacity)  # a checkpoint keeps some that have left the replay
    actions = rows["action"]
    return Transitions(
        observation=rows["observation"],
        action=spec.own_scale(actions) if spec.action_size else actions,
        reward=rows["reward"],
        terminated=rows["terminated"] != 0,
        next_observation=rows["next_observation"],
        whole=History(mine["reward"], mine["terminated"] != 0, mine["ended"] != 0),
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
