"""Metrics: the scalars that an agent's update returns, and the columns of `metrics.csv`.

The loops know no metric by name. They find the names by tracing the agent's updates before the
training begins, so a name or a value that no column can hold is refused before any work is done.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rewardshift.agents.base import Agent
from rewardshift.errors import InputError, TrainingError, shown
from rewardshift.training.memory import check_memory, update_needs
from rewardshift.training.tracing import check_same

# TensorBoard replaces all other characters, which could make two names equal.
NAME = re.compile(r"\w[\w./-]*", re.ASCII)


@runtime_checkable
class Row(Protocol):
    """A line of `metrics.csv`: one seed at one evaluation.

    It is a dataclass. Its fields are the fixed columns, except for `metrics`: the agent's metrics
    by name, without those that no update has returned yet.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def seed(self) -> int:
        """The seed of the run's row."""
        ...

    @property
    def step(self) -> int:
        """Steps, or updates, before the evaluation."""
        ...

    @property
    def evaluation_return(self) -> float:
        """The mean primal return of the greedy episodes."""
        ...

    @property
    def metrics(self) -> dict[str, float]:
        """The agent's metrics."""
        ...


@dataclass(frozen=True)
class Columns:
    """The columns of `metrics.csv`: the fixed ones, then the agent's metrics.

    Args:
        kind: The kind of row, a dataclass that is a `Row`.
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

    def cells(self, row: Row) -> list[float | None]:
        """The values of a row, in the order of the columns; None for an empty cell."""
        return [
            *(getattr(row, name) for name in self.fixed),
            *(row.metrics.get(name) for name in self.metrics),
        ]

    def value(self, row: Row, name: str) -> float | None:
        """The value of one column in a row."""
        return row.metrics.get(name) if name in self.metrics else getattr(row, name)

    def to_json(self, rows: Sequence[Row]) -> dict[str, Any]:
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


def find_columns(kind: type, agent: Agent, state: Any, batch: Any) -> Columns:
    """The columns of a run, found by tracing the agent's updates without computing them.

    Args:
        kind: The kind of row.
        agent: The agent's configuration.
        state: Its state, with a leading axis over the seeds.
        batch: The `Batch` of one update of one seed, or its shapes.

    Raises:
        InputError: An update returns another kind of state, or does not fit into memory; or a
            metric is not a scalar, or its name is not plain or that of a fixed column.
    """
    fixed, what = Columns(kind, ()).fixed, f"{type(agent).__name__}.update"
    found: set[str] = set()

    def updates(state: Any, batch: Any, key: Any) -> Any:
        for turn in range(agent.period):
            returned = agent.update(state, batch, key, turn)
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise InputError(
                    f"{what} must return the new state and a dict of metrics, got {shown(returned)}"
                )
            after, metrics = returned
            found.update(_checked(metrics, fixed))
            check_same(what, state, after)
            state = after
        return state

    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), state)
    traced = jax.make_jaxpr(updates)(one, batch, jax.random.key(0))
    check_memory(update_needs(traced.jaxpr, seeds=len(jax.tree.leaves(state)[0])))
    return Columns(kind, tuple(sorted(found)))


def _checked(metrics: Any, fixed: tuple[str, ...]) -> list[str]:
    """The names of the metrics; refuses those that no column can hold."""
    if not isinstance(metrics, Mapping):
        raise InputError(f"update must return its metrics as a dict, got {shown(metrics)}")
    for name, value in metrics.items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise InputError(
                "a metric's name must be letters, digits, '_', '-', '.' and '/', the first of them"
                f" a letter, a digit or '_', got {shown(name)}"
            )
        if name in fixed:
            raise InputError(
                f"the metric {name!r} has the name of another column of metrics.csv; the agent must"
                f" give it a name that is none of {', '.join(fixed)}"
            )
        if not _is_scalar(value):
            kind = f"{value.dtype}{value.shape}" if hasattr(value, "dtype") else shown(value)
            raise InputError(f"the metric {name!r} must be a real number, got {kind}")
    return list(metrics)


def _is_scalar(value: Any) -> bool:
    if not isinstance(value, jax.Array | np.ndarray | np.generic | float | int):
        return False
    dtype = jnp.result_type(value)
    real = any(jnp.issubdtype(dtype, kind) for kind in (jnp.floating, jnp.integer, jnp.bool_))
    return real and np.shape(value) == ()


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
