"""The checks of a run before anything is built or written.

They probe the environment once and trace the agent's functions once. Tracing finds shapes and types
without computing values, so it is quick. An agent that changes the type of an array in its state,
for example, would train, but its run could never resume.
"""

import math
import re
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rewardshift.agents.base import Agent
from rewardshift.agents.selection import Drawing, Mixing
from rewardshift.checks import Natural, checked
from rewardshift.envs.goals import probe_goals
from rewardshift.envs.tasks import MakeEnv, TaskSpec, env_name, probe_spec
from rewardshift.errors import InputError, one_line, shown
from rewardshift.training.budgets import OfflineBudget, OnlineBudget
from rewardshift.training.config import DataConfig, RunConfig, chosen_seeds
from rewardshift.training.hindsight import Hindsight
from rewardshift.training.metrics import Columns, OfflineRow, OnlineRow
from rewardshift.training.online import one_step
from rewardshift.training.replay import record_type, unpack
from rewardshift.training.trainer import checked_action, checked_update

NUMBER = jax.ShapeDtypeStruct((), jnp.float32)
FLAG = jax.ShapeDtypeStruct((), jnp.bool_)


def _check_online(agent: Agent, env: str | MakeEnv, budget: OnlineBudget) -> None:
    """Refuses an agent or a budget that does not suit a training in an environment."""
    if not agent.defines("act"):
        raise InputError(f"{type(agent).__name__} learns from a data set, not from {env}")
    if budget.hindsight is not None:
        _check_goals(budget.hindsight, agent, env)
    if agent.warm_up >= budget.steps:
        raise InputError(
            f"nothing would be learned: the warm-up is {agent.warm_up} steps,"
            f" the whole training {budget.steps}"
        )
    if budget.diagnose and not agent.defines("values"):
        raise InputError(
            "diagnose compares values of actions, so it needs an agent that tells them, got"
            f" {type(agent).__name__}"
        )


def _check_offline(agent: Agent, budget: OfflineBudget) -> None:
    """Refuses an agent or a budget that does not suit a training on fixed data."""
    for name in ("updates", "evaluate_every", "checkpoint_every"):
        if getattr(budget, name) % agent.period:
            raise InputError(
                f"{name} must be a multiple of {agent.period}, the length of the update cycle of"
                f" {type(agent).__name__}, got {getattr(budget, name)}"
            )
    agent.check_offline(budget.updates)


def checked_config(
    agent: Agent,
    env: str | MakeEnv,
    seeds: int | tuple[int, ...],
    budget: OnlineBudget | OfflineBudget,
    data: DataConfig | None = None,
    biases: tuple[float, ...] = (),
) -> tuple[RunConfig, Columns]:
    """The configuration and the columns of a run, once its agent and its task fit together."""
    checked("agent", Agent, agent)
    try:
        hash(agent)  # as compiling needs it
    except TypeError as error:
        raise InputError(
            "an agent and its parts must be frozen dataclasses, with settings such as numbers,"
            f" texts and tuples: {error}, got {shown(agent)}"
        ) from None
    if data is None:
        _check_online(agent, env, checked("budget", OnlineBudget, budget))
    else:
        _check_offline(agent, checked("budget", OfflineBudget, budget))
    spec = probe_spec(env)
    if agent.continuous != bool(spec.action_size):
        kinds = ("continuous", "discrete") if agent.continuous else ("discrete", "continuous")
        raise InputError(
            f"{type(agent).__name__} needs {kinds[0]} actions, {env} has {kinds[1]} ones"
        )
    config = RunConfig(agent, env_name(env), spec, chosen_seeds(seeds), budget, data, (), biases)
    _check_selection(agent)
    state = jax.eval_shape(lambda: agent.init(jax.random.key(0), spec))
    _check_policy(agent, spec, state)
    columns = _traced_columns(OnlineRow if data is None else OfflineRow, agent, spec, state)
    _check_memory(config, state)
    return config, columns


def _check_selection(agent: Any) -> None:
    """Raises if the results of an agent's selection break the contract."""
    members, selection = agent.members, getattr(agent, "selection", None)
    if isinstance(selection, Drawing):
        draws = jnp.linspace(0, 1, 9)[:-1]
        drawn = np.array([selection.draw(jnp.zeros(len(members)), draw) for draw in draws])
        is_number = drawn.ndim == 1 and drawn.dtype.kind in "iuf"
        if not is_number or drawn.min() < 0 or drawn.max() >= len(members):
            raise InputError(
                f"draw of {shown(selection)} must return a member, from 0 to {len(members) - 1},"
                f" got {shown(drawn.tolist())}"
            )
    elif isinstance(selection, Mixing):
        biases = jnp.array([shift.bias / shift.scale for shift in members])
        weights = np.asarray(selection.weights(biases))
        if weights.shape != biases.shape or not np.isfinite(weights).all():
            raise InputError(
                f"weights of {shown(selection)} must return one number for each of {len(members)}"
                f" members, all of them finite numbers, got {shown(weights)}"
            )


def _check_goals(hindsight: Hindsight, agent: Agent, env: str | MakeEnv) -> None:
    """Refuses settings and tasks that do not work with hindsight."""
    if agent.n_step != 1:
        raise InputError(f"hindsight needs n_step=1, got {agent.n_step}")
    if getattr(agent, "intrinsic", None) is not None:
        raise InputError(
            "hindsight changes the goal of a transition, and an intrinsic reward belongs to the"
            f" old goal: use one of the two, got {shown(agent)}"
        )
    task = probe_goals(env)
    lowest, highest = task.rewards[0], task.rewards[-1]
    low, high = agent.reward_range or (lowest, highest)
    if not low <= lowest <= highest <= high:
        raise InputError(
            f"reward_range must hold the rewards of {env} before any shift, {lowest:g} to"
            f" {highest:g} and maybe more; got {low:g} to {high:g}"
        )
    if task.ends and not hindsight.success_ends:
        raise InputError(f"{env} terminates at its goal: hindsight needs success_ends")
    if hindsight.success_ends and len(task.rewards) > 2:
        raise InputError(
            f"success_ends needs rewards of two values, {env} pays more, such as"
            f" {', '.join(f'{reward:g}' for reward in task.rewards[:3])}"
        )


def _check_memory(config: RunConfig, state: Any) -> None:
    """Refuses a run whose replay, batch and networks do not fit into the free memory.

    Linux promises memory that it does not have, and kills the process hours later.

    Args:
        config: The run.
        state: The shapes of the agent's state.
    """
    budget, spec = config.budget, config.spec
    transitions = config.agent.batch_size
    if isinstance(budget, OnlineBudget):
        transitions += min(budget.capacity, budget.steps)
    record = record_type(spec).itemsize
    networks = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    needed = len(config.row_seeds) * (transitions * record + networks)
    try:
        text = Path("/proc/meminfo").read_text()  # counts caches as free, and no swap
    except OSError:  # not Linux
        return
    found = re.search(r"MemAvailable:\s+(\d+)", text)
    free = 1024 * int(found[1]) if found else math.inf  # older kernels do not tell
    if needed > free:
        raise InputError(
            f"the run needs about {needed / 1e9:,.1f} GB of memory, and {free / 1e9:,.1f} GB are"
            " free: take a smaller capacity, batch_size or network, or fewer seeds"
        )


def _check_policy(agent: Agent, spec: TaskSpec, state: Any) -> None:
    """Raises if `greedy` or `values` breaks the contract, given the shapes of the state."""
    name = type(agent).__name__
    fields = getattr(state, "_fields", ())
    if not set(agent.networks) <= set(fields):
        raise InputError(
            f"networks of {name} must name fields of its state, a NamedTuple with the fields"
            f" {', '.join(fields)}, got {shown(agent.networks)}"
        )
    observation = jax.ShapeDtypeStruct((spec.features,), spec.dtype)
    try:
        action = jax.eval_shape(agent.greedy, agent.acting_state(state), observation)
    except Exception as error:
        jax.eval_shape(agent.greedy, state, observation)  # raises a mistake of the agent as it is
        raise InputError(
            f"{name}.greedy fails on the fields of the state that networks names,"
            f" {shown(agent.networks)}, without the others: {one_line(error)}"
        ) from error
    checked_action(f"{name}.greedy", action, spec)
    if not agent.defines("values"):
        return
    # One axis over the members, then the batch; with discrete actions, a last one over them.
    given = [jax.ShapeDtypeStruct((1, spec.features), jnp.float32)]
    shape: tuple[int, ...] = (len(agent.members), 1, spec.num_actions)
    if spec.action_size:
        given.append(jax.ShapeDtypeStruct((1, spec.action_size), jnp.float32))
        shape = shape[:2]
    values = jax.eval_shape(agent.values, state, *given)
    if values.shape != shape:
        raise InputError(
            f"the values of {name} for one observation must have the shape {shape},"
            f" got {values.shape}; has its network as many outputs as `init` asks for?"
        )


def _traced_columns(kind: type, agent: Agent, spec: TaskSpec, state: Any) -> Columns:
    """The columns of a run; raises if an agent's functions for training break the contract.

    Args:
        kind: The dataclass of a row of `metrics.csv`, which says whether the run is online.
        agent: The agent.
        spec: Its task.
        state: The shapes of its state.
    """
    words = record_type(spec).itemsize // 4
    packed = jax.ShapeDtypeStruct((agent.batch_size, words), np.uint32)
    metrics: dict[str, Any] = {}
    if kind is OnlineRow:
        count = checked(f"draws of {type(agent).__name__}", Natural, agent.draws(spec))
        draws = jax.ShapeDtypeStruct((1 + count,), jnp.float32)
        observation = jax.ShapeDtypeStruct((spec.features,), spec.dtype)
        now = (observation, draws, agent.exploration(0, 1))
        last = (FLAG, FLAG, (NUMBER, NUMBER))
        key = jax.ShapeDtypeStruct((2,), np.uint32)
    for turn in range(agent.period):
        if kind is OnlineRow:
            step = partial(one_step, (agent, spec, turn))
            *_, found = jax.eval_shape(step, state, (packed, key), last, now)
        else:
            batch = jax.eval_shape(partial(unpack, spec=spec), packed)
            update = partial(checked_update, agent, turn=turn)
            _, found = jax.eval_shape(update, state, batch, jax.random.key(0))
        metrics |= found
    columns = Columns(kind, tuple(sorted(metrics)))
    for name in sorted(set(metrics) & set(columns.fixed)):
        raise InputError(
            f"the metric {name!r} has the name of another column of metrics.csv; the agent must"
            f" give it a name that is none of {', '.join(columns.fixed)}"
        )
    return columns
