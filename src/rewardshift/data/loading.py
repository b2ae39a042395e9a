"""Loads a data set from any source: Minari's, or a single file, D4RL's HDF5 or NumPy's npz.

In a file a row is one transition. Terminations and time limits stay separate, and a next
observation never comes from another episode.
"""

import errno
from pathlib import Path

import h5py
import numpy as np

from rewardshift.data.columns import D4RL_FIELDS, OPTIONAL, from_columns
from rewardshift.data.dataset import Dataset, Subset
from rewardshift.data.minari_sets import PREFIX, holds_minari, read_minari
from rewardshift.errors import InputError, one_line
from rewardshift.files import DAMAGE, arrays_in, as_path

ENDINGS = (".hdf5", ".h5", ".npz")
# h5py has no error of its own for a damaged file.
HDF5_DAMAGE = (*DAMAGE, OSError, RuntimeError, TypeError, OverflowError)


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


def absolute_source(source: str) -> str:
    """The source, valid in every working folder: the absolute path of a file, or the same name."""
    is_path = not source.startswith(PREFIX) and Path(source).exists()
    return str(Path(source).absolute()) if is_path else source


def read_file(path: Path) -> Dataset:
    """The data set in a file that ends in .hdf5, .h5 or .npz.

    It needs `observations`, `actions`, `rewards` and `terminals`, and `timeouts` or
    `next_observations` or both; see `from_columns`. Other keys are ignored.
    """
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    where = f"the file {str(path)!r}"
    return from_columns(_read(path, where), str(path), where)


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
