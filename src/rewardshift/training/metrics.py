"""Metrics: the scalars that an agent's update returns, `metrics.csv`, and TensorBoard's curves.

The loops know no metric by name: `validate.py` finds the names by tracing the agent's updates.
"""

import csv
import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rewardshift.errors import InputError, TrainingError, one_line
from rewardshift.files import naming, own_folder, read_own, write_atomic

METRICS = "metrics.csv"


@dataclass(frozen=True)
class Columns:
    """The columns of `metrics.csv`: the fixed ones, then the agent's metrics.

    Args:
        kind: The dataclass of a row: one seed at one evaluation. Its fields are the fixed columns,
            except for `metrics`: the agent's metrics by name, without those that no update has
            returned yet.
        metrics: The names of the agent's metrics, sorted.
    """

    kind: type
    metrics: tuple[str, ...]

    @property
    def fixed(self) -> tuple[str, ...]:
        """The columns that do not depend on the agent."""
        return tuple(field.name for field in fields(self.kind) if field.name != "metrics")

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, in order."""
        return self.fixed + self.metrics

    def cells(self, row: Any) -> list[float | None]:
        """The values of a row, in the order of the columns; None for an empty cell."""
        return [
            *(getattr(row, name) for name in self.fixed),
            *(row.metrics.get(name) for name in self.metrics),
        ]

    def value(self, row: Any, name: str) -> float | None:
        """The value of one column in a row."""
        return row.metrics.get(name) if name in self.metrics else getattr(row, name)

    def to_json(self, rows: Sequence[Any]) -> dict[str, Any]:
        """Rows in the form that a checkpoint keeps."""
        return {"columns": list(self.names), "rows": [self.cells(row) for row in rows]}

    def from_json(self, body: dict[str, Any]) -> list[Any]:
        """The rows of a checkpoint; refused if its columns differ."""
        if body["columns"] != list(self.names):
            raise InputError(
                "the agent returns other metrics than when the run began: the columns were"
                f" {', '.join(body['columns'])}, and are {', '.join(self.names)}"
            )
        return [self._row(cells) for cells in body["rows"]]

    def _row(self, cells: list[Any]) -> Any:
        fixed, metrics = cells[: len(self.fixed)], cells[len(self.fixed) :]
        named = zip(self.metrics, metrics, strict=True)
        seen = {name: value for name, value in named if value is not None}
        return self.kind(**dict(zip(self.fixed, fixed, strict=True)), metrics=seen)


def as_scalars(metrics: Mapping[str, Any]) -> dict[str, Float[Array, ""]]:
    """Metrics as floats of one type, whatever their types in this update."""
    return {name: jnp.asarray(value, float) for name, value in metrics.items()}


def finite_metrics(
    metrics: Mapping[str, Any], step: int, seeds: tuple[int, ...]
) -> list[dict[str, float]]:
    """The metrics of every seed; raises TrainingError if one is not finite."""
    seen = {name: np.asarray(values).tolist() for name, values in metrics.items()}
    for name, values in seen.items():
        if not np.isfinite(values).all():
            seed = seeds[int(np.flatnonzero(~np.isfinite(values))[0])]
            raise TrainingError(f"{name} is not finite at step {step} of seed {seed}")
    return [{name: values[row] for name, values in seen.items()} for row in range(len(seeds))]


def write_metrics(folder: Path, columns: Columns, rows: Sequence[Any]) -> None:
    """Writes `metrics.csv`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns.names)
    writer.writerows([_cell(value) for value in columns.cells(row)] for row in rows)
    write_atomic(folder / METRICS, text.getvalue())


def read_metrics(folder: Path) -> list[dict[str, str]]:
    """The lines of a run's `metrics.csv` so far, by column; none before the first checkpoint."""
    path = folder / METRICS
    if not path.exists():
        return []
    try:
        return list(csv.DictReader(io.StringIO(read_own(path).decode())))
    except csv.Error as error:
        raise ValueError(one_line(error)) from error


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.9g}"


def write_events(folder: Path, columns: Columns, rows: Sequence[Any]) -> None:
    """Writes rows for TensorBoard, with one curve per seed."""
    # Imported here, because tensorboardX imports torch if it is installed. A SummaryWriter would
    # write in a thread, and wait for it forever after the thread dies of a full disk.
    from tensorboardX.event_file_writer import EventsWriter  # noqa: PLC0415
    from tensorboardX.proto.event_pb2 import Event  # noqa: PLC0415
    from tensorboardX.summary import scalar  # noqa: PLC0415

    if not rows:
        return
    place = folder / "tensorboard"
    with naming(place):
        own_folder(place)
        writer = EventsWriter(str(place / "events"), f".{rows[-1].step}")
        for row in rows:
            for name, value in zip(columns.names, columns.cells(row), strict=True):
                if name not in ("seed", "step") and value is not None:
                    summary = scalar(f"{name}/seed-{row.seed}", value)
                    writer.write_event(Event(wall_time=time.time(), step=row.step, summary=summary))
        writer.close()
