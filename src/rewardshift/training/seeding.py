"""The seeds of a run and of its environments, and the random numbers of online training.

All of them are functions of (seed, step), so an interruption changes no result.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rewardshift.errors import InputError, shown

MOST_SEEDS = 2**16  # per run or figure
# The number of steps whose random numbers are drawn at once.
BLOCK = 1000


def check_count(count: Any) -> None:
    """Refuses a number of seeds outside the allowed range."""
    if not 1 <= count <= MOST_SEEDS:
        raise InputError(f"seeds must be 1 or more, up to {MOST_SEEDS}, got {shown(count)}")


def chosen_seeds(seeds: int | tuple[int, ...]) -> tuple[int, ...]:
    """The seeds as a tuple; a number n stands for 0 to n - 1."""
    given: Any = seeds
    if not isinstance(seeds, int | np.integer):
        try:
            if not isinstance(given, str | bytes | dict):
                return tuple(given)
        except TypeError:
            pass
        raise InputError(f"seeds must be a number, or numbers, got {shown(seeds)}")
    check_count(seeds)
    return tuple(range(seeds))


def check_seeds(seeds: tuple[int, ...]) -> None:
    """Refuses too many seeds, repeated ones and negative ones."""
    if not 1 <= len(set(seeds)) == len(seeds) <= MOST_SEEDS or min(seeds) < 0:
        raise InputError(
            f"seeds must be up to {MOST_SEEDS} different numbers from 0 to 2^31 - 1, got"
            f" {shown(seeds)}"
        )


def derive_seed(*parts: int) -> int:
    """A seed for an environment, derived from its purpose, such as (seed, step)."""
    return int(np.random.SeedSequence(parts).generate_state(1)[0] >> 1)


class RandomNumbers(NamedTuple):
    """The randomness of one step of every seed, drawn ahead.

    It holds numbers in [0, 1) rather than keys wherever few are needed: splitting keys within
    the compiled step costs a small agent much of its time. `sampling` is for the batch,
    `acting` for the leader and the action, and `key` for the update.
    """

    key: np.ndarray
    sampling: np.ndarray
    acting: np.ndarray


def random_numbers(
    step: int, seeds: tuple[int, ...], update_keys: Any, sizes: tuple[int, int]
) -> Iterator[RandomNumbers]:
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
            yield RandomNumbers(keys[i], numbers[:, acting:], numbers[:, :acting])
        step = (block + 1) * BLOCK


@jax.jit
def _block_keys(keys: Any, block: Any) -> Any:
    """The raw keys of a block of steps, `[step, seed, 2]`."""
    steps = block * BLOCK + jnp.arange(BLOCK)
    folded = jax.vmap(lambda step: jax.vmap(lambda key: jax.random.fold_in(key, step))(keys))(steps)
    return jax.random.key_data(folded)
