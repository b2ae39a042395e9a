"""The measurements of values that the doctor and the training loops share.

Estimates are compared with the returns that followed, and actions that were tried in a state with
those that were not.
"""

import numpy as np


def discounted_returns(
    reward: np.ndarray, gamma: float, ended: np.ndarray, beyond: np.ndarray
) -> np.ndarray:
    """The discounted return from each of consecutive steps on.

    Args:
        reward: The reward of each step.
        gamma: The discount.
        ended: Whether the episode ended after each step, for any reason.
        beyond: The value of the state after each step that ended an episode: 0 if it is terminal,
            an estimate if a time limit came first. Other steps do not use it.
    """
    returns = np.empty(len(reward))
    later = 0.0
    for step in range(len(reward) - 1, -1, -1):
        later = reward[step] + gamma * (beyond[step] if ended[step] else later)
        returns[step] = later
    return returns


def tried_actions(
    observations: np.ndarray,
    actions: np.ndarray,
    num_actions: int,
    most: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of some distinct observations, and a table of the actions taken in each.

    Args:
        observations: One observation per row.
        actions: The discrete action taken in each row.
        num_actions: The number of actions.
        most: The most distinct observations.
        rng: The generator that chooses them.

    Returns:
        The first row of every chosen observation, and for each of them and every action whether
        the action was taken.
    """
    flat = np.ascontiguousarray(observations).reshape(len(observations), -1)
    rows = flat.view(f"V{flat[0].nbytes}")[:, 0]
    _, first, index = np.unique(rows, return_index=True, return_inverse=True)
    tried = np.zeros((len(first), num_actions), bool)
    tried[index, actions] = True
    chosen = rng.permutation(len(first))[:most]
    return first[chosen], tried[chosen]


def means_by_tried(values: np.ndarray, tried: np.ndarray) -> tuple[float, float]:
    """The mean value of tried actions and that of untried ones; NaN if there are none."""
    parts = (values[tried], values[~tried])
    return tuple(float(part.mean()) if part.size else float("nan") for part in parts)  # type: ignore[return-value]


def spread_rows(count: int, most: int) -> np.ndarray:
    """At most so many row numbers, spread evenly over all rows."""
    return np.linspace(0, count - 1, min(most, count), dtype=np.int64)
