"""Random generators that a diagnosis leaves as they are."""

import contextlib
import random
import sys
from collections.abc import Iterator

import numpy as np


@contextlib.contextmanager
def same_randomness() -> Iterator[None]:
    """Restores the global generators of Python, NumPy and torch afterwards."""
    torch = sys.modules.get("torch")  # nothing to restore where it is not loaded
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with contextlib.nullcontext() if torch is None else torch.random.fork_rng():
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
