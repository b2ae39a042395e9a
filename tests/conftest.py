import ctypes
import gc
import resource
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import hypothesis
import jax
import pytest
from data_makers import small, write

MOST_MEMORY = 1.2e9  # bytes of a worker after a test

# Machines differ in speed and JAX compiles at the first example: no time limit per example.
hypothesis.settings.register_profile("rewardshift", deadline=None, derandomize=True)
hypothesis.settings.load_profile("rewardshift")


@pytest.fixture(autouse=True, scope="module")
def room_for_programs() -> None:
    """A worker runs many files, and what they compile adds up."""
    trainer = import_module("rewardshift.training.trainer")  # not before jaxtyping's hook
    trainer.make_room_for_programs()


@pytest.fixture(autouse=True)
def room_in_memory() -> Iterator[None]:
    """Keeps a worker below 2 GB: compiled programs and XLA's buffers stay in memory until then."""
    yield
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    if pages * resource.getpagesize() > MOST_MEMORY:
        jax.clear_caches()
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # returns what is free to the system


@pytest.fixture
def x64() -> Iterator[None]:
    """Float64 in JAX, for the laws that hold to 1e-9."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(autouse=True)
def minari_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Minari's own place, apart from that of whoever runs the tests."""
    root = tmp_path / "minari"
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(root))
    return root


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with one embedded data set."""
    monkeypatch.setattr("rewardshift.data.minari_sets.EMBEDDED", tmp_path / "embedded")
    return write(small(), "rewardshift/few-v0", folder=tmp_path / "embedded" / "few")
