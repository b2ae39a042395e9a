"""A run and its folder: training that can be stopped at any moment and goes on the same.

`config.json` says what is run, `metrics.csv` what came of it; both are the same for the same
configuration, whatever happened on the way. Times are in `timing.csv`, curves for TensorBoard
in `tensorboard/`, checkpoints in `checkpoints/`, the final networks in `parameters.npz`.
"""

import contextlib
import csv
import dataclasses
import io
import json
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from rewardshift.agents.dqn import DQN
from rewardshift.agents.intrinsic import RND, CountBonus
from rewardshift.agents.selection import SELECTIONS
from rewardshift.agents.td3 import TD3
from rewardshift.envs.engines import EngineName, MakeEnv, probe_spec, resolve_engine
from rewardshift.errors import InputError
from rewardshift.files import writable_folder, write_atomic
from rewardshift.training.checkpoints import (
    Checkpoint,
    load_checkpoint,
    npz_bytes,
    save_checkpoint,
)
from rewardshift.training.online import OnlineBudget, OnProgress, Row, Trainer

FORMAT = 1
Agent = DQN | TD3
# What a configuration may be made of, by name.
PARTS: dict[str, Any] = {
    part.__name__: part for part in (DQN, TD3, RND, CountBonus, *SELECTIONS.values())
}


@dataclass(frozen=True)
class RunConfig:
    """What decides a run.

    Args:
        agent: The agent's configuration.
        env: A registered environment's name, or the name of the function that makes it.
        seeds: One row each.
        budget: How long and how.
        engine: The engine that is used, not "auto".
    """

    agent: Agent
    env: str
    seeds: tuple[int, ...]
    budget: OnlineBudget
    engine: EngineName

    def to_json(self) -> dict[str, Any]:
        """As `config.json` has it."""
        return {
            "format": FORMAT,
            "agent": _part_to_json(self.agent),
            "env": self.env,
            "seeds": list(self.seeds),
            "budget": dataclasses.asdict(self.budget),
            "engine": self.engine,
        }

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> "RunConfig":
        """From what `to_json` gave."""
        agent = _part_from_json(body["agent"])
        budget = OnlineBudget(**body["budget"])
        return cls(agent, body["env"], tuple(body["seeds"]), budget, body["engine"])

    @property
    def digest(self) -> str:
        """A short name for the configuration."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return sha256(text.encode()).hexdigest()[:12]


def _part_to_json(part: Any) -> dict[str, Any]:
    """A dataclass with its type beside its fields, and the same for those within it."""
    fields = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
    return {
        "type": type(part).__name__,
        **{k: _part_to_json(v) if dataclasses.is_dataclass(v) else v for k, v in fields.items()},
    }


def _part_from_json(body: dict[str, Any]) -> Any:
    fields = dict(body)
    kind = PARTS[fields.pop("type")]
    for name, value in fields.items():
        if isinstance(value, dict):
            fields[name] = _part_from_json(value)
        elif isinstance(value, list):
            fields[name] = tuple(value)
    return kind(**fields)


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


def make_config(
    agent: Agent,
    env: str | MakeEnv,
    seeds: int | tuple[int, ...],
    budget: OnlineBudget,
    engine: EngineName,
) -> RunConfig:
    """The configuration of a run, checked as far as that goes without making it."""
    chosen = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not chosen or len(set(chosen)) != len(chosen) or min(chosen) < 0:
        raise InputError(f"seeds must be 1 or more, or different numbers from 0 on, got {seeds!r}")
    spec = probe_spec(env)
    if agent.continuous != bool(spec.action_size):
        kind = "continuous" if agent.continuous else "discrete"
        raise InputError(f"{type(agent).__name__} needs {kind} actions, {env} has others")
    if agent.continuous and budget.diagnose:
        raise InputError("diagnose counts visits of discrete actions, so DQN's alone")
    name = env if isinstance(env, str) else getattr(env, "__qualname__", type(env).__qualname__)
    return RunConfig(agent, name, chosen, budget, resolve_engine(env, engine))


def claim_folder(folder: Path, config: RunConfig) -> Path:
    """The folder, for this run: new, or holding the same run."""
    if (folder / "config.json").exists():
        if read_config(folder) != config:
            raise InputError(
                f"the folder {str(folder)!r} holds a run with another configuration;"
                " choose another folder, or go on with that run: rewardshift resume"
            )
    elif folder.exists() and any(folder.iterdir()):
        raise InputError(f"the folder {str(folder)!r} is not empty and holds no run")
    else:
        writable_folder(folder)
        write_atomic(folder / "config.json", json.dumps(config.to_json(), indent=2) + "\n")
    return folder


def read_config(folder: Path) -> RunConfig:
    """The configuration of the run in a folder."""
    path = folder / "config.json"
    try:
        body = json.loads(path.read_text())
        if body["format"] != FORMAT:
            raise ValueError(f"its format is {body['format']!r}, this version reads {FORMAT}")
        return RunConfig.from_json(body)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"no run in {str(folder)!r}: {path.name}: {error}") from error


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


def networks_of(agent: Agent, state: Any) -> dict[str, Any]:
    """What `parameters.npz` keeps of an agent's state."""
    return {name: getattr(state, name) for name in agent.networks}


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
