"""The memory that a run needs, estimated before the run allocates it.

The estimates count only memory that the run needs at the same time, so a refused run would have
failed: Linux promises memory that it does not have and later kills the process.
"""

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr

from rewardshift.agents.base import Agent
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import InputError
from rewardshift.training.policy import policy_state

ENVIRONMENT = 2**13  # bytes of Gymnasium's smallest environments, roughly
NUMBER = 4  # bytes of a 32-bit number


def check_memory(needs: Mapping[str, int]) -> None:
    """Refuses a run that does not fit into the free memory.

    Args:
        needs: Bytes by purpose; the text of a purpose names its setting.
    """
    needed, free = sum(needs.values()), free_memory()
    if needed > free:
        most = max(needs, key=lambda settings: needs[settings])
        raise InputError(
            f"the run needs about {_size(needed)} of memory, and {_size(free)} are free;"
            f" {_size(needs[most])} of it are for {most}: take less there, or fewer seeds"
        )


def make_room_for_programs(share: float = 0.5) -> None:
    """Drops JAX's compiled programs if the process is near its limit of memory mappings.

    A compiled program holds about a hundred mappings for as long as JAX remembers it, and XLA
    crashes when Linux refuses it another. A script that trains a few hundred different agents would
    get there.

    Args:
        share: The share of the limit from which on programs are dropped.
    """
    try:
        limit = int(Path("/proc/sys/vm/max_map_count").read_text())
        held = Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:  # not Linux
        return
    if held > share * limit:
        jax.clear_caches()


def agent_needs(agent: Agent, spec: TaskSpec, seeds: int) -> dict[str, int]:
    """The bytes of the agent's state, and of a batch with the outputs of every layer."""
    state = jax.eval_shape(lambda: agent.init(jax.random.key(0), spec))
    numbers = [math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(state)]
    networks = policy_state(agent, state)
    outputs = [math.prod(leaf.shape[:-1]) for leaf in jax.tree.leaves(networks) if leaf.ndim > 1]
    transition = 2 * spec.features * np.dtype(spec.dtype).itemsize
    row = transition + NUMBER * sum(outputs)
    return {
        "the networks (their widths, and how many there are)": seeds * sum(numbers),
        "a batch (batch_size)": seeds * agent.batch_size * row,
    }


def evaluation_needs(agent: Agent, spec: TaskSpec, seeds: int, episodes: int) -> dict[str, int]:
    """The bytes of an evaluation's environments, all side by side, and of acting in them."""
    state = jax.eval_shape(lambda: agent.init(jax.random.key(0), spec))
    observations = jax.ShapeDtypeStruct((episodes, spec.features), spec.dtype)
    act = jax.vmap(agent.greedy, in_axes=(None, 0))
    acting = largest_array(jax.make_jaxpr(act)(state, observations).jaxpr)
    return {
        "the environments of an evaluation (evaluation_episodes)": seeds
        * episodes
        * (ENVIRONMENT + spec.features * observations.dtype.itemsize),
        "acting in them (how many actions the agent looks at)": seeds * acting,
    }


def update_needs(update: Jaxpr, seeds: int) -> dict[str, int]:
    """The bytes of the largest array of an update, which JAX has traced for one seed."""
    return {
        "an update (batch_size, or how many actions the agent looks at)": seeds
        * largest_array(update)
    }


def largest_array(traced: Jaxpr) -> int:
    """The bytes of the largest array that a traced computation makes, its loops included."""
    made: list[Any] = [variable.aval for equation in traced.eqns for variable in equation.outvars]
    sizes = [math.prod(array.shape) * array.dtype.itemsize for array in made]
    return max((*sizes, *map(largest_array, _inside(traced))), default=0)


def _inside(traced: Jaxpr) -> Iterator[Jaxpr]:
    """The computations within the equations of another: functions, loops and branches."""
    for equation in traced.eqns:
        for value in jax.tree.leaves(tuple(equation.params.values())):
            if isinstance(value, Jaxpr):
                yield value
            elif isinstance(value, ClosedJaxpr):
                yield value.jaxpr


def free_memory() -> int:
    """The free bytes of memory, without swap."""
    try:
        text = Path("/proc/meminfo").read_text()  # counts caches as free
        lines = dict(line.split(":") for line in text.splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"
