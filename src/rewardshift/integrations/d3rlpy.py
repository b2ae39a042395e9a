"""d3rlpy: the shift as a reward scaler or in a data set, and values on the primal scale."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn

import numpy as np

from rewardshift.auto import Cautious, chosen_shift
from rewardshift.errors import InputError, needs
from rewardshift.shift import Shift, as_single_shift

with needs("d3rlpy"):
    from d3rlpy.algos import QLearningAlgoBase
    from d3rlpy.dataset import (
        BasicTransitionPicker,
        Episode,
        EpisodeBase,
        FrameStackTransitionPicker,
        InfiniteBuffer,
        ReplayBuffer,
        SparseRewardTransitionPicker,
    )
    from d3rlpy.preprocessing import ConstantShiftRewardScaler

# The pickers with which a transition's reward is one reward of the environment.
ONE_REWARD = (BasicTransitionPicker, FrameStackTransitionPicker)

ShiftOnData = float | Mapping[str, Any] | Shift | Cautious | Literal["auto"]


def to_d3rlpy(
    shift: ShiftOnData, gamma: float | None = None, dataset: "ReplayBuffer | None" = None
) -> ConstantShiftRewardScaler:
    """The reward scaler of d3rlpy that computes `k r + b`: scale first, then bias.

    It is correct if a transition holds one reward. Otherwise `fit` refuses it before the first
    update: a multi-step return shifts by more than `b`, and so do the returns in the input of a
    Decision Transformer. For these, and for `terminal="absorbing"` or `"goal"`, which need the
    terminal flags, use `shift_dataset`. `fit_online` does not show its buffer to a scaler: with
    another transition picker, wrap the environment in `ShiftReward` instead.

    An agent with it is saved as with any `ConstantShiftRewardScaler` and loads without
    rewardshift; a loaded scaler refuses nothing.

    Args:
        shift: A bias, a `Shift`, the dict of a `Shift` in JSON, or `"auto"`, which stands for
            `Cautious(terminal="zero")`.
        gamma: The discount of the algorithm, for `"auto"`.
        dataset: The data set from which `"auto"` chooses.
    """
    chosen = chosen_shift(shift, gamma, lambda: _all_rewards(dataset), Cautious("zero"))
    if chosen.credits_ends:
        raise InputError(
            f"a reward scaler of d3rlpy does not know what is terminal, so it cannot be {chosen}:"
            " use shift_dataset"
        )
    return _CheckedScaler(shift=chosen.bias, multiplier=chosen.scale, multiply_first=True)


def shift_dataset(
    dataset: ReplayBuffer, shift: ShiftOnData, gamma: float | None = None
) -> ReplayBuffer:
    """A data set of d3rlpy with shifted rewards, for every algorithm and every picker but one.

    Multi-step returns and returns-to-go are then sums of shifted rewards, as they should be. The
    new data set shares observations and actions with the given one, which does not change. It is
    for training only and cannot be dumped.

    Args:
        dataset: The data set, with primal rewards. A `SparseRewardTransitionPicker` is refused,
            because its numbers are primal.
        shift: A bias, a `Shift`, the dict of a `Shift` in JSON, or `"auto"`, which stands for
            `Cautious()`. For `terminal="absorbing"`, its gamma must be that of the algorithm.
            `trained_shift` tells what was chosen.
        gamma: The discount of the algorithm, for `"auto"`.
    """
    _refuse_other_data(dataset)
    if isinstance(dataset.transition_picker, SparseRewardTransitionPicker):
        raise InputError(
            "a SparseRewardTransitionPicker writes primal rewards: shift the data set with another"
            " picker, and give the result one whose rewards are shifted"
        )
    chosen = chosen_shift(shift, gamma, lambda: _all_rewards(dataset), Cautious())
    shifted = {id(episode): _shift_episode(episode, chosen) for episode in dataset.episodes}
    buffer = InfiniteBuffer()
    for number in range(dataset.transition_count):
        episode, step = dataset.buffer[number]
        buffer.append(shifted[id(episode)], step)
    info = dataset.dataset_info
    return ReplayBuffer(
        buffer,
        transition_picker=dataset.transition_picker,
        trajectory_slicer=dataset.trajectory_slicer,
        observation_signature=info.observation_signature,
        action_signature=info.action_signature,
        reward_signature=buffer.episodes[0].reward_signature,
        action_space=info.action_space,
        action_size=info.action_size,
    )


def from_d3rlpy(
    algo: QLearningAlgoBase[Any, Any], shift: float | Mapping[str, Any] | Shift
) -> Callable[[Any, Any], np.ndarray]:
    """The values of an agent that was trained with a shift, on the primal scale.

    They are exact only for `terminal="absorbing"` and for tasks that never terminate; see
    `Shift`.

    Args:
        algo: A trained agent with a Q function, also one that d3rlpy has loaded.
        shift: The shift of the training, by `to_d3rlpy` or `shift_dataset`. Without a gamma it
            takes the agent's.

    Returns:
        A function of observations and actions, like the agent's own `predict_value`.
    """
    shift = as_single_shift(shift)
    if not isinstance(algo, QLearningAlgoBase):
        raise InputError(f"expected an algorithm of d3rlpy with a Q function, got {algo!r}")
    if shift.gamma not in (None, algo.gamma):
        raise InputError(f"the agent has gamma={algo.gamma}, but the shift is {shift}")
    scaler, points = algo.reward_scaler, np.array([0.0, 1.0])  # two points of a linear function
    if scaler is not None:
        expected = to_d3rlpy(shift).transform_numpy(points)
        if not np.allclose(scaler.transform_numpy(points), expected):
            raise InputError(f"the agent was trained with {scaler}, which is not {shift}")
    known = replace(shift, gamma=algo.gamma)
    return lambda observations, actions: known.to_primal(algo.predict_value(observations, actions))


def trained_shift(algo: QLearningAlgoBase[Any, Any], dataset: ReplayBuffer) -> Shift:
    """The shift of the rewards that an agent learns from: the data set's, or its scaler's.

    Args:
        algo: The agent.
        dataset: The data set of its training, as it was given to `fit`.
    """
    first = dataset.episodes[0]
    if isinstance(first, _ShiftedEpisode):
        return first.shift
    scaler = algo.reward_scaler
    if scaler is None:
        return Shift(0.0)
    bias, one, two = (float(value) for value in scaler.transform_numpy(np.array([0.0, 1.0, 2.0])))
    if not np.isclose(two - one, one - bias) or one <= bias:
        raise InputError(f"{scaler} is not a shift and a positive scale, so values have no scale")
    return Shift(bias, one - bias)


def primal_rewards(episode: EpisodeBase) -> np.ndarray:
    """The primal rewards of an episode, also of one that `shift_dataset` has shifted."""
    rewards = np.asarray(episode.rewards, np.float64)
    if not isinstance(episode, _ShiftedEpisode):
        return rewards
    return np.asarray(episode.shift.to_primal_reward(rewards, _terminal_flags(episode)))


class _CheckedScaler(ConstantShiftRewardScaler):  # type: ignore[misc]
    """A scaler that is never `built`, so that every `fit` of d3rlpy shows it the data to check."""

    @property
    def built(self) -> bool:
        return False

    def fit_with_transition_picker(
        self, episodes: Sequence[EpisodeBase], transition_picker: Any
    ) -> None:
        _refuse_shifted(episodes)
        if not isinstance(transition_picker, ONE_REWARD):
            raise InputError(
                f"a reward scaler adds the bias once, but a {type(transition_picker).__name__} may"
                " put several rewards into one: use shift_dataset instead"
            )

    def fit_with_trajectory_slicer(
        self, episodes: Sequence[EpisodeBase], trajectory_slicer: Any
    ) -> NoReturn:
        raise InputError(
            "a reward scaler adds the bias once to a return of many rewards, as a Decision"
            " Transformer has them: use shift_dataset instead"
        )


def _refuse_other_data(dataset: Any) -> None:
    """Raises unless the data set has episodes of its own, with primal rewards."""
    if not isinstance(dataset, ReplayBuffer):
        raise InputError(f"expected a ReplayBuffer of d3rlpy with its own episodes, got {dataset}")
    if not dataset.episodes:
        raise InputError("the data set has no episodes")
    _refuse_shifted(dataset.episodes)


def _all_rewards(dataset: "ReplayBuffer | None") -> tuple[np.ndarray, np.ndarray]:
    """The rewards and the terminal flags of all episodes."""
    if dataset is None:
        raise InputError("'auto' chooses from the data, as in to_d3rlpy('auto', 0.99, dataset)")
    _refuse_other_data(dataset)
    rewards = [np.ravel(episode.rewards) for episode in dataset.episodes]
    flags = [np.ravel(_terminal_flags(episode)) for episode in dataset.episodes]
    return np.concatenate(rewards), np.concatenate(flags)


@dataclass(frozen=True)
class _ShiftedEpisode(Episode):  # type: ignore[misc]
    shift: Shift

    def serialize(self) -> NoReturn:
        raise InputError("shifted rewards are not kept: dump the data set before the shift")


def _terminal_flags(episode: EpisodeBase) -> np.ndarray:
    flags = np.zeros(np.shape(episode.rewards), dtype=bool)
    flags[-1] = episode.terminated
    return flags


def _shift_episode(episode: EpisodeBase, shift: Shift) -> _ShiftedEpisode:
    return _ShiftedEpisode(
        observations=episode.observations,
        actions=episode.actions,
        rewards=shift.reward(episode.rewards, _terminal_flags(episode)),
        terminated=episode.terminated,
        shift=shift,
    )


def _refuse_shifted(episodes: Sequence[EpisodeBase]) -> None:
    for episode in episodes:
        if isinstance(episode, _ShiftedEpisode):
            raise InputError(
                f"the data set is shifted already, by {episode.shift}: shift it once, with the"
                " shift you mean"
            )
