"""Loads a data set from any source: Minari's, or a single file, D4RL's HDF5 or NumPy's npz.

In a file a row is one transition. Terminations and time limits stay separate, and a next
observation never comes from another episode.
"""

import errno
from collections.abc import Mapping
from pathlib import Path

import h5py
import numpy as np

from rewardshift.data.dataset import Dataset, Subset, as_column
from rewardshift.data.minari_sets import PREFIX, holds_minari, read_minari
from rewardshift.errors import InputError, one_line
from rewardshift.files import DAMAGE, arrays_in, as_path

ENDINGS = (".hdf5", ".h5", ".npz")
# h5py has no error of its own for a damaged file.
HDF5_DAMAGE = (*DAMAGE, OSError, RuntimeError, TypeError, OverflowError)
# The fields of a `Dataset` by their names in D4RL.
D4RL_FIELDS = {
    "observations": "observation",
    "actions": "action",
    "rewards": "reward",
    "terminals": "terminated",
    "timeouts": "truncated",
    "next_observations": "next_observation",
}
OPTIONAL = ("timeouts", "next_observations")


def load_dataset(
    source: str | Path, subset: Subset | None = None, *, download: bool = True
) -> Dataset:
    """Loads a data set, or a part of it.

    Args:
        source: `embedded/NAME` for one that comes with the package, a file that ends in .hdf5,
            .h5 or .npz, the folder of a Minari data set, or the id of one.
        subset: The part to load; by default all of it.
        download: Whether Minari may download a data set that is missing.
    """
    path = as_path("source", source)
    if str(source).startswith(PREFIX) or holds_minari(path):
        dataset = read_minari(source, download)
    elif path.suffix.lower() in ENDINGS:
        dataset = read_file(path)
    elif path.exists() or path.is_absolute():  # so it is not an id
        raise InputError(
            f"{str(source)!r} is neither the folder of a Minari data set nor a file that ends in"
            f" {', '.join(ENDINGS)}"
        )
    else:
        dataset = read_minari(source, download)
    return dataset if subset is None else dataset.subset(subset)


def whole_name(source: str) -> str:
    """The name of a source that is valid in every working folder: an absolute path for files."""
    is_path = not source.startswith(PREFIX) and Path(source).exists()
    return str(Path(source).absolute()) if is_path else source


def read_file(path: Path) -> Dataset:
    """The data set in a file that ends in .hdf5, .h5 or .npz.

    It needs `observations`, `actions`, `rewards` and `terminals`, and `timeouts` or
    `next_observations` or both; other keys are ignored. If a row is both a terminal and a timeout,
    it is terminal. The end of the file truncates its last episode.

    Without `next_observations`, the next observation is that of the next row in the same episode.
    It is unknown for the last transition before a time limit or before the end of the file: that
    transition is left out, and the one before it ends the episode. The next observation of a
    terminal transition is never used, so it is set to the transition's own observation.

    Without `timeouts`, an episode ends where a row's observation is not the next observation of the
    row before.
    """
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    where = f"the file {str(path)!r}"
    columns = {
        key: as_column(D4RL_FIELDS[key], values, where, key)
        for key, values in _read(path, where).items()
    }
    count = len(columns["rewards"])
    for key, values in columns.items():
        if len(values) != count:
            raise InputError(f"{where} has {count} 'rewards' and {len(values)} {key!r}")
    if count == 0:
        raise InputError(f"{where} has no transitions")
    return _transitions(columns, str(path), where)


def _transitions(columns: Mapping[str, np.ndarray], name: str, where: str) -> Dataset:
    observation, terminated = columns["observations"], columns["terminals"]
    last = np.arange(len(terminated)) == len(terminated) - 1
    if "next_observations" in columns:
        following = columns["next_observations"]
        if following.shape != observation.shape:
            raise InputError(
                f"{where}: a row of 'observations' has {observation.shape[1]} numbers, one of"
                f" 'next_observations' {following.shape[1]}; both must have the same"
            )
        onward = np.roll(observation, -1, axis=0)
        cut = columns.get("timeouts", (following != onward).any(axis=1)) | last
        kept = np.ones_like(last)
    else:
        following = np.where(terminated[:, None], observation, np.roll(observation, -1, axis=0))
        kept = terminated | ~(columns["timeouts"] | last)
        cut = ~np.roll(kept, -1)
    if not kept.any():
        raise InputError(
            f"{where} has no transition whose next observation is known; add 'next_observations'"
        )
    return Dataset(
        name=name,
        observation=observation[kept],
        action=columns["actions"][kept],
        reward=columns["rewards"][kept],
        next_observation=following[kept],
        terminated=terminated[kept],
        truncated=(cut & ~terminated)[kept],
    )


def _read(path: Path, where: str) -> dict[str, np.ndarray]:
    """The arrays of the known keys."""
    try:
        is_npz = path.suffix.lower() == ".npz"
        with arrays_in(path.open("rb")) if is_npz else h5py.File(path, "r") as file:
            there = set(file)
            columns = {key: np.asarray(file[key][()]) for key in D4RL_FIELDS if key in there}
    except HDF5_DAMAGE as error:  # also a group, or objects that would need a pickle
        if getattr(error, "errno", None) in (errno.EIO, errno.ENOMEM):  # not of the file
            raise
        raise InputError(f"{where} cannot be read: {one_line(error)}") from error
    missing = [key for key in D4RL_FIELDS if key not in OPTIONAL and key not in there]
    if missing:
        raise InputError(
            f"{where} has no {missing[0]!r}; it has {', '.join(sorted(there)) or 'nothing'}"
        )
    if not there.intersection(OPTIONAL):
        raise InputError(
            f"{where} has neither 'timeouts' nor 'next_observations', so where an episode was cut"
            " off cannot be known; add one of the two"
        )
    return columns
