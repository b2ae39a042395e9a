"""Loads a data set from any source."""

from pathlib import Path

from rewardshift.data.dataset import Dataset, Subset
from rewardshift.data.files import read_file
from rewardshift.data.minari_sets import PREFIX, holds_minari, read_minari
from rewardshift.errors import InputError
from rewardshift.files import as_path

ENDINGS = (".hdf5", ".h5", ".npz")


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
    path, name = as_path("source", source), repr(str(source))
    if str(source).startswith(PREFIX) or holds_minari(path):
        dataset = read_minari(source, download)
    elif path.suffix.lower() in ENDINGS:
        if not path.is_file():
            raise InputError(f"there is no file {name}")
        dataset = read_file(path)
    elif path.is_file():
        raise InputError(f"the file {name} cannot be read: it must end in {', '.join(ENDINGS)}")
    elif path.is_dir():
        raise InputError(f"the folder {name} holds no Minari data set")
    elif path.is_absolute():  # so it is not an id
        raise InputError(f"there is no folder {name}")
    else:
        dataset = read_minari(source, download)
    return dataset if subset is None else dataset.subset(subset)


def whole_name(source: str) -> str:
    """The name of a source that is valid in every working folder: an absolute path for files."""
    is_path = not source.startswith(PREFIX) and Path(source).exists()
    return str(Path(source).absolute()) if is_path else source
