"""A shift that stops at a terminal state can change the best policy, in both directions.

Three rooms in a row. In each one may leave, which pays and ends the episode, or go on.
Leaving from the middle room pays best. With the paper's treatment of terminal states a
negative shift makes the agent leave at once, to be paid the shift less often, and a
positive one makes it stay for ever, to be paid it more often. With the absorbing
treatment it leaves from the middle room, whatever the shift.
"""

import numpy as np

from rewardshift import Shift
from rewardshift.agents.tabular import optimal_q

LEAVE, GO_ON = 0, 1
NEXT_ROOM = np.array([[0, 1], [1, 2], [2, 2]])
REWARD = np.array([[0.5, 0.0], [1.0, 0.0], [0.6, 0.0]])
ENDS = np.array([[True, False]] * 3)


def best_policy(shift: Shift) -> str:
    """What the best agent does, starting in the first room."""
    q = optimal_q(NEXT_ROOM, REWARD, ENDS, shift)
    for room, name in enumerate(("first", "middle", "last")):
        if q[room].argmax() == LEAVE:
            return f"leaves from the {name} room"
    return "stays for ever"


if __name__ == "__main__":
    for terminal in ("zero", "absorbing"):
        for bias in (-1.0, 0.0, 1.0):
            shift = Shift(bias, gamma=0.9, terminal=terminal)
            print(f"{terminal:10} b = {bias:+.0f}  {best_policy(shift)}")
