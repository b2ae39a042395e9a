"""Traces an agent's functions before the training, to refuse results that break the contract.

Tracing finds shapes and types without computing values, so it is quick. An agent that changes the
type of an array in its state, for example, would train, but its run could never resume.
"""

from typing import Any, cast

import jax
import jax.numpy as jnp

from rewardshift.agents.base import Agent
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import InputError, one_line, shown
from rewardshift.training.policy import acting_state, policy_state

NUMBER = jax.ShapeDtypeStruct((), jnp.float32)
FLAG = jax.ShapeDtypeStruct((), jnp.bool_)


def check_functions(agent: Agent, spec: TaskSpec) -> None:
    """Raises if the results of an agent's functions, all but `update`, break the contract."""
    name = type(agent).__name__
    try:
        hash(agent)
    except TypeError as error:
        raise InputError(
            "an agent and its parts must be frozen dataclasses, with settings such as numbers,"
            f" texts and tuples: {error}, got {shown(agent)}"
        ) from None
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
    _check_action(f"{name}.greedy", jax.eval_shape(agent.greedy, state, observation), spec)
    acting = acting_state(state, policy_state(agent, state))
    try:
        jax.eval_shape(agent.greedy, acting, observation)
    except Exception as error:
        raise InputError(
            f"{name}.greedy must read only the fields of the state that networks names,"
            f" {shown(agent.networks)}; without the others it fails: {one_line(error)}"
        ) from error
    if agent.tells_values:
        _check_values(agent, state, spec)


def check_online_functions(agent: Agent, spec: TaskSpec) -> None:
    """Raises if the results of an agent's functions for an environment break the contract."""
    name = type(agent).__name__
    state = jax.eval_shape(lambda: agent.init(jax.random.key(0), spec))
    observation = jax.ShapeDtypeStruct((spec.features,), spec.dtype)
    draws = jax.ShapeDtypeStruct((agent.draws(spec),), jnp.float32)
    action = jax.eval_shape(agent.act, state, observation, draws, agent.exploration(0, 1))
    _check_action(f"{name}.act", action, spec)
    check_same(f"{name}.lead", state, jax.eval_shape(agent.lead, state, NUMBER, FLAG, NUMBER))
    check_same(f"{name}.adapt", state, jax.eval_shape(agent.adapt, state, NUMBER, FLAG))
    after, _ = jax.eval_shape(agent.observe, state, observation)
    check_same(f"{name}.observe", state, after)


def check_same(what: str, before: Any, after: Any) -> None:
    """Raises if a function returns a state with other arrays than the one that it was given.

    Args:
        what: The function.
        before, after: The two states, or their shapes.
    """
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


def _check_action(what: str, action: Any, spec: TaskSpec) -> None:
    """Raises if an action is not one whole number, or one number for each continuous action."""
    shape = (spec.action_size,) if spec.action_size else ()
    kind = jnp.floating if spec.action_size else jnp.integer
    wanted = f"{spec.action_size} floating-point numbers" if spec.action_size else "a whole number"
    if getattr(action, "shape", None) != shape or not jnp.issubdtype(action.dtype, kind):
        got = f"{action.dtype}{action.shape}" if hasattr(action, "dtype") else shown(action)
        raise InputError(f"{what} must return {wanted}, got {got}")


def _check_values(agent: Any, state: Any, spec: TaskSpec) -> None:
    """Raises if an agent's values do not have an axis over its members, and one over actions."""
    members = len(agent.members)
    observations = jax.ShapeDtypeStruct((1, spec.features), jnp.float32)
    actions = jax.ShapeDtypeStruct((1, spec.action_size), jnp.float32)
    given = (observations, actions) if spec.action_size else (observations,)
    shape = (members, 1) if spec.action_size else (members, 1, spec.num_actions)
    values = jax.eval_shape(agent.values, state, *given)
    if values.shape != shape:
        raise InputError(
            f"the values of {type(agent).__name__} for one observation must have the shape {shape},"
            f" got {values.shape}; has its network as many outputs as `init` asks for?"
        )
