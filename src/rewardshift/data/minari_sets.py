"""Reads Minari's data sets, including the embedded ones, as a `Dataset`."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import minari
import numpy as np
from gymnasium.envs.registration import EnvSpec
from minari import EpisodeData, MinariDataset
from minari.dataset.minari_dataset import parse_dataset_id
from minari.storage import get_dataset_path

from rewardshift.data.columns import D4RL_FIELDS, from_columns
from rewardshift.data.dataset import Dataset
from rewardshift.envs.tasks import check_imported, find_env
from rewardshift.errors import InputError, one_line
from rewardshift.files import NO_FILE
from rewardshift.wrappers import recorded_shift

EMBEDDED = Path(__file__).parent / "embedded"
PREFIX = "embedded/"


def embedded_names() -> list[str]:
    """The data sets that come with the package."""
    return sorted(path.parents[1].name for path in EMBEDDED.glob("*/data/metadata.json"))


def holds_minari(folder: Path) -> bool:
    """Whether a folder holds a Minari data set."""
    return (folder / "data" / "metadata.json").is_file()


def minari_dataset(source: str | Path, *, download: bool = True) -> MinariDataset:
    """A data set as a `MinariDataset`.

    Args:
        source: `embedded/NAME`, a folder that holds a data set, or the id of one.
        download: Whether Minari may download a data set that is missing.
    """
    folder, what = _folder(source), f"the Minari data set {str(source)!r} cannot be loaded"
    hint = "" if folder else "; those that are here: minari list local"
    # Minari prints about a download.
    with _minari_errors(what, hint), contextlib.redirect_stdout(sys.stderr):
        if folder is None:
            check_id(str(source))
        path = (folder or get_dataset_path(str(source))) / "data"
        if not path.exists() and not download:
            raise InputError(f"{what}: it is not here; to get it: minari download {source}")
        if not path.exists():
            minari.download_dataset(str(source))
        for file in path.iterdir():
            if not file.is_file():  # opening a pipe would block
                raise InputError(f"{what}: {file.name} is no file, but {NO_FILE}")
        metadata = json.loads((path / "metadata.json").read_text())
        # Minari would find them in the environment, which the file tells it to import.
        if not {"observation_space", "action_space"} <= metadata.keys():
            raise InputError(f"{what}: it does not state its spaces")
        return MinariDataset(path)


def read_minari(source: str | Path, download: bool) -> Dataset:
    """A data set of Minari as a `Dataset`; see `minari_dataset` for the sources.

    Observations must be a Box, actions a Box of floating point numbers or Discrete from 0 on;
    both are flattened. An episode without an end counts as truncated.
    """
    found = minari_dataset(source, download=download)
    where = f"the Minari data set {str(source)!r}"
    _check_primal(found, where)
    _check_spaces(found, where)
    with _minari_errors(f"{where} cannot be read"):
        episodes = [_columns(episode, where) for episode in found if len(episode)]
        if not episodes:
            raise InputError(f"{where} has no transitions")
        columns = {key: np.concatenate([each[key] for each in episodes]) for key in D4RL_FIELDS}
    return from_columns(columns, str(source), where, *_environment(found))


def check_id(dataset_id: str) -> None:
    """Refuses an id that Minari does not accept or would not find again."""
    parts = dataset_id.split("/")
    try:
        parse_dataset_id(dataset_id)
        if "" in parts or "data" in parts:  # Minari finds data sets by folders of that name
            raise ValueError
    except (ValueError, TypeError) as error:  # TypeError: there is no version
        raise InputError(
            f"{dataset_id!r} is no id of a Minari data set: it must be like hopper/medium-v0, of"
            " letters, digits, - and _, with a version at its end; folders in it have two letters"
            " or more, and none is called data"
        ) from error


def _folder(source: str | Path) -> Path | None:
    """The folder of a source, or None if the source is an id."""
    name = str(source)
    if name.startswith(PREFIX):
        names = embedded_names()
        if name.removeprefix(PREFIX) not in names:
            listed = ", ".join(f"{PREFIX}{known}" for known in names) or "none"
            raise InputError(f"no data set {name!r} comes with rewardshift; there are: {listed}")
        return EMBEDDED / name.removeprefix(PREFIX)
    return Path(source) if holds_minari(Path(source)) else None


@contextlib.contextmanager
def _minari_errors(what: str, hint: str = "") -> Iterator[None]:
    """Converts every error of Minari, from a missing package to a damaged file, to ours."""
    try:
        yield
    except (InputError, MemoryError):  # a lack of memory is no fault of the file
        raise
    except Exception as error:
        raise InputError(f"{what}: {one_line(error)}{hint}") from error


def _check_primal(found: MinariDataset, where: str) -> None:
    """Refuses a data set whose environment was shifted while it was recorded."""
    with _minari_errors(f"{where} cannot be loaded"):
        recorded = recorded_shift(found.env_spec)
    if recorded is not None:
        raise InputError(
            f"{where} was recorded under ShiftReward: its rewards are shifted, by {recorded}, and"
            " must be primal here; record it again without the wrapper, and give the agent the"
            " shift"
        )


def _check_spaces(found: MinariDataset, where: str) -> None:
    observations, actions = found.observation_space, found.action_space
    if not isinstance(observations, gym.spaces.Box):
        raise InputError(f"{where} has observations of {observations}; only a Box can be read")
    continuous = isinstance(actions, gym.spaces.Box) and actions.dtype.kind == "f"
    discrete = isinstance(actions, gym.spaces.Discrete) and actions.start == 0
    if not (continuous or discrete):
        raise InputError(
            f"{where} has actions of {actions}; only a Box of floating point numbers, or Discrete"
            " from 0 on, can be read"
        )


def _columns(episode: EpisodeData, where: str) -> dict[str, np.ndarray]:
    """An episode, which has one more observation than actions in Minari, as columns."""
    count, actions = len(episode), np.asarray(episode.actions)
    columns = (actions, episode.terminations, episode.truncations, episode.observations[1:])
    if any(len(values) != count for values in columns):
        raise InputError(
            f"{where}, episode {episode.id}, has {count} rewards, and not as many of everything"
            " else"
        )
    flat = np.asarray(episode.observations).reshape(count + 1, -1)
    return {
        "observations": flat[:-1],
        "next_observations": flat[1:],
        "actions": actions.reshape(count, -1) if actions.dtype.kind == "f" else actions,
        "rewards": np.asarray(episode.rewards),
        "terminals": np.asarray(episode.terminations),
        "timeouts": np.append(episode.truncations[:-1], True),
    }


def _environment(found: MinariDataset) -> tuple[str | None, str]:
    """The environment's name, and the data set's description of itself.

    The name is None if the registered environment has other settings: it is another task.
    """
    lines = str(found.storage.metadata.get("description", "")).strip().splitlines()
    note, spec = lines[0] if lines else "", found.env_spec
    if spec is None:
        return None, note
    with contextlib.suppress(gym.error.Error, ImportError, InputError):  # not registered here
        check_imported(spec.id)
        if _settings(find_env(spec.id)) != _settings(spec):
            return None, f"{note} (of {spec.id} with other settings)".strip()
    return spec.id, note


def _settings(spec: EnvSpec) -> dict[str, Any]:
    """The settings of an environment in the form of JSON, without its render mode."""
    settings = {
        **spec.kwargs,
        "render_mode": None,
        "max_episode_steps": spec.max_episode_steps,
        "wrappers": [wrapper.name for wrapper in spec.additional_wrappers or ()],
    }
    return json.loads(json.dumps(settings, default=str))
