"""The policy of a run."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rewardshift.envs.tasks import TaskSpec, probe_spec
from rewardshift.errors import InputError, one_line
from rewardshift.files import DAMAGE, opened
from rewardshift.training.checkpoints import read_npz
from rewardshift.training.config import RunConfig, networks_of, read_config


@dataclass(frozen=True)
class Policy:
    """What an agent does where it does not explore.

    Args:
        config: The configuration of its run.
        step: After how many of its steps.
        spec: Its task.
        act: The action for a flat observation, as an environment of `env_maker` takes it, or the
            actions for a batch of them.
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
            lambda leaf: np.empty(leaf.shape, leaf.dtype), networks_of(config, states, 0)
        )
        networks = read_npz(opened(path, "rb"), template)
        if str(networks.pop("config")) != config.digest:
            raise ValueError("it is of a run with another configuration")
    except DAMAGE as error:
        raise InputError(
            f"{str(path)!r} cannot be used: {one_line(error)}; 'rewardshift resume {folder}' writes"
            " it again"
        ) from error
    step, row = int(networks.pop("step")), config.seeds.index(seed)
    state = states._replace(**jax.tree.map(lambda leaf: jnp.asarray(leaf[row]), networks))
    greedy = partial(config.agent.greedy, state)
    one, many = jax.jit(greedy), jax.jit(jax.vmap(greedy))

    def act(observation: np.ndarray) -> np.ndarray | np.integer:
        shape = np.shape(observation)
        if len(shape) not in (1, 2) or shape[-1] != spec.features:
            raise InputError(
                f"a policy acts on an observation of the shape ({spec.features},), or on a batch of"
                f" them, (batch, {spec.features}), got the shape {shape}"
            )
        # A scalar where it is one.
        return np.asarray((one if len(shape) == 1 else many)(observation))[()]

    return Policy(config, step, spec, act)
