"""Minari: a view of a data set with shifted rewards."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np

from rewardshift.auto import Cautious, chosen_shift
from rewardshift.errors import InputError, needs
from rewardshift.shift import Shift
from rewardshift.wrappers import METADATA_KEY, recorded_shift

with needs("minari"):
    from minari import MinariDataset
    from minari.dataset.minari_storage import MinariStorage

REFERENCE_SCORES = ("ref_min_score", "ref_max_score")


def shift_minari(
    dataset: MinariDataset,
    shift: float | Mapping[str, Any] | Shift | Cautious | Literal["auto"],
    gamma: float | None = None,
) -> MinariDataset:
    """A Minari data set with shifted rewards, for agents that cannot shift by themselves.

    It is a view: an episode is shifted when it is read, and nothing is copied or written. It has
    the episodes of the data set, so you can filter, sample and iterate it like any other. With
    `terminal="absorbing"` only terminations get the credit; a truncation is not an end.

    Its returns are shifted too. Minari's reference scores are primal, so the view refuses
    normalised scores: compute them with the primal data set, from primal returns. Operations that
    use the folder of a data set (its `spec`, `split_dataset`, `combine_datasets`) are refused as
    well, because the rewards in the folder are primal.

    Args:
        dataset: The data set, with primal rewards.
        shift: A bias, a `Shift`, the dict of a `Shift` in JSON, or `"auto"`, which stands for
            `Cautious()` and reads all episodes once. ``storage.metadata["reward_shift"]`` of the
            result is the shift that it chose.
        gamma: The discount of the agent that learns, for `"auto"`.
    """
    if not isinstance(dataset, MinariDataset):
        raise InputError(f"expected a data set of Minari, got {dataset!r}")
    already = dataset.storage.metadata.get(METADATA_KEY)
    if already is not None:
        raise InputError(
            f"the data set {dataset.id!r} is shifted already, by {already}: shift it once, with"
            " the shift you mean"
        )
    recorded = recorded_shift(dataset.env_spec)
    if recorded is not None:
        raise InputError(
            f"the data set {dataset.id!r} was recorded under ShiftReward, so it is shifted already,"
            f" by {recorded}: use it as it is, or record it again without the wrapper"
        )
    chosen = chosen_shift(shift, gamma, lambda: _all_rewards(dataset), Cautious())
    return MinariDataset(ShiftedStorage(dataset.storage, chosen), dataset.episode_indices)


def _all_rewards(dataset: MinariDataset) -> tuple[np.ndarray, np.ndarray]:
    """The rewards and the terminal flags of all episodes."""
    columns = [(episode.rewards, episode.terminations) for episode in dataset]
    if not columns:
        raise InputError(f"the data set {dataset.id!r} has no episodes to choose a shift from")
    rewards, terminations = zip(*columns, strict=True)
    return np.concatenate(rewards), np.concatenate(terminations)


class ShiftedStorage(MinariStorage):  # type: ignore[misc]
    """A storage of Minari, read through a shift, which its metadata name."""

    def __init__(self, primal: MinariStorage, shift: Shift) -> None:
        # Skips the parent's __init__, which needs a folder; a view has none.
        self._primal = primal
        self._observation_space = primal.observation_space
        self._action_space = primal.action_space
        self._jpeg_encoding = primal.jpeg_encoding
        self._shift = shift

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the primal storage, with the shift and without reference scores."""
        known = {**self._primal.metadata, METADATA_KEY: asdict(self._shift)}
        return _Metadata({key: known[key] for key in known if key not in REFERENCE_SCORES})

    @property
    def data_path(self) -> Path:
        """Refused, because the rewards in the folder are primal."""
        raise InputError(
            "a shifted data set has id, env_spec and total_steps, but no folder and no spec;"
            " to split or combine data sets, do so before the shift, and shift the result"
        )

    def get_episodes(self, episode_indices: Iterable[int]) -> Iterator[dict[str, Any]]:
        """The episodes, one by one, with shifted rewards."""
        for episode in self._primal.get_episodes(episode_indices):
            shifted = self._shift.reward(episode["rewards"], episode["terminations"])
            yield {**episode, "rewards": shifted}

    def get_episode_metadata(self, episode_indices: Iterable[int]) -> Iterable[dict[str, Any]]:
        """The episodes' metadata, unchanged."""
        return self._primal.get_episode_metadata(episode_indices)

    def _refuse_writing(self, *_: Any, **__: Any) -> NoReturn:
        raise InputError("a shifted data set is only read: write to the data set before the shift")

    update_metadata = update_episode_metadata = update_episodes = _create = _refuse_writing


class _Metadata(dict[str, Any]):
    def get(self, key: str, default: Any = None) -> Any:
        if key in REFERENCE_SCORES:
            raise InputError(
                "a normalised score compares primal returns, and these rewards are shifted by"
                f" {self[METADATA_KEY]}: use the data set before the shift, and primal returns"
            )
        return super().get(key, default)
