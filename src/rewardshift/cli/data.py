"""The commands `data inspect` and `data list`."""

import sys
import warnings
from dataclasses import dataclass
from typing import Annotated

import tyro

from rewardshift.auto import Cautious
from rewardshift.checks import Discount, checked
from rewardshift.data.card import summarise
from rewardshift.data.dataset import Dataset
from rewardshift.data.loading import load_dataset
from rewardshift.data.minari_sets import local_sets
from rewardshift.doctor.measure import discounted_returns
from rewardshift.errors import plain
from rewardshift.optimism import value_bounds


@dataclass(frozen=True, kw_only=True)
class Inspect:
    """Describe a data set."""

    source: tyro.conf.Positional[str]
    """embedded/NAME, a Minari id, the folder of a Minari data set, or an HDF5 or npz file."""
    gamma: float = 0.99
    """The discount."""

    def run(self) -> None:
        """Prints the numbers."""
        checked("gamma", Discount, self.gamma)
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
        }
        for name, text in lines.items():
            if text:
                print(f"{name:18} {plain(text)}")
        _print_suggestion(dataset, self.gamma)


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


def _print_suggestion(dataset: Dataset, gamma: float) -> None:
    """Prints the cautious shift that the data suggest."""
    ends = dataset.terminated | dataset.truncated
    values = discounted_returns(dataset.reward.astype(float), gamma, ends, 0.0 * ends)
    low, high = float(values.min()), float(values.max())
    print(
        f"{'discounted return':18} from {low:.6g} to {high:.6g}, of every row, at gamma {gamma:g}"
    )
    if dataset.truncated.any():
        print("Rewards after a cut count as 0.")
    bounds = value_bounds(dataset.reward.astype(float), dataset.terminated, gamma)
    print(f"{'possible values':18} from {bounds.low:.6g} to {bounds.high:.6g}, with such rewards")
    bias = Cautious().shift(dataset.reward, dataset.terminated, gamma).bias
    if bias:
        print(f"Caution everywhere needs a shift of {bias:.6g} or more: --shift {bias:.6g}")
        print("--terminal absorbing, or --shift auto, which is the same with this gamma.")
    else:
        print("No possible value is below 0: a Q that starts at 0 is cautious without a shift,")
        print("and any positive one makes it more so.")
