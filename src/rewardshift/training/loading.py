"""Loads the policy of a run from its folder."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rewardshift.checks import Natural, checked
from rewardshift.errors import InputError, one_line
from rewardshift.files import DAMAGE, arrays_in, as_path, opened
from rewardshift.training.config import RunConfig
from rewardshift.training.logs import time_spent
from rewardshift.training.policy import (
    Policy,
    acting_state,
    filled_networks,
    policy_state,
    read_policy,
)
from rewardshift.training.run_folder import how_to_resume, read_config
from rewardshift.training.trees import leaf_name

PARAMETERS = "parameters.npz"


def load(path: Path | str, seed: int | None = None) -> Policy:
    """The greedy policy of a run, at its last checkpoint, or of a policy file.

    Acting does not need the environment.

    Args:
        path: The run's folder, or a file that `Policy.save` wrote.
        seed: The run's seed whose policy to load; by default its first.
    """
    path = as_path("path", path)
    if path.is_file():
        if seed is not None:
            raise InputError(f"{str(path)!r} holds the policy of one seed; leave seed out")
        return read_policy(path)
    config = read_config(path)
    file = path / PARAMETERS
    if not file.exists():
        lost = f"has lost its {PARAMETERS}, which is written again by"
        problem = lost if time_spent(path) > 0 else "has no checkpoint yet:"
        raise InputError(f"the run in {str(path)!r} {problem} {how_to_resume(path)}")
    row = row_of(config, config.seeds[0] if seed is None else seed)

    def init(seeds: jax.Array) -> Any:
        keys = jax.vmap(jax.random.key)(seeds)
        return jax.vmap(lambda key: config.agent.init(key, config.spec))(keys)

    try:
        with arrays_in(opened(file, "rb")) as arrays:
            leaves = dict(arrays)
        if str(leaves.pop(leaf_name("config"))) not in config.digests:
            raise ValueError("it belongs to a run with another configuration")
        step = int(leaves.pop(leaf_name("step")))
        # Only the shapes: a policy does not read the parts that the file leaves out.
        states = jax.eval_shape(init, np.asarray(config.seeds))
        networks = filled_networks(config.agent, states, leaves)
    except DAMAGE as error:
        raise InputError(
            f"{str(file)!r} cannot be used: {one_line(error)}; {how_to_resume(path)!r} writes"
            " it again"
        ) from error
    chosen = jax.tree.map(lambda leaf: jnp.asarray(leaf[row]), networks)
    state = acting_state(states, chosen)
    return Policy(config.agent, config.spec, state, config.env, config.seeds[row], step)


def row_of(config: RunConfig, seed: int) -> int:
    """The row of a seed in a run."""
    if checked("seed", Natural, seed) not in config.seeds:
        raise InputError(f"the run has the seeds {list(config.seeds)}, not {seed}")
    return config.seeds.index(seed)


def networks_of(config: RunConfig, state: Any, step: int) -> dict[str, Any]:
    """The contents of `parameters.npz`: the run's digest, its step, and the agent's networks."""
    return {
        "config": np.asarray(config.digest),
        "step": np.asarray(step, np.int64),
        **policy_state(config.agent, state),
    }
