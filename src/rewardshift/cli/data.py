"""The commands `data inspect` and `data list`."""

import shlex
import sys
import warnings
from dataclasses import dataclass
from typing import Annotated

import tyro

from rewardshift.data.card import summarise
from rewardshift.data.loading import load_dataset
from rewardshift.data.minari_sets import local_sets
from rewardshift.errors import plain


@dataclass(frozen=True, kw_only=True)
class Inspect:
    """Describe a data set."""

    source: tyro.conf.Positional[str]
    """embedded/NAME, a Minari id, the folder of a Minari data set, or an HDF5 or npz file."""

    def run(self) -> None:
        """Prints the numbers."""
        dataset = load_dataset(self.source)
        low, high = dataset.action.min(), dataset.action.max()
        action = f"discrete, from {low} to {high}"
        if dataset.action.ndim > 1:
            size = f"{dataset.action.shape[1]} x {dataset.action.dtype}"
            action = f"{size}, from {low:.6g} to {high:.6g}"
        lines = {
            "environment": dataset.env or "not known",
            "note": dataset.note,
            "observation": f"{dataset.observation.shape[1]} x {dataset.observation.dtype}",
            "action": action,
            **summarise(dataset),
            "a shift for it": f"rewardshift suggest --data {shlex.quote(self.source)}",
        }
        for name, text in lines.items():
            if text:
                print(f"{name:18} {plain(text)}")


@dataclass(frozen=True)
class ListSets:
    """List the data sets of rewardshift and those of Minari on this machine."""

    def run(self) -> None:
        """Prints a line for each data set."""
        with warnings.catch_warnings(record=True) as warned:  # about damaged data sets
            warnings.simplefilter("always")
            sets = local_sets()
        for name, text in sets.items():
            print(f"{plain(name)}  {plain(text)}")
        for warning in warned:
            print(f"rewardshift: {plain(str(warning.message))}", file=sys.stderr)
        if not sets:
            print("no data sets; make one with: rewardshift collect RUN --id ID")


def data(
    options: Annotated[Inspect, tyro.conf.subcommand("inspect")]
    | Annotated[ListSets, tyro.conf.subcommand("list")],
) -> None:
    """Inspect or list data sets.

    Args:
        options: The command.
    """
    options.run()
