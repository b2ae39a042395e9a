"""The paper's figures, by name."""

from difflib import get_close_matches

from rewardshift.errors import InputError
from rewardshift.experiments.control import (
    CONTROL,
    CONTROL_ABLATION,
    HUMANOID,
    SPARSE_CHEETAH_FIGURE,
)
from rewardshift.experiments.curiosity import (
    CURIOSITY,
    CURIOSITY_ABLATION,
    CURIOSITY_EXPLAINED,
    CURIOSITY_STORED,
)
from rewardshift.experiments.fetch import FETCH
from rewardshift.experiments.figure import Figure
from rewardshift.experiments.maze import FIGURE1, MAZE_SIZES
from rewardshift.experiments.mechanism import OFFLINE_MECHANISM
from rewardshift.experiments.offline import OFFLINE, OFFLINE_ABLATION

FIGURES = {
    figure.name: figure
    for figure in (
        *(FIGURE1, MAZE_SIZES),
        *(CURIOSITY, CURIOSITY_ABLATION, CURIOSITY_STORED, CURIOSITY_EXPLAINED),
        *(CONTROL, CONTROL_ABLATION, SPARSE_CHEETAH_FIGURE, HUMANOID),
        *(OFFLINE, OFFLINE_ABLATION, OFFLINE_MECHANISM),
        FETCH,
    )
}


def find_figure(name: str) -> Figure:
    """The figure of that name."""
    if name in FIGURES:
        return FIGURES[name]
    close = get_close_matches(name, FIGURES, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise InputError(f"no figure is called {name!r}; {hint}there are: {', '.join(FIGURES)}")
