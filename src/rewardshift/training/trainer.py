"""The contract between a run and the loop that trains it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from rewardshift.replay import Replay
from rewardshift.training.metrics import Columns, Row

# Called with the step and the rows of `metrics.csv` so far, also at every step of an evaluation. It
# may raise, to stop.
OnProgress = Callable[[int, Sequence[Any]], None]


class Snapshot(NamedTuple):
    """Everything that a trainer needs to go on from a checkpoint, beside its replay.

    `arrays` is a tree of arrays, with the same paths, shapes and dtypes at every checkpoint.
    `notes` is what fits into JSON. The arrays are the trainer's own, and valid until it trains on.
    """

    step: int
    arrays: Any
    notes: dict[str, Any]


@runtime_checkable
class Trainer(Protocol):
    """A training that runs from checkpoint to checkpoint.

    At a checkpoint, a new trainer with the same settings that is given the snapshot, and the
    records of the replay if there is one, trains on as the old one would have, bit for bit.
    """

    @property
    def step(self) -> int:
        """The steps, or updates, that are done."""
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

    def run_to_checkpoint(self, on_step: OnProgress | None = None) -> None:
        """Trains up to the next checkpoint, or the end."""
        ...

    def snapshot(self) -> Snapshot:
        """What the training needs to go on from here."""
        ...

    def restore(self, snapshot: Snapshot) -> None:
        """Goes back to a snapshot. The records of the replay are restored by the caller."""
        ...

    def close(self) -> None:
        """Closes the environments."""
        ...
