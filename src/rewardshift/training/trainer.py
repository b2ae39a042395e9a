"""The contract between a run and the loop that trains it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from rewardshift.training.metrics import Columns, Row
from rewardshift.training.replay import Replay

# Called with the step and the rows of `metrics.csv` so far, also at every step of an evaluation.
# Raising an exception in it stops the training.
OnProgress = Callable[[int, Sequence[Any]], None]


class Snapshot(NamedTuple):
    """Everything that a trainer needs to continue from a checkpoint, except its replay.

    `arrays` is a tree of arrays, with the same paths, shapes and dtypes at every checkpoint.
    `notes` can be stored as JSON. The arrays belong to the trainer and are valid until it trains
    again.
    """

    step: int
    arrays: Any
    notes: dict[str, Any]


class Seen(NamedTuple):
    """The transitions that a seed has seen so far, with primal rewards."""

    observation: Any
    reward: Any
    terminated: Any


@runtime_checkable
class Trainer(Protocol):
    """A training that runs from checkpoint to checkpoint.

    A new trainer with the same settings that restores a checkpoint's snapshot, and the records of
    the replay if there is one, continues exactly as the old trainer would, bit for bit.
    """

    @property
    def step(self) -> int:
        """The number of steps, or updates, done."""
        ...

    @property
    def state(self) -> Any:
        """The agent's state, with a leading axis over the seeds."""
        ...

    @property
    def columns(self) -> Columns:
        """The columns of `metrics.csv`."""
        ...

    @property
    def rows(self) -> Sequence[Row]:
        """The lines of `metrics.csv` so far."""
        ...

    @property
    def replay(self) -> Replay | None:
        """The collected transitions, if the training collects any."""
        ...

    def seen(self, row: int) -> Seen:
        """The transitions of a seed so far, or the data that it learns from."""
        ...

    def run_to_checkpoint(self, on_step: OnProgress | None = None) -> None:
        """Trains to the next checkpoint or the end."""
        ...

    def snapshot(self) -> Snapshot:
        """The snapshot at this step."""
        ...

    def restore(self, snapshot: Snapshot) -> None:
        """Restores a snapshot. The caller restores the records of the replay."""
        ...

    def close(self) -> None:
        """Closes the environments."""
        ...
