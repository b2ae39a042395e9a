"""The checks of a run before anything is built or written.

They probe the environment once and trace the agent's functions once. Tracing finds shapes and types
without computing values, so it is quick. An agent that changes the type of an array in its state,
for example, would train, but its run could never resume.
"""

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from rewardshift.agents.base import Agent
from rewardshift.agents.selection import Drawing, Mixing
from rewardshift.auto import Cautious
from rewardshift.checks import Natural, checked
from rewardshift.envs.goals import probe_goals
from rewardshift.envs.tasks import MakeEnv, TaskSpec, env_name, probe_spec
from rewardshift.errors import InputError, one_line, shown
from rewardshift.training.config import DataConfig, RunConfig, chosen_seeds
from rewardshift.training.evaluation import acting_state, policy_state
from rewardshift.training.hindsight import Hindsight
from rewardshift.training.offline import OfflineBudget, OfflineRow
from rewardshift.training.online import OnlineBudget, OnlineRow
from rewardshift.training.replay import RecordLayout
from rewardshift.training.trainer import BLOCK, Columns

# TensorBoard replaces all other characters, which could make two names equal.
METRIC_NAME = re.compile(r"\w[\w./-]*", re.ASCII)
NUMBER = jax.ShapeDtypeStruct((), jnp.float32)
NUMBERS = jax.Array | np.ndarray | np.generic | float | int
REAL = (jnp.floating, jnp.integer, jnp.bool_)
FLAG = jax.ShapeDtypeStruct((), jnp.bool_)
ENVIRONMENT = 2**13  # bytes of Gymnasium's smallest environments, roughly


def validate_online(
    agent: Agent,
    env: str | MakeEnv,
    seeds: int | tuple[int, ...],
    budget: OnlineBudget,
    biases: tuple[float, ...] = (),
) -> tuple[RunConfig, Columns]:
    """The configuration and the columns of an online run; raises InputError for a bad setting."""
    _check_types(agent, budget, OnlineBudget)
    if not agent.online:
        raise InputError(f"{type(agent).__name__} learns from a data set, not from {env}")
    if budget.hindsight is not None:
        _check_goals(budget.hindsight, agent, env, budget.capacity)
    if agent.warm_up >= budget.steps:
        raise InputError(
            f"nothing would be learned: the warm-up is {agent.warm_up} steps,"
            f" the whole training {budget.steps}"
        )
    if budget.diagnose and not agent.tells_values:
        raise InputError(
            "diagnose compares values of actions, so it needs an agent that tells them, got"
            f" {type(agent).__name__}"
        )
    return _configured(agent, env, seeds, budget, biases=biases)


def validate_offline(
    agent: Agent,
    env: str | MakeEnv,
    seeds: int | tuple[int, ...],
    budget: OfflineBudget,
    data: DataConfig,
) -> tuple[RunConfig, Columns]:
    """The configuration and the columns of an offline run; raises InputError for a bad setting."""
    _check_types(agent, budget, OfflineBudget)
    if isinstance(agent.shift, Cautious):
        raise InputError(f"here the shift of {type(agent).__name__} must be a number, got 'auto'")
    for name in ("updates", "evaluate_every", "checkpoint_every"):
        if getattr(budget, name) % agent.period:
            raise InputError(
                f"{name} must be a multiple of {agent.period}, the length of the update cycle of"
                f" {type(agent).__name__}, got {getattr(budget, name)}"
            )
    agent.check_offline(budget.updates)
    return _configured(agent, env, seeds, budget, data)


def _configured(
    agent: Agent,
    env: str | MakeEnv,
    seeds: int | tuple[int, ...],
    budget: OnlineBudget | OfflineBudget,
    data: DataConfig | None = None,
    biases: tuple[float, ...] = (),
) -> tuple[RunConfig, Columns]:
    """The configuration and the columns, after the checks that both kinds of run share."""
    spec = probe_spec(env)
    if agent.continuous != bool(spec.action_size):
        kinds = ("continuous", "discrete") if agent.continuous else ("discrete", "continuous")
        raise InputError(
            f"{type(agent).__name__} needs {kinds[0]} actions, {env} has {kinds[1]} ones"
        )
    config = RunConfig(agent, env_name(env), spec, chosen_seeds(seeds), budget, data, (), biases)
    _check_selection(agent)
    state = _trace_policy(agent, spec)
    if isinstance(budget, OnlineBudget):
        _trace_acting(agent, spec, state)
    row = OfflineRow if data else OnlineRow
    columns = _trace_updates(row, agent, spec, state)
    _check_memory(config, state)
    return config, columns


def _check_types(agent: Any, budget: Any, kind: type) -> None:
    """Raises if the agent or the budget is something else, or the agent cannot be hashed."""
    if not isinstance(agent, Agent):
        raise InputError(
            "agent must be an agent, such as DQN(), or one of your own that extends"
            f" rewardshift.Agent, got {shown(agent)}"
        )
    if not isinstance(budget, kind):
        raise InputError(f"budget must be an {kind.__name__}, got {shown(budget)}")
    try:
        hash(agent)
    except TypeError as error:
        raise InputError(
            "an agent and its parts must be frozen dataclasses, with settings such as numbers,"
            f" texts and tuples: {error}, got {shown(agent)}"
        ) from None


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


def _check_goals(hindsight: Hindsight, agent: Agent, env: str | MakeEnv, capacity: int) -> None:
    """Refuses settings and tasks that do not work with hindsight."""
    if agent.n_step != 1:
        raise InputError(f"hindsight needs n_step=1, got {agent.n_step}")
    if getattr(agent, "intrinsic", None) is not None:
        raise InputError(
            "hindsight changes the goal of a transition, and an intrinsic reward belongs to the"
            f" old goal: use one of the two, got {shown(agent)}"
        )
    task = probe_goals(env)
    if task.longest is not None and capacity < task.longest:
        raise InputError(
            f"a capacity of {capacity} is too small for hindsight: an episode of {env} has"
            f" up to {task.longest} steps"
        )
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


def _trace_policy(agent: Agent, spec: TaskSpec) -> Any:
    """The shapes of the agent's state; raises if the functions of its policy break the contract."""
    name = type(agent).__name__
    state = jax.eval_shape(lambda: agent.init(jax.random.key(0), spec))
    fields = getattr(state, "_fields", None)
    if fields is None:
        raise InputError(
            f"the state of {name} must be a NamedTuple of arrays, init returns a"
            f" {type(state).__name__}"
        )
    if not set(agent.networks) <= set(fields):
        raise InputError(
            f"networks of {name} must name fields of its state, {', '.join(fields)}, got"
            f" {shown(agent.networks)}"
        )
    observation = jax.ShapeDtypeStruct((spec.features,), spec.dtype)
    acting = acting_state(state, policy_state(agent, state))
    try:
        action = jax.eval_shape(agent.greedy, acting, observation)
    except Exception as error:
        jax.eval_shape(agent.greedy, state, observation)  # raises a mistake of the agent as it is
        raise InputError(
            f"{name}.greedy must read only the fields of the state that networks names,"
            f" {shown(agent.networks)}; without the others it fails: {one_line(error)}"
        ) from error
    _check_action(f"{name}.greedy", action, spec)
    if not agent.tells_values:
        return state
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
    return state


def _trace_acting(agent: Agent, spec: TaskSpec, state: Any) -> None:
    """Raises if the results of an agent's functions for an environment break the contract."""
    name = type(agent).__name__
    observation = jax.ShapeDtypeStruct((spec.features,), spec.dtype)
    intrinsic = getattr(agent, "intrinsic", None)
    if intrinsic is not None:
        several = jax.ShapeDtypeStruct((2, spec.features), jnp.float32)
        bonus = jax.eval_shape(intrinsic.bonus, state.intrinsic, several)
        if getattr(bonus, "shape", None) != (2,):
            raise InputError(
                f"bonus of {shown(intrinsic)} must return one number for each observation, for 2 of"
                f" them the shape (2,), got {shown(getattr(bonus, 'shape', bonus))}"
            )
    count = checked(f"draws of {name}", Natural, agent.draws(spec))
    draws = jax.ShapeDtypeStruct((count,), jnp.float32)
    action = jax.eval_shape(agent.act, state, observation, draws, agent.exploration(0, 1))
    _check_action(f"{name}.act", action, spec)
    _check_same(f"{name}.lead", state, jax.eval_shape(agent.lead, state, NUMBER, FLAG, NUMBER))
    _check_same(f"{name}.adapt", state, jax.eval_shape(agent.adapt, state, NUMBER, FLAG))
    after, _ = jax.eval_shape(agent.observe, state, observation)
    _check_same(f"{name}.observe", state, after)


def _trace_updates(kind: type, agent: Agent, spec: TaskSpec, state: Any) -> Columns:
    """The columns of a run, from the metrics of one cycle of updates.

    Args:
        kind: The dataclass of a row of `metrics.csv`.
        agent: The agent.
        spec: Its task.
        state: The shapes of its state.
    """
    layout = RecordLayout(spec.features, spec.dtype, spec.action_size)
    fixed, what = Columns(kind, ()).fixed, f"{type(agent).__name__}.update"
    names: set[str] = set()

    def updates(state: Any, packed: Any) -> None:
        batch = layout.unpack(packed)
        for turn in range(agent.period):
            returned = agent.update(state, batch, jax.random.key(0), turn)
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise InputError(
                    f"{what} must return the new state and a dict of metrics, got {shown(returned)}"
                )
            after, metrics = returned
            _check_metrics(metrics, fixed)
            names.update(metrics)
            _check_same(what, state, after)
            state = after

    words = (agent.batch_size, layout.record.itemsize // 4)
    jax.eval_shape(updates, state, jax.ShapeDtypeStruct(words, np.uint32))
    return Columns(kind, tuple(sorted(names)))


def _check_metrics(metrics: Any, fixed: tuple[str, ...]) -> None:
    """Refuses metrics that no column can hold."""
    if not isinstance(metrics, Mapping):
        raise InputError(f"update must return its metrics as a dict, got {shown(metrics)}")
    for name, value in metrics.items():
        if not isinstance(name, str) or not METRIC_NAME.fullmatch(name):
            raise InputError(
                "a metric's name must be letters, digits, '_', '-', '.' and '/', the first of them"
                f" a letter, a digit or '_', got {shown(name)}"
            )
        if name in fixed:
            raise InputError(
                f"the metric {name!r} has the name of another column of metrics.csv; the agent must"
                f" give it a name that is none of {', '.join(fixed)}"
            )
        dtype = jnp.result_type(value) if isinstance(value, NUMBERS) else None
        real = dtype is not None and any(jnp.issubdtype(dtype, kind) for kind in REAL)
        if not real or np.shape(value):
            kind = f"{value.dtype}{value.shape}" if hasattr(value, "dtype") else shown(value)
            raise InputError(f"the metric {name!r} must be a real number, got {kind}")


def _check_action(what: str, action: Any, spec: TaskSpec) -> None:
    """Raises if an action is not one whole number, or one number for each continuous action."""
    shape = (spec.action_size,) if spec.action_size else ()
    kind = jnp.floating if spec.action_size else jnp.integer
    wanted = f"{spec.action_size} floating-point numbers" if spec.action_size else "a whole number"
    if getattr(action, "shape", None) != shape or not jnp.issubdtype(action.dtype, kind):
        got = f"{action.dtype}{action.shape}" if hasattr(action, "dtype") else shown(action)
        raise InputError(f"{what} must return {wanted}, got {got}")


def _check_same(what: str, before: Any, after: Any) -> None:
    """Raises if a function returns a state with other arrays than the one that it was given."""
    was_tree, is_tree = (cast("Any", jax.tree.structure(state)) for state in (before, after))
    if was_tree != is_tree:
        raise InputError(
            f"{what} must return a state of the same structure as the one it is given, got"
            f" {shown(after)}"
        )
    pairs = zip(jax.tree_util.tree_leaves_with_path(before), jax.tree.leaves(after), strict=True)
    for (path, was), now in pairs:
        if (was.shape, was.dtype) != (now.shape, now.dtype):
            raise InputError(
                f"{what} must keep the shapes and types of the state's arrays:"
                f" {jax.tree_util.keystr(path)} was {was.dtype}{was.shape}, is"
                f" {now.dtype}{now.shape}"
            )


def _check_memory(config: RunConfig, state: Any) -> None:
    """Refuses a run that does not fit into the free memory.

    The estimate counts only what the run needs at the same time, so a refused run would have
    failed: Linux promises memory that it does not have and later kills the process.

    Args:
        config: The run.
        state: The shapes of the agent's state.
    """
    budget, transitions = config.budget, 0
    if isinstance(budget, OnlineBudget):  # the replay of each row
        transitions = min(budget.capacity, budget.steps)
    agent, spec, rows = config.agent, config.spec, len(config.seeds) * max(1, len(config.biases))
    networks = [leaf for leaf in jax.tree.leaves(policy_state(agent, state)) if leaf.ndim > 1]
    outputs = sum(math.prod(leaf.shape[:-1]) for leaf in networks)
    record = RecordLayout(spec.features, spec.dtype, spec.action_size).record.itemsize
    drawn = 4 * BLOCK if transitions else 0  # the random numbers that sample a transition
    needs = {
        "the networks (their widths, and how many there are)": sum(
            math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(state)
        ),
        "a batch (batch_size)": agent.batch_size * (record + 4 * outputs + drawn),
        "the replay (capacity)": transitions * record,
        "the environments of an evaluation (evaluation_episodes)": budget.evaluation_episodes
        * (ENVIRONMENT + spec.features * np.dtype(spec.dtype).itemsize),
    }
    try:
        text = Path("/proc/meminfo").read_text()  # counts caches as free, and no swap
        lines = dict(line.split(":") for line in text.splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    needed = rows * sum(needs.values())
    if needed > free:
        most = max(needs, key=lambda purpose: needs[purpose])
        raise InputError(
            f"the run needs about {needed / 1e9:,.1f} GB of memory, and {free / 1e9:,.1f} GB are"
            f" free; {rows * needs[most] / 1e9:,.1f} GB of it are for {most}: take less there, or"
            " fewer seeds"
        )
