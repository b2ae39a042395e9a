from collections.abc import Iterator

import hypothesis
import jax
import pytest

# Machines differ in speed and JAX compiles at the first example: no time limit per example.
hypothesis.settings.register_profile("rewardshift", deadline=None, derandomize=True)
hypothesis.settings.load_profile("rewardshift")


@pytest.fixture
def x64() -> Iterator[None]:
    """Float64 in JAX, for the laws that hold to 1e-9."""
    with jax.enable_x64(True):
        yield
