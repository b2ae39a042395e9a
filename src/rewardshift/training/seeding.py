"""The seeds of a run and of its environments."""

from typing import Any

import numpy as np

from rewardshift.errors import InputError, shown

MOST_SEEDS = 2**16  # per run or figure


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
