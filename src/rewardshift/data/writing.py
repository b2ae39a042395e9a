"""Writes a collected `Dataset` as a Minari data set."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import minari
import numpy as np
from gymnasium.envs.registration import EnvSpec
from minari.data_collector import EpisodeBuffer
from minari.dataset.minari_storage import MinariStorage
from minari.storage import get_dataset_path

from rewardshift.data.dataset import FIELDS, Dataset
from rewardshift.data.minari_sets import PREFIX, check_id
from rewardshift.envs.tasks import check_imported, find_env
from rewardshift.errors import InputError, one_line
from rewardshift.files import naming, writable_folder

OVERHEAD = 2**14  # bytes that HDF5 adds to an episode, slightly more than measured


def check_target(dataset_id: str, folder: Path | None = None) -> Path:
    """The folder of a new data set; raises if it exists or cannot be written.

    Args:
        dataset_id: The id of the data set.
        folder: A new folder; by default the one that Minari has for the id.
    """
    check_id(dataset_id)
    if PREFIX in (dataset_id[: len(PREFIX)], str(folder)[: len(PREFIX)]):
        raise InputError(
            f"{str(folder or dataset_id)!r} is reserved: {PREFIX} is for data sets that come with"
            " rewardshift; choose another name"
        )
    target = (get_dataset_path(dataset_id) if folder is None else folder).absolute()
    if target.exists():
        raise InputError(f"{str(target)!r} exists, and nothing is overwritten")
    writable_folder(next(path for path in target.parents if path.exists()))
    return target


def check_env(env: str) -> EnvSpec:
    """The spec of an environment; raises if a data set cannot store it."""
    check_imported(env)
    try:
        spec = find_env(env)
        gym.make(EnvSpec.from_json(spec.to_json())).close()
    except (gym.error.Error, ImportError, ValueError, TypeError) as error:
        raise InputError(
            f"the environment {env!r} cannot be written into a data set: {one_line(error)};"
            " register it by an entry point of the form module:class, with arguments for JSON"
        ) from error
    return spec


def write_minari(dataset: Dataset, target: Path, spec: EnvSpec, about: Mapping[str, Any]) -> None:
    """Writes a Minari data set with a README.md beside it; it overwrites nothing.

    Reading it gives the same transitions, bit for bit.

    Args:
        dataset: The data set. Each row of an episode must continue the row before: Minari stores
            each observation once.
        target: Its folder; see `check_target`.
        spec: Its environment; see `check_env`.
        about: Minari's metadata: the `dataset_id`, a `description` in one line, and a `recipe`, the
            record of how it was made.
    """
    is_bytes, shape = dataset.observation.dtype == np.uint8, dataset.observation.shape[1:]
    flat = (0, 255, shape, np.uint8) if is_bytes else (-np.inf, np.inf, shape, np.float32)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Written beside its place and then moved there, so that no partial data set is ever found.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as beside:
        size = sum(getattr(dataset, field).nbytes for field in FIELDS)
        # As much as it takes, first: HDF5 crashes on a full disk.
        with naming(target), tempfile.TemporaryFile(dir=beside) as room:
            room.write(bytes(size + OVERHEAD * len(dataset.episodes)))
        whole = Path(beside) / "whole"
        whole.mkdir()
        storage = MinariStorage.new(whole / "data", gym.spaces.Box(*flat), env_spec=spec)
        storage.update_metadata({**about, "minari_version": minari.__version__})
        storage.update_episodes(_buffer(dataset, rows) for rows in dataset.episodes)
        (whole / "README.md").write_text(_card(dataset, about))
        whole.rename(target)


def _buffer(dataset: Dataset, rows: slice) -> EpisodeBuffer:
    """An episode in Minari's form."""
    last = dataset.next_observation[rows][-1:]
    return EpisodeBuffer(
        observations=np.concatenate([dataset.observation[rows], last]),
        actions=dataset.action[rows],
        rewards=dataset.reward[rows],
        terminations=dataset.terminated[rows],
        truncations=dataset.truncated[rows],
        infos={},  # Minari cannot print an episode without them
    )


def _card(dataset: Dataset, about: Mapping[str, Any]) -> str:
    """The README.md of a data set."""
    rows = {"environment": dataset.env, **dataset.summary(), "digest": dataset.digest}
    table = "\n".join(f"| {name} | {text} |" for name, text in rows.items())
    return f"""# {about["dataset_id"]}

{about["description"]}

| | |
| --- | --- |
{table}

Rewards are primal. Actions are on the environment's own scale.

## How it was made

```json
{json.dumps(about["recipe"], indent=2)}
```
"""
