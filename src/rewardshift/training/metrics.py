"""The files of a run's metrics: `metrics.csv`, and curves for TensorBoard."""

import csv
import io
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewardshift.errors import one_line
from rewardshift.files import naming, own_folder, read_own, write_atomic
from rewardshift.training.trainer import Columns

METRICS = "metrics.csv"


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
