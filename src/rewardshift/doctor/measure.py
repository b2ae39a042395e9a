"""The measurements of values that the doctor, the training loops and the callbacks share.

Estimates are compared with the returns that followed, and actions that were tried in a state with
those that were not.
"""

from typing import Any, NamedTuple

import numpy as np

from rewardshift.shift import Shift


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


def episode_returns(
    shift: Shift, primal: Any, lengths: Any, terminated: Any, last_value: Any
) -> np.ndarray:
    """The shifted returns of whole episodes.

    Args:
        shift: The shift, with its discount.
        primal: The discounted sum of the primal rewards of each episode.
        lengths: The number of its steps.
        terminated: Whether it ended in a terminal state.
        last_value: The estimate of its last state, which follows a time limit.
    """
    followed = shift.multistep_return(primal, lengths, terminated)
    return np.asarray(followed + np.where(terminated, 0.0, shift.gamma**lengths * last_value))


class Gap(NamedTuple):
    """The mean estimate, the mean return that followed, and the difference of the two."""

    estimate: Any
    followed: Any
    overestimation: Any


def mean_gap(estimates: np.ndarray, returns: np.ndarray, axis: int | None = None) -> Gap:
    """Estimates beside the returns that followed, in the mean over an axis or over all."""
    estimate, followed = estimates.mean(axis), returns.mean(axis)
    return Gap(estimate, followed, estimate - followed)


def tried_actions(
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
    tried = np.zeros((len(first), num_actions), bool)
    tried[index, actions] = True
    return first, tried


def means_by_tried(values: np.ndarray, tried: np.ndarray) -> tuple[float, float]:
    """The mean value of tried actions and that of untried ones; NaN if there are none."""
    parts = (values[tried], values[~tried])
    return tuple(float(part.mean()) if part.size else float("nan") for part in parts)  # type: ignore[return-value]


def spread_rows(count: int, most: int) -> np.ndarray:
    """At most so many row numbers, spread evenly over all rows."""
    return np.linspace(0, count - 1, min(most, count), dtype=np.int64)
