"""A `Dataset` from the columns of a file, under the names of D4RL."""

from collections.abc import Mapping

import numpy as np

from rewardshift.data.dataset import FIELDS, Dataset
from rewardshift.errors import InputError

# The fields of a `Dataset` by their names in D4RL.
D4RL_FIELDS = {
    "observations": "observation",
    "actions": "action",
    "rewards": "reward",
    "terminals": "terminated",
    "timeouts": "truncated",
    "next_observations": "next_observation",
}
OPTIONAL = ("timeouts", "next_observations")


def from_columns(
    raw: Mapping[str, np.ndarray], name: str, where: str, env: str | None = None, note: str = ""
) -> Dataset:
    """A data set from columns in which a row is a transition; refuses bad values.

    If a row is both a terminal and a timeout, it is terminal. The last row ends its episode.

    Without `next_observations`, the next observation is that of the next row in the same episode.
    It is unknown for the last transition before a time limit or before the end of the columns:
    that transition is left out, and the one before it ends the episode. The next observation of a
    terminal transition is never used, so it is set to the transition's own observation.

    Without `timeouts`, an episode ends where a row's observation is not the next observation of the
    row before.

    Args:
        raw: The columns by the keys of `D4RL_FIELDS`; one of `OPTIONAL` may be missing.
        name, env, note: As in `Dataset`.
        where: The source, for messages.
    """
    columns = {key: _as_field(key, values, where) for key, values in raw.items()}
    count = len(columns["rewards"])
    for key, values in columns.items():
        if len(values) != count:
            raise InputError(f"{where} has {count} 'rewards' and {len(values)} {key!r}")
    if count == 0:
        raise InputError(f"{where} has no transitions")
    observation, terminated = columns["observations"], columns["terminals"]
    last = np.arange(len(terminated)) == len(terminated) - 1
    if "next_observations" in columns:
        following = columns["next_observations"]
        if following.shape != observation.shape:
            raise InputError(
                f"{where}: a row of 'observations' has {observation.shape[1]} numbers, one of"
                f" 'next_observations' {following.shape[1]}; both must have the same"
            )
        onward = np.roll(observation, -1, axis=0)
        cut = columns.get("timeouts", (following != onward).any(axis=1)) | last
        kept = np.ones_like(last)
    else:
        following = np.where(terminated[:, None], observation, np.roll(observation, -1, axis=0))
        kept = terminated | ~(columns["timeouts"] | last)
        cut = ~np.roll(kept, -1)
    if not kept.any():
        raise InputError(
            f"{where} has no transition whose next observation is known; add 'next_observations'"
        )
    return Dataset(
        name=name,
        observation=observation[kept],
        action=columns["actions"][kept],
        reward=columns["rewards"][kept],
        next_observation=following[kept],
        terminated=terminated[kept],
        truncated=(cut & ~terminated)[kept],
        env=env,
        note=note,
    )


def _as_field(key: str, values: np.ndarray, where: str) -> np.ndarray:
    """A column as a field of a `Dataset`.

    Observations that are bytes stay bytes, and discrete actions become int32; all other numbers
    become float32, and flags booleans. Bad values are refused here, while the row numbers are still
    those of the file.
    """
    field = D4RL_FIELDS[key]
    flag, image = FIELDS[field] == "b", field.endswith("observation")
    if not image and field != "action" and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]  # some D4RL files hold one number for each row like this
    if values.dtype.kind not in "biuf":
        raise InputError(f"{where}: {key!r} holds {values.dtype} values, not numbers")
    lists = image or (field == "action" and values.dtype.kind == "f")
    if values.ndim != 1 + lists:
        wanted = "one list of numbers" if lists else "one number"
        raise InputError(
            f"{where}: {key!r} has the shape {values.shape}, but needs {wanted} for each row"
        )
    if flag:
        column, odd, why = values.astype(bool), (values != 0) & (values != 1), ", not 0 or 1"
    elif field == "action" and not lists:
        column, odd = values.astype(np.int32), (values < 0) | (values > np.iinfo(np.int32).max)
        why = "; discrete actions are numbered from 0 on"
    elif values.dtype == np.uint8 and image:
        return values
    else:
        with np.errstate(over="ignore"):  # too large values become infinite, and are refused
            column = values.astype(np.float32)
        odd, why = ~np.isfinite(column), ", which is not a finite 32-bit number"
    if odd.any():
        place = tuple(np.argwhere(odd)[0])
        raise InputError(f"{where}: {key!r} has {values[place]} in row {place[0]}{why}")
    return column
