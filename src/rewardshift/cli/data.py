"""The command `data inspect`."""

import shlex
from typing import Annotated, Literal

import tyro

from rewardshift.data.loading import load_dataset
from rewardshift.errors import plain


def data(
    _: Annotated[Literal["inspect"], tyro.conf.Positional, tyro.conf.arg(metavar="inspect")],
    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")],
    /,
) -> None:
    """Describe a data set, as in: rewardshift data inspect embedded/hopper-medium.

    Args:
        _: Prints the numbers of the data set.
        source: embedded/NAME, a Minari id, the folder of a Minari data set, or an HDF5 or npz file.
    """
    dataset = load_dataset(source)
    low, high = dataset.action.min(), dataset.action.max()
    actions = f"discrete, from {low} to {high}"
    if dataset.action.ndim > 1:
        size = f"{dataset.action.shape[1]} x {dataset.action.dtype}"
        actions = f"{size}, from {low:.6g} to {high:.6g}"
    lines = {
        "environment": dataset.env or "not known",
        "note": dataset.note,
        "observation": f"{dataset.observation.shape[1]} x {dataset.observation.dtype}",
        "action": actions,
        **dataset.summary(),
        "a shift for it": f"rewardshift suggest --data {shlex.quote(source)}",
    }
    for name, text in lines.items():
        if text:
            print(f"{name:18} {plain(text)}")
