"""The actions that were taken in each state of a data set or replay."""

import numpy as np


def visited_pairs(
    observations: np.ndarray, actions: np.ndarray, num_actions: int
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the distinct observations, and a table of the actions taken in each.

    Args:
        observations: One observation per row.
        actions: The discrete action taken in each row.
        num_actions: The number of actions.

    Returns:
        The first row of every distinct observation, and for each of them and every action whether
        the action was taken.
    """
    flat = np.ascontiguousarray(observations).reshape(len(observations), -1)
    rows = flat.view(f"V{flat[0].nbytes}")[:, 0]
    _, first, index = np.unique(rows, return_index=True, return_inverse=True)
    taken = np.zeros((len(first), num_actions), bool)
    taken[index, actions] = True
    return first, taken
