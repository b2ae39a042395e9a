"""FourRooms in the small sizes of the paper."""

from typing import Any

from rewardshift.errors import needs

with needs("agents"):
    from minigrid.core.grid import Grid
    from minigrid.core.mission import MissionSpace
    from minigrid.core.world_object import Goal
    from minigrid.minigrid_env import MiniGridEnv

MAX_STEPS = 99


class SmallFourRooms(MiniGridEnv):
    """MiniGrid's FourRooms in any odd size; MiniGrid's own class has the fixed size 19.

    Args:
        size: The length of the outer walls; 7 makes rooms of 2 x 2.
        max_steps: The steps after which an episode is truncated.
        kwargs: Arguments of `MiniGridEnv`.
    """

    def __init__(self, size: int = 7, max_steps: int = MAX_STEPS, **kwargs: Any) -> None:
        super().__init__(
            mission_space=MissionSpace(mission_func=lambda: "reach the goal"),
            width=size,
            height=size,
            max_steps=max_steps,
            **kwargs,
        )

    def _gen_grid(self, width: int, height: int) -> None:
        self.grid = Grid(width, height)
        self.grid.wall_rect(0, 0, width, height)
        middle = width // 2
        self.grid.vert_wall(middle, 0)
        self.grid.horz_wall(0, middle)
        for low, high in ((1, middle), (middle + 1, width - 1)):  # a gap in each half of a wall
            self.grid.set(middle, self._rand_int(low, high), None)
            self.grid.set(self._rand_int(low, high), middle, None)
        self.place_agent()  # type: ignore[no-untyped-call]
        self.place_obj(Goal())
        self.mission = "reach the goal"
