"""A run and its folder: training that can be stopped at any moment and goes on the same.

`config.json` says what is run, `metrics.csv` what came of it; both are the same for the same
configuration, whatever happened on the way. Times are in `timing.csv`, curves for TensorBoard
in `tensorboard/`, checkpoints in `checkpoints/`, the final networks in `parameters.npz`.
"""

import contextlib
import csv
import io
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rewardshift.envs.engines import EngineName, MakeEnv
from rewardshift.files import write_atomic
from rewardshift.training.checkpoints import (
    Checkpoint,
    load_checkpoint,
    npz_bytes,
    save_checkpoint,
)
from rewardshift.training.config import (
    Agent,
    RunConfig,
    claim_folder,
    make_config,
    networks_of,
    read_config,
)
from rewardshift.training.online import OnlineBudget, OnProgress, Row, Trainer


@dataclass(frozen=True)
class Result:
    """What a run comes to.

    Args:
        rows: The lines of `metrics.csv`.
        state: The agent's state, with a leading axis over the seeds.
        config: What was run.
        finished: False if it was stopped before its end.
        step: How far it came; at the next start it goes on from the checkpoint before.
    """

    rows: list[Row]
    state: Any
    config: RunConfig
    finished: bool
    step: int


def train(
    agent: Agent,
    env: str | MakeEnv,
    *,
    seeds: int | tuple[int, ...] = 1,
    budget: OnlineBudget | None = None,
    engine: EngineName = "auto",
    folder: Path | str | None = None,
    on_progress: OnProgress | None = None,
) -> Result:
    """Trains an agent, with all its seeds side by side.

    Args:
        agent: Its configuration, for example `DQN(shifts=(-0.5,))`.
        env: A registered name, or a function that makes an environment.
        seeds: How many (0, 1, 2, ...), or which.
        budget: How long and how; the default is that of `OnlineBudget`.
        engine: `"gymnasium"`, `"envpool"` or `"auto"`.
        folder: Of the run. If it holds the same run already, that one goes on from its last
            checkpoint; if it holds another one, that is an error. None keeps nothing.
        on_progress: Called after every step with the step and the rows so far.
    """
    config = make_config(agent, env, seeds, budget or OnlineBudget(), engine)
    if folder is None:
        return _run_in_memory(config, env, on_progress)
    return _run_in_folder(config, env, claim_folder(Path(folder), config), on_progress)


def resume(folder: Path | str, on_progress: OnProgress | None = None) -> Result:
    """Goes on with the run in a folder."""
    config = read_config(Path(folder))
    return _run_in_folder(config, config.env, Path(folder), on_progress)


def _run_in_memory(config: RunConfig, env: str | MakeEnv, on_progress: OnProgress | None) -> Result:
    trainer = Trainer(config.agent, env, config.seeds, config.budget, config.engine)
    with contextlib.closing(trainer):
        while trainer.step < config.budget.steps:
            trainer.run_to_checkpoint(on_progress)
    return Result(trainer.rows, trainer.state, config, True, trainer.step)


def _run_in_folder(
    config: RunConfig, env: str | MakeEnv, folder: Path, on_progress: OnProgress | None
) -> Result:
    trainer = Trainer(config.agent, env, config.seeds, config.budget, config.engine)
    segments = _restore(trainer, folder, config)
    with contextlib.closing(trainer), _stop_requests() as asked:

        def on_step(step: int, rows: list[Row]) -> None:
            if on_progress is not None:
                on_progress(step, rows)
            if asked:
                raise KeyboardInterrupt

        try:
            while trainer.step < config.budget.steps:
                before, clock = trainer.step, time.perf_counter()
                trainer.run_to_checkpoint(on_step)
                segments = _save(trainer, folder, config, segments, before)
                _note_time(folder, trainer.step, time.perf_counter() - clock)
        except KeyboardInterrupt:
            return Result(trainer.rows, trainer.state, config, False, trainer.step)
    write_atomic(folder / "parameters.npz", npz_bytes(networks_of(config.agent, trainer.state)))
    return Result(trainer.rows, trainer.state, config, True, trainer.step)


def _save(
    trainer: Trainer, folder: Path, config: RunConfig, segments: dict[str, str], before: int
) -> dict[str, str]:
    """Writes the metrics and a checkpoint."""
    write_metrics(folder / "metrics.csv", trainer.rows)
    _write_events(folder, [row for row in trainer.rows if row.step > before])
    new = min(trainer.step - before, trainer.replay.capacity)
    slots = np.arange(trainer.step - new, trainer.step) % trainer.replay.capacity
    checkpoint = Checkpoint(
        step=trainer.step,
        config=config.digest,
        arrays={"agent": trainer.state, "counters": trainer.counters()},
        notes={"rows": [list(row) for row in trainer.rows]},
        records=trainer.replay.records,
        segments=segments,
    )
    return save_checkpoint(
        folder / "checkpoints",
        checkpoint,
        trainer.replay.records[:, slots],
        trainer.replay.capacity,
    )


def _restore(trainer: Trainer, folder: Path, config: RunConfig) -> dict[str, str]:
    """Puts the last checkpoint, if there is one, into the trainer."""
    template = {"agent": trainer.state, "counters": trainer.counters()}
    checkpoint = load_checkpoint(
        folder / "checkpoints", config.digest, template, trainer.replay.records.dtype
    )
    if checkpoint is None:
        return {}
    trainer.state = checkpoint.arrays["agent"]
    for name, values in checkpoint.arrays["counters"].items():
        setattr(trainer, name, values)
    trainer.step = trainer.replay.added = checkpoint.step
    trainer.rows = [Row(*row) for row in checkpoint.notes["rows"]]
    kept = checkpoint.records[:, -trainer.replay.capacity :]
    slots = np.arange(checkpoint.step - kept.shape[1], checkpoint.step) % trainer.replay.capacity
    trainer.replay.records[:, slots] = kept
    return checkpoint.segments


def write_metrics(path: Path, rows: list[Row]) -> None:
    """Writes `metrics.csv`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Row._fields)
    writer.writerows(["" if value is None else f"{value:.9g}" for value in row] for row in rows)
    write_atomic(path, text.getvalue())


def _write_events(folder: Path, rows: list[Row]) -> None:
    """Hands rows to TensorBoard, a curve for each seed."""
    # Here, because it imports torch where that is installed.
    from tensorboardX import SummaryWriter  # noqa: PLC0415

    with SummaryWriter(str(folder / "tensorboard")) as writer:
        for row in rows:
            for name in ("evaluation_return", "training_return", "loss", "q"):
                if (value := getattr(row, name)) is not None:
                    writer.add_scalar(f"{name}/seed-{row.seed}", value, row.step)


def _note_time(folder: Path, step: int, seconds: float) -> None:
    path = folder / "timing.csv"
    new = not path.exists()
    with path.open("a") as file:
        if new:
            file.write("step,seconds_since_last\n")
        file.write(f"{step},{seconds:.3f}\n")


@contextlib.contextmanager
def _stop_requests() -> Iterator[list[int]]:
    """SIGINT and SIGTERM fill the list, and stop nothing by themselves."""
    asked: list[int] = []

    def note(number: int, _: Any) -> None:
        asked.append(number)

    previous = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, old in previous.items():
            signal.signal(number, old)
