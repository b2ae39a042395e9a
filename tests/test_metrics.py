"""Metrics are open: what an update returns reaches the rows, `metrics.csv` and TensorBoard."""

import csv
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from data_makers import random_data
from fuzzing import as_installed
from hypothesis import given, settings
from hypothesis import strategies as st
from probes import Probe
from tensorboardX.proto.event_pb2 import Event
from victims import KILLED, Fault, call, contents

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift.agents.dqn import DQN
from rewardshift.agents.networks import MLP
from rewardshift.errors import InputError, TrainingError
from rewardshift.lab import Figure, Panel, Unit, find_figure
from rewardshift.lab.trainings import curves_of
from rewardshift.training import checkpoint
from rewardshift.training.budgets import OfflineBudget, OnlineBudget
from rewardshift.training.metrics import Columns, OfflineRow, OnlineRow
from rewardshift.training.runs import Result, offline_run, online_run, train

PROBE = partial(Probe, 3, pays=(1.0, 0.0))
SMALL: dict[str, Any] = {"network": MLP((8,)), "batch_size": 8}
SEEDS = (0, 1)
ONLINE = OnlineBudget(
    steps=40, capacity=30, evaluate_every=7, evaluation_episodes=1, checkpoint_every=16
)
OFFLINE = OfflineBudget(updates=24, evaluate_every=4, evaluation_episodes=1, checkpoint_every=8)


@dataclass(frozen=True)
class Telling(DQN):
    """A DQN with a warm-up, a cycle of two updates, and more to tell."""

    period: ClassVar[int] = 2
    warm_up: ClassVar[int] = 10

    def update(self, state: Any, batch: Any, key: Any, turn: int) -> Any:
        state, metrics = super().update(state, batch, key, turn)
        only = {"turn/odd": 1} if turn else {"turn/even": jnp.asarray(True)}
        return state, {"reward": batch.reward.mean(), **only, "half": jnp.bfloat16(0.5), **metrics}


TELLING = Telling(**SMALL)
NAMES = ("half", "loss", "q", "reward", "turn/even", "turn/odd")


def online(folder: Path | None, agent: Any = TELLING) -> Result:
    return online_run(agent, PROBE, SEEDS, ONLINE).start(folder)


def offline(folder: Path | None, agent: Any = TELLING) -> Result:
    return offline_run(agent, random_data(PROBE, 50), PROBE, SEEDS, OFFLINE).start(folder)


def lines(folder: Path) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open() as file:
        return list(csv.DictReader(file))


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """The curves that TensorBoard would draw."""
    found: dict[str, list[tuple[int, float]]] = {}
    for path in sorted((folder / "tensorboard").iterdir()):
        content = path.read_bytes()
        while content:
            (length,) = struct.unpack("<Q", content[:8])
            event = Event.FromString(content[12 : 12 + length])
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
            content = content[16 + length :]
    return {tag: sorted(points) for tag, points in found.items()}


@pytest.mark.parametrize(("start", "kind"), [(online, OnlineRow), (offline, OfflineRow)])
def test_every_metric_reaches_the_files_and_survives_kills(
    start: Callable[[Path], Result], kind: Any, tmp_path: Path
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert call(start, whole).code == 0
    for fault in (Fault("written", 9), Fault("half", 3)):
        assert call(start, killed, fault=fault).code == KILLED
    assert call(start, killed).code == 0
    assert contents(killed) == contents(whole)

    rows = lines(whole)
    fixed = Columns(kind, ()).fixed
    assert tuple(rows[0]) == (*fixed, *NAMES)
    for row in rows:
        learned = kind is OfflineRow or int(row["step"]) > TELLING.warm_up
        assert all(bool(row[name]) == learned for name in NAMES), row
        if learned:
            assert (row["half"], row["turn/even"], row["turn/odd"]) == ("0.5", "1", "1")
    drawn = curves(whole)
    for name in NAMES:
        wanted = [(int(r["step"]), float(r[name])) for r in rows if r["seed"] == "1" and r[name]]
        assert wanted
        np.testing.assert_allclose(drawn[f"{name}/seed-1"], wanted, rtol=1e-6)


def returning(metrics: Any) -> DQN:
    """A DQN that returns these metrics instead of its own."""

    class Returning(DQN):
        def update(self, state: Any, batch: Any, key: Any, turn: int) -> Any:
            return super().update(state, batch, key, turn)[0], metrics

    return Returning(**SMALL)


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ({"step": 1.0}, "the metric 'step' has the name of another column of metrics.csv"),
        ({"evaluation_return": 1.0}, "'evaluation_return' has the name of another column"),
        ({"x": jnp.zeros(3)}, r"the metric 'x' must be one number, got the shape \(3,\)"),
    ],
)
def test_a_metric_without_a_column_is_refused(metrics: Any, message: str) -> None:
    with as_installed(), pytest.raises(InputError, match=message) as caught:
        online_run(returning(metrics), PROBE, SEEDS, ONLINE)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("start", [online, offline])
def test_a_metric_that_is_not_finite_stops_the_run_with_its_name(
    start: Callable[..., Result],
) -> None:
    with pytest.raises(TrainingError, match=r"strange is not finite at step \d+ of seed 0"):
        start(None, returning({"fine": 1, "strange": jnp.inf}))


def test_an_agent_may_return_no_metrics() -> None:
    assert online(None, returning({})).columns.metrics == ()
    assert offline(None, returning({})).rows[-1].metrics == {}


def test_a_run_does_not_go_on_with_other_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    online(tmp_path / "run")
    monkeypatch.setattr(Telling, "update", DQN.update)
    with pytest.raises(InputError, match=r"returns other metrics than .* loss, q, .* are seed, "):
        online(tmp_path / "run")


def test_a_run_of_an_older_format_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = partial(train, DQN(**SMALL), PROBE, budget=ONLINE, folder=tmp_path / "run")
    with monkeypatch.context() as older:
        older.setattr(checkpoint, "FORMAT", checkpoint.FORMAT - 1)
        run()
    with pytest.raises(InputError, match="its format is 2, this version reads 3") as caught:
        run()
    assert "\n" not in str(caught.value)


names = st.from_regex(r"[a-z_][a-z0-9_./-]{0,8}", fullmatch=True).filter(
    lambda name: name not in OnlineRow.__dataclass_fields__
)
values = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[dict[str, Any]]]:
    """The names of metrics, and rows as their fields."""
    metrics = sorted(draw(st.sets(names, max_size=5)))
    some = st.dictionaries(st.sampled_from(metrics), values) if metrics else st.just({})
    rows = st.fixed_dictionaries(
        {
            "seed": st.integers(0, 9),
            "step": st.integers(1, 10**9),
            "episodes": st.integers(0, 10**9),
            "evaluation_return": values,
            "training_return": st.none() | values,
            "metrics": some,
        },
        optional={"success_rate": st.floats(0, 1), "q_visited": values},
    )
    return metrics, draw(st.lists(rows, max_size=4))


@given(table=tables())
def test_rows_come_back_from_a_checkpoint_as_they_were(
    table: tuple[list[str], list[dict[str, Any]]],
) -> None:
    columns = Columns(OnlineRow, tuple(table[0]))
    rows = [OnlineRow(**row) for row in table[1]]
    again = columns.from_json(json.loads(json.dumps(columns.to_json(rows))))
    assert again == rows
    assert list(map(columns.cells, again)) == list(map(columns.cells, rows))
    for row in rows:
        named = {name: columns.value(row, name) for name in columns.names}
        assert list(named.values()) == columns.cells(row)


@settings(max_examples=10)
@given(order=st.lists(names, unique=True, max_size=6).flatmap(st.permutations))
def test_the_order_of_the_columns_does_not_depend_on_the_agents(order: list[str]) -> None:
    agent = returning(dict.fromkeys(order, 1.0))
    columns = online_run(agent, PROBE, SEEDS, ONLINE).make().columns
    assert columns.metrics == tuple(sorted(order))
    assert columns.names[: len(columns.fixed)] == columns.fixed


def figure_of(measure: str) -> tuple[Figure, Unit]:
    """A figure with one panel, as far as `curves_of` looks at it."""
    panel = Panel("panel", "Panel", "value", task="task", measure=measure)
    return (
        replace(find_figure("figure1"), panels=(panel,), claims=()),
        Unit(("task",), ("method",), SEEDS, ONLINE, "zero"),
    )


def test_a_panel_shows_a_fixed_column_or_a_metric(tmp_path: Path) -> None:
    result = online(tmp_path / "run")
    returned, rewards = (
        curves_of(*figure_of(measure), result) for measure in ("evaluation_return", "reward")
    )
    assert [(curve.method, curve.seed) for curve in rewards] == [("method", 0), ("method", 1)]
    assert returned[0].steps == [7, 14, 21, 28, 35]
    assert rewards[0].steps == [14, 21, 28, 35]  # 7 is in the warm-up
    assert all(np.isfinite(rewards[1].values))
    with pytest.raises(InputError, match="'panel' shows 'rewards', but the columns of 'method'"):
        curves_of(*figure_of("rewards"), result)


def test_metrics_are_of_the_last_updates() -> None:
    """Online, the row at a step has the metrics of that step's update."""

    @dataclass(frozen=True)
    class Numbered(DQN):
        def update(self, state: Any, batch: Any, key: Any, turn: int) -> Any:
            state, _ = super().update(state, batch, key, turn)
            return state, {"key": jax.random.uniform(key)}

    often = replace(ONLINE, evaluate_every=1)
    trainer = online_run(Numbered(**SMALL), PROBE, (3,), often).make()
    trainer.run_to_checkpoint()
    trainer.close()
    key = jax.random.split(jax.random.key(3))[1]
    wanted = [float(jax.random.uniform(jax.random.fold_in(key, step))) for step in range(16)]
    assert [row.metrics["key"] for row in trainer.rows] == wanted
