"""A trainer in its folder: restored, saved at every checkpoint, stopped by signals."""

import contextlib
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rewardshift.files import write_atomic
from rewardshift.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from rewardshift.training.config import RunConfig
from rewardshift.training.loading import PARAMETERS, networks_of
from rewardshift.training.logs import note_time, write_events, write_metrics
from rewardshift.training.start import networks_now, start_of, write_start
from rewardshift.training.trainer import OnProgress, Snapshot, Trainer
from rewardshift.training.trees import npz_bytes


def run_in_folder(
    config: RunConfig, trainer: Trainer, folder: Path, on_progress: OnProgress | None
) -> bool:
    """Trains to the end and returns True; returns False if it is stopped earlier.

    SIGINT and SIGTERM stop it between two steps, so that no file is half written. The signal then
    takes the effect that it has outside of the training: by default it ends the process.
    """
    fresh = networks_now(config, trainer)
    segments = _restore(trainer, folder, config)
    if trainer.step:
        _write_outcome(trainer, folder, config)  # the files may be lost or damaged
    finished, told = False, bool(trainer.rows)
    with _stop_requests() as asked, contextlib.suppress(KeyboardInterrupt):

        def on_step(step: int, rows: Sequence[Any]) -> None:
            nonlocal told
            if rows and not told:  # after the first evaluation
                told = True
                write_start(folder, start_of(config, trainer, fresh))
            if on_progress is not None:
                on_progress(step, rows)
            if asked:
                raise KeyboardInterrupt

        while trainer.step < config.budget.steps:
            before, clock = trainer.step, time.perf_counter()
            trainer.run_to_checkpoint(on_step)
            segments = _save(trainer, folder, config, segments, before)
            note_time(folder, trainer.step, time.perf_counter() - clock)
        finished = True
    if asked:
        signal.raise_signal(asked[0])
    return finished


def _save(
    trainer: Trainer, folder: Path, config: RunConfig, segments: dict[str, str], before: int
) -> dict[str, str]:
    """Writes the metrics, the networks and a checkpoint."""
    new = [row for row in trainer.rows if row.step > before]
    _write_outcome(trainer, folder, config)
    write_events(folder, trainer.columns, new)
    step, arrays, notes = trainer.snapshot()
    checkpoint = Checkpoint(
        step=step,
        config=config.digest,
        arrays=arrays,
        notes=notes,
        records=None,
        segments=segments,
    )
    capacity = trainer.replay.capacity if trainer.replay else 0
    records = trainer.replay.newest(trainer.step - before) if trainer.replay else None
    return save_checkpoint(folder / "checkpoints", checkpoint, records, capacity)


def _write_outcome(trainer: Trainer, folder: Path, config: RunConfig) -> None:
    """Writes `metrics.csv` and `parameters.npz`."""
    write_metrics(folder, trainer.columns, trainer.rows)
    networks = networks_of(config, trainer.state, trainer.step)
    write_atomic(folder / PARAMETERS, npz_bytes(networks))


def _restore(trainer: Trainer, folder: Path, config: RunConfig) -> dict[str, str]:
    """Restores the last checkpoint, if there is one, and returns its segments."""
    template = trainer.snapshot().arrays
    record = trainer.replay.records.dtype if trainer.replay else None
    checkpoint = load_checkpoint(folder / "checkpoints", config.digests, template, record)
    if checkpoint is None:
        return {}
    trainer.restore(Snapshot(checkpoint.step, checkpoint.arrays, checkpoint.notes))
    if trainer.replay:
        assert checkpoint.records is not None
        trainer.replay.restore(checkpoint.records, checkpoint.step)
    return checkpoint.segments


@contextlib.contextmanager
def _stop_requests() -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM in a list instead of stopping the process.

    A signal that the process ignores, or that code outside of Python handles, stays as it is.
    """
    asked: list[int] = []

    def note(number: int, _: Any) -> None:
        asked.append(number)

    main = threading.current_thread() is threading.main_thread()  # only it can handle signals
    numbers = [signal.SIGINT, signal.SIGTERM] if main else []
    theirs = (signal.SIG_IGN, None)
    ours = [number for number in numbers if signal.getsignal(number) not in theirs]
    previous = {number: signal.signal(number, note) for number in ours}
    try:
        yield asked
    finally:
        for number, old in previous.items():
            signal.signal(number, old)
