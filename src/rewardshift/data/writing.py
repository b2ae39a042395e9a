"""Writes a `Dataset` as a Minari data set."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from rewardshift.data.card import data_card
from rewardshift.data.dataset import FIELDS, Dataset
from rewardshift.data.minari_sets import PREFIX, check_id
from rewardshift.envs.tasks import check_imported, find_env
from rewardshift.errors import InputError, one_line
from rewardshift.files import naming, sync_folder

OVERHEAD = 2**14  # bytes that HDF5 adds to an episode, slightly more than measured


def check_target(dataset_id: str, folder: Path | None = None) -> Path:
    """The folder of a new data set; raises if it cannot be written there.

    Args:
        dataset_id: The id of the data set.
        folder: A new or empty folder; by default Minari's own place.
    """
    from minari.storage import get_dataset_path  # noqa: PLC0415  slow to import

    check_id(dataset_id)
    for name in (dataset_id, str(folder)):
        if name.startswith(PREFIX):
            raise InputError(
                f"{name!r} is reserved: {PREFIX} is for data sets that come with rewardshift;"
                " choose another name"
            )
    target = (get_dataset_path(dataset_id) if folder is None else folder).absolute()
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise InputError(f"{str(target)!r} is not an empty folder, and nothing is overwritten")
    above = next(path for path in target.parents if path.exists())
    if not (above.is_dir() and os.access(above, os.W_OK)):
        raise InputError(f"cannot write to the folder {str(above)!r}")
    return target


def write_minari(
    dataset: Dataset,
    dataset_id: str,
    *,
    algorithm: str,
    description: str,
    recipe: Mapping[str, Any],
    folder: Path | None = None,
) -> Path:
    """Writes a Minari data set with a README.md beside it; it overwrites nothing.

    Reading it gives the same transitions, bit for bit.

    Args:
        dataset: The data set.
        dataset_id: The id of the new data set.
        algorithm: The algorithm that collected the data.
        description: A description in one line.
        recipe: The record of how it was made, written as JSON.
        folder: See `check_target`.

    Returns:
        The folder of the data set.
    """
    import minari  # noqa: PLC0415  slow to import
    from minari.dataset.minari_storage import MinariStorage  # noqa: PLC0415

    target = check_target(dataset_id, folder)
    _check_chain(dataset)
    spec, action_space = _task(dataset)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Written beside its place and then moved there, so that no partial data set is ever found.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as beside:
        with naming(target):
            _check_room(Path(beside), dataset)
        whole = Path(beside) / "whole"
        whole.mkdir()
        storage = MinariStorage.new(
            whole / "data",
            observation_space=_observation_space(dataset),
            action_space=action_space,
            env_spec=spec,
        )
        storage.update_metadata(
            {
                "dataset_id": dataset_id,
                "algorithm_name": algorithm,
                "description": description,
                "minari_version": minari.__version__,
                "recipe": dict(recipe),
            }
        )
        storage.update_episodes(_buffers(dataset))
        (whole / "README.md").write_text(data_card(dataset, dataset_id, description, recipe))
        whole.rename(target)
        sync_folder(target.parent)
    if folder is None:
        _name_folders(dataset_id)
    return target


def _check_room(folder: Path, dataset: Dataset) -> None:
    """Writes and removes as many bytes as the data set takes: HDF5 crashes on a full disk."""
    size = sum(getattr(dataset, field).nbytes for field in FIELDS)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(size + OVERHEAD * len(dataset.episodes)))


def _name_folders(dataset_id: str) -> None:
    """Registers the folders of an id with Minari, as Minari does for its own data sets."""
    from minari.namespace import create_namespace, list_local_namespaces  # noqa: PLC0415

    above = dataset_id.rpartition("/")[0]
    if above and above not in list_local_namespaces():
        create_namespace(above)


def _check_chain(dataset: Dataset) -> None:
    """Refuses rows that do not continue the row before: Minari stores each observation once."""
    led, begun = dataset.next_observation[:-1], dataset.observation[1:]
    differs = (led != begun) | (np.signbit(led) != np.signbit(begun))  # 0 and -0 differ
    odd = np.flatnonzero(differs.any(axis=1) & ~(dataset.terminated | dataset.truncated)[:-1])
    if odd.size:
        raise InputError(
            f"the data set {dataset.name!r} is not a sequence of episodes: row {odd[0] + 1} does"
            f" not continue row {odd[0]}, although no episode ends there"
        )


def _task(dataset: Dataset) -> tuple[Any, gym.Space[Any]]:
    """The environment's spec, if it is known, and the space of the actions."""
    size = dataset.action.shape[1:]
    if dataset.env is None:
        if size:
            return None, gym.spaces.Box(-np.inf, np.inf, size, np.float32)
        return None, gym.spaces.Discrete(int(dataset.action.max()) + 1)
    check_imported(dataset.env)
    spec, space = check_env(dataset.env)
    if space.shape != size:
        raise InputError(
            f"the data set {dataset.name!r} has actions of the shape {size}, {dataset.env} has"
            f" {space}"
        )
    if isinstance(space, gym.spaces.Box):
        low, high = (np.asarray(bound, np.float32) for bound in (space.low, space.high))
        return spec, gym.spaces.Box(low, high, size, np.float32)
    return spec, space


def check_env(env: str) -> tuple[EnvSpec, gym.Space[Any]]:
    """The spec of an environment and its action space; refused if JSON cannot store the spec."""
    try:
        spec = find_env(env)
        EnvSpec.from_json(spec.to_json())
        made = gym.make(spec)
    except (gym.error.Error, ImportError, ValueError, TypeError) as error:
        raise InputError(
            f"the environment {env!r} cannot be written into a data set: {one_line(error)};"
            " register it by an entry point of the form module:class, with arguments for JSON"
        ) from error
    made.close()
    return spec, made.action_space


def _observation_space(dataset: Dataset) -> gym.spaces.Box:
    shape = dataset.observation.shape[1:]
    if dataset.observation.dtype == np.uint8:
        return gym.spaces.Box(0, 255, shape, np.uint8)
    return gym.spaces.Box(-np.inf, np.inf, shape, np.float32)


def _buffers(dataset: Dataset) -> Iterator[Any]:
    """The episodes in Minari's form."""
    from minari.data_collector import EpisodeBuffer  # noqa: PLC0415  slow to import

    for rows in dataset.episodes:
        last = dataset.next_observation[rows][-1:]
        yield EpisodeBuffer(
            observations=np.concatenate([dataset.observation[rows], last]),
            actions=dataset.action[rows],
            rewards=dataset.reward[rows],
            terminations=dataset.terminated[rows],
            truncations=dataset.truncated[rows],
            infos={},  # Minari cannot print an episode without them
        )
