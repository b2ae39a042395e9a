"""The folder of a run: its configuration, its checkpoints and logs, and the policy in it.

`config.json` holds the configuration and `metrics.csv` the results; both are the same for the
same configuration, with or without interruptions. Times are in `timing.csv`, curves for
TensorBoard in `tensorboard/`, checkpoints in `checkpoints/`, and the networks at the last
checkpoint in `parameters.npz`.
"""

import csv
import io
import json
import re
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rewardshift.agents.base import Agent
from rewardshift.errors import InputError, one_line
from rewardshift.files import (
    DAMAGE,
    LEFTOVER,
    LOCK,
    as_path,
    naming,
    opened,
    own_folder,
    read_arrays,
    read_json,
    read_own,
    write_atomic,
)
from rewardshift.training.checkpoint import Checkpoints, fill, kept_checkpoints, npz_bytes
from rewardshift.training.config import FORMAT, RunConfig
from rewardshift.training.metrics import Columns
from rewardshift.training.policy import Policy
from rewardshift.training.trainer import OnProgress, Trainer

METRICS, PARAMETERS, TIMES = "metrics.csv", "parameters.npz", "timing.csv"


def check_folder(folder: Path, config: RunConfig) -> bool:
    """Whether a run's folder is new; refuses one that holds anything but this run."""
    refuse_nameless(config.env)
    config.to_json()  # refuses parts that could not be restored
    if not (folder / "config.json").exists():
        there = folder.iterdir() if folder.exists() else ()
        # A run that is killed at its start leaves its lock and partially written files.
        if any(path.suffix != LEFTOVER and path.name != LOCK for path in there):
            raise InputError(f"the folder {str(folder)!r} is not empty and holds no run")
        return True
    if read_config(folder).digest not in config.digests:
        raise InputError(
            f"the folder {str(folder)!r} holds a run with another configuration;"
            f" choose another folder, or go on with that run: {how_to_resume(folder)}"
        )
    if time_spent(folder) > 0 and not any(kept_checkpoints(folder / "checkpoints")):
        raise InputError(
            f"the run in {str(folder)!r} has results but no checkpoint to go on from; restore"
            " its folder checkpoints, or train into another folder"
        )
    return False


def refuse_nameless(env: str) -> None:
    """Raises if an environment's name is that of a function that cannot be found again."""
    if "<" in env:  # as in "<lambda>", "<locals>" and "<... object at 0x...>"
        raise InputError(
            "a run in a folder needs an environment that can be made again: a registered name, a"
            f" function or class of a module, or functools.partial of one; got the {env}"
        )


def how_to_resume(folder: Path) -> str:
    """The command that goes on with the run in a folder."""
    return f"rewardshift resume {shlex.quote(str(folder))}"


def read_config(folder: Path) -> RunConfig:
    """The configuration of the run in a folder."""
    path = folder / "config.json"
    try:
        return RunConfig.from_json(read_json(path, version=FORMAT))
    except DAMAGE as error:
        raise InputError(f"no run in {str(folder)!r}: {path.name}: {one_line(error)}") from error


def note_time(folder: Path, step: int, seconds: float) -> None:
    """Adds a line to `timing.csv`: the seconds since the previous checkpoint."""
    path = folder / TIMES
    with naming(path), opened(path, "ab") as file:
        if file.tell() == 0:
            file.write(b"step,seconds_since_last\n")
        file.write(f"{step},{seconds:.3f}\n".encode())


def time_spent(folder: Path) -> float:
    """The seconds of training up to the last checkpoint, over all starts; 0 without one."""
    path = folder / TIMES
    lines = read_own(path).decode(errors="replace").splitlines() if path.exists() else []
    whole = [re.fullmatch(r"\d+,(\d+\.\d{3})", line) for line in lines]  # a kill may cut one
    return sum(float(line[1]) for line in whole if line)


def run_in_folder(
    config: RunConfig, trainer: Trainer, folder: Path, on_progress: OnProgress
) -> None:
    """Trains to the end, from the last checkpoint on. This process must hold the folder."""
    is_new = check_folder(folder, config)  # again: another process may have written meanwhile
    if is_new or read_config(folder) != config:
        write_atomic(folder / "config.json", json.dumps(config.to_json(), indent=2) + "\n")
    replay = trainer.replay
    record, capacity = (replay.records.dtype, replay.capacity) if replay else (None, 0)
    checkpoints = Checkpoints(folder / "checkpoints", config.digests, record, len(config.row_seeds))
    snapshot = None if is_new else checkpoints.newest(trainer.snapshot().arrays)
    if snapshot is not None:
        try:
            trainer.restore(snapshot)
        except DAMAGE as error:
            raise InputError(
                f"the last checkpoint in {str(folder)!r} cannot be used: {one_line(error)}"
            ) from error
        _write_metrics_and_parameters(config, trainer, folder)  # the files may be lost or damaged
    while trainer.step < config.budget.steps:
        before, clock = trainer.step, time.perf_counter()
        trainer.run_to_checkpoint(on_progress)
        _write_metrics_and_parameters(config, trainer, folder)
        write_events(folder, trainer.columns, [row for row in trainer.rows if row.step > before])
        checkpoints.save(trainer.snapshot(before), capacity)
        note_time(folder, trainer.step, time.perf_counter() - clock)


def _write_metrics_and_parameters(config: RunConfig, trainer: Trainer, folder: Path) -> None:
    """Writes `metrics.csv` and `parameters.npz`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(trainer.columns.names)
    for row in trainer.rows:
        writer.writerow([_cell(value) for value in trainer.columns.cells(row)])
    write_atomic(folder / METRICS, text.getvalue())
    about = {"config": np.asarray(config.digest), "step": np.asarray(trainer.step, np.int64)}
    networks = _networks(config.agent, trainer.state)
    write_atomic(folder / PARAMETERS, npz_bytes({**about, **networks}))


def _networks(agent: Agent, state: Any) -> dict[str, Any]:
    """The contents of `parameters.npz`: the fields of a state that `greedy` reads."""
    acting = agent.acting_state(state)
    return {name: getattr(acting, name) for name in agent.networks}


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
    path = folder / "tensorboard"
    with naming(path):
        own_folder(path)
        writer = EventsWriter(str(path / "events"), f".{rows[-1].step}")
        for row in rows:
            for name, value in zip(columns.names, columns.cells(row), strict=True):
                if name not in ("seed", "step") and value is not None:
                    summary = scalar(f"{name}/seed-{row.seed}", value)
                    writer.write_event(Event(wall_time=time.time(), step=row.step, summary=summary))
        writer.close()


def load(path: Path | str, seed: int | None = None) -> Policy:
    """The greedy policy of a run, at its last checkpoint.

    Acting does not need the environment.

    Args:
        path: The run's folder, or a copy of its `config.json` and `parameters.npz`.
        seed: The run's seed whose policy to load; by default its first.
    """
    path = as_path("path", path)
    config = read_config(path)
    file = path / PARAMETERS
    if not file.exists():
        raise InputError(
            f"the run in {str(path)!r} has no {PARAMETERS}, which is written by"
            f" {how_to_resume(path)}"
        )
    row, agent, spec = config.row(seed), config.agent, config.spec
    state = jax.eval_shape(lambda: agent.init(jax.random.key(0), spec))
    try:
        leaves = read_arrays(read_own(file))
        if str(leaves.pop("['config']")) not in config.digests:
            raise ValueError("it belongs to a run with another configuration")
        step = int(leaves.pop("['step']"))
        if any(np.shape(leaf)[:1] != (len(config.seeds),) for leaf in leaves.values()):
            raise ValueError("its arrays do not have a row for each seed")
        own = {name: leaf[row] for name, leaf in leaves.items()}
        networks = jax.tree.map(jnp.asarray, fill(_networks(agent, state), own))
    except DAMAGE as error:
        raise InputError(
            f"{str(file)!r} cannot be used: {one_line(error)}; {how_to_resume(path)!r} writes"
            " it again"
        ) from error
    acting = agent.acting_state(state)._replace(**networks)
    return Policy(agent, spec, acting, config.env, config.seeds[row], step)
