"""The paper's figures and ours, one file for each scenario. Importing this registers them."""

from rewardshift.lab import register
from rewardshift.paper.auto import AUTO, AUTO_CONTROL, AUTO_OFFLINE, AUTO_TEST
from rewardshift.paper.control import (
    CONTROL,
    CONTROL_ABLATION,
    HUMANOID,
    SPARSE_CHEETAH_FIGURE,
)
from rewardshift.paper.curiosity import (
    CURIOSITY,
    CURIOSITY_ABLATION,
    CURIOSITY_EXPLAINED,
    CURIOSITY_STORED,
)
from rewardshift.paper.goals import FETCH
from rewardshift.paper.initial_values import INITIAL_VALUES
from rewardshift.paper.lifetime import LIFETIME
from rewardshift.paper.maze import FIGURE1, MAZE_SIZES
from rewardshift.paper.mechanism import OFFLINE_MECHANISM
from rewardshift.paper.offline import OFFLINE, OFFLINE_ABLATION
from rewardshift.paper.terminal import TERMINAL_TREATMENT

for figure in (
    *(FIGURE1, MAZE_SIZES, TERMINAL_TREATMENT, LIFETIME, INITIAL_VALUES),
    *(AUTO_TEST, AUTO, AUTO_CONTROL, AUTO_OFFLINE),
    *(CURIOSITY, CURIOSITY_ABLATION, CURIOSITY_STORED, CURIOSITY_EXPLAINED),
    *(CONTROL, CONTROL_ABLATION, SPARSE_CHEETAH_FIGURE, HUMANOID),
    *(OFFLINE, OFFLINE_ABLATION, OFFLINE_MECHANISM),
    FETCH,
):
    register(figure, module=__name__)
