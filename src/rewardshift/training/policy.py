"""The policy of a run."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rewardshift.envs.tasks import TaskSpec, probe_spec
from rewardshift.errors import InputError, one_line
from rewardshift.files import DAMAGE
from rewardshift.training.checkpoints import read_npz
from rewardshift.training.config import RunConfig, networks_of, read_config


@dataclass(frozen=True)
class Policy:
    """What an agent does where it does not explore.

    Args:
        config: The configuration of its run.
        step: After how many of its steps.
        spec: Its task.
        act: The action for a flat observation, as an environment of `env_maker` takes it.
    """

    config: RunConfig
    step: int
    spec: TaskSpec
    act: Callable[[np.ndarray], np.ndarray | np.integer]


def load_policy(folder: Path | str, seed: int) -> Policy:
    """The greedy policy of a run, at its end or where it was stopped: at its last checkpoint.

    Args:
        folder: The run's folder.
        seed: Which of the run's seeds acts.
    """
    folder = Path(folder)
    config = read_config(folder)
    if seed not in config.seeds:
        raise InputError(f"the run has the seeds {list(config.seeds)}, not {seed}")
    path = folder / "parameters.npz"
    if not path.exists():
        raise InputError(
            f"the run in {str(folder)!r} has no checkpoint yet: rewardshift resume {folder}"
        )
    spec = probe_spec(config.env)

    def init(seeds: jax.Array) -> Any:
        return jax.vmap(lambda key: config.agent.init(key, spec))(jax.vmap(jax.random.key)(seeds))

    # Only the shapes: what is not in the file, no policy looks at.
    states = jax.eval_shape(init, np.asarray(config.seeds))
    try:
        template = jax.tree.map(
            lambda leaf: np.empty(leaf.shape, leaf.dtype), networks_of(config.agent, states, 0)
        )
        networks = read_npz(path, template)
    except DAMAGE as error:
        raise InputError(f"{str(path)!r} cannot be used: {one_line(error)}") from error
    step, row = int(networks.pop("step")), config.seeds.index(seed)
    state = states._replace(**jax.tree.map(lambda leaf: jnp.asarray(leaf[row]), networks))
    greedy = jax.jit(lambda observation: config.agent.greedy(state, observation))
    # A scalar where it is one.
    return Policy(config, step, spec, lambda observation: np.asarray(greedy(observation))[()])
