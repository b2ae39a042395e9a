"""The paper's figures and ours, one file for each scenario. Importing this registers them."""

from rewardshift.lab import register
from rewardshift.paper import (
    auto,
    control,
    curiosity,
    goals,
    initial_values,
    lifetime,
    maze,
    mechanism,
    offline,
    terminal,
)

for figure in (
    *(maze.FIGURE1, maze.MAZE_SIZES, terminal.TERMINAL_TREATMENT),
    *(lifetime.LIFETIME, initial_values.INITIAL_VALUES),
    *(auto.AUTO_TEST, auto.AUTO, auto.AUTO_CONTROL, auto.AUTO_OFFLINE),
    *(curiosity.CURIOSITY, curiosity.CURIOSITY_ABLATION),
    *(curiosity.CURIOSITY_STORED, curiosity.CURIOSITY_EXPLAINED),
    *(control.CONTROL, control.CONTROL_ABLATION, control.SPARSE_CHEETAH_FIGURE, control.HUMANOID),
    *(offline.OFFLINE, offline.OFFLINE_ABLATION, mechanism.OFFLINE_MECHANISM),
    goals.FETCH,
):
    register(figure, module=__name__)
