"""The random numbers of online training, which depend on (seed, step) alone."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

# The number of steps whose random numbers are drawn at once.
BLOCK = 1000


class Draws(NamedTuple):
    """The randomness of one step of every seed, drawn ahead.

    It holds numbers in [0, 1) rather than keys wherever few are needed: splitting keys within
    the compiled step costs a small agent much of its time. `sampling` is for the batch,
    `acting` for the leader and the action, and `key` for the update.
    """

    key: np.ndarray
    sampling: np.ndarray
    acting: np.ndarray


def draws_from(
    step: int, seeds: tuple[int, ...], update_keys: Any, sizes: tuple[int, int]
) -> Iterator[Draws]:
    """The randomness of every step from a given one on.

    Args:
        step: The first step.
        seeds: The seeds, one row each.
        update_keys: The key of each seed's updates.
        sizes: The count of random numbers per seed for acting, and for sampling.
    """
    acting, sampling = sizes
    size = (BLOCK, acting + sampling)
    while True:
        block, offset = divmod(step, BLOCK)
        keys = np.asarray(_block_keys(update_keys, block))
        streams = [np.random.default_rng([seed, 2, block]) for seed in seeds]
        uniforms = np.stack([stream.random(size, np.float32) for stream in streams], axis=1)
        for i in range(offset, BLOCK):
            numbers = uniforms[i]
            yield Draws(keys[i], numbers[:, acting:], numbers[:, :acting])
        step = (block + 1) * BLOCK


def block_bytes(batch_size: int) -> int:
    """The minimum bytes of one seed's random numbers, which are drawn for many steps at once."""
    return BLOCK * batch_size * np.dtype(np.float32).itemsize


@jax.jit
def _block_keys(keys: Any, block: Any) -> Any:
    """The raw keys of a block of steps, `[step, seed, 2]`."""
    steps = block * BLOCK + jnp.arange(BLOCK)
    folded = jax.vmap(lambda step: jax.vmap(lambda key: jax.random.fold_in(key, step))(keys))(steps)
    return jax.random.key_data(folded)
