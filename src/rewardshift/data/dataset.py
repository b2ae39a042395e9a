"""A data set as a value, checked once, when it is made."""

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Num

from rewardshift.checks import Count, Natural, Settings, checked
from rewardshift.errors import InputError, shown

Pick = Literal["episodes", "transitions"]
# The fields, each with its allowed NumPy dtype kinds.
KINDS = {"f": "floating point numbers", "b": "booleans", "fiu": "numbers"}
FIELDS = {
    "observation": "fiu",
    "action": "fiu",
    "reward": "f",
    "next_observation": "fiu",
    "terminated": "b",
    "truncated": "b",
}


@dataclass(frozen=True)
class Subset(Settings):
    """A random part of a data set.

    Args:
        transitions: The number of transitions.
        pick: `"episodes"` draws whole episodes without replacement until there are enough
            transitions, and cuts the last one. `"transitions"` draws single transitions without
            replacement, which does not keep episodes together.
        seed: The seed of the draw.
    """

    transitions: Count
    pick: Pick = "episodes"
    seed: Natural = 0


@dataclass(frozen=True, eq=False)
class Dataset:
    """Transitions in the order in which they were collected, with primal rewards.

    Invalid values are refused, with the name of the data set, the field and the row.

    Args:
        name: The source, as `load_dataset` takes it.
        observation: Flat observations, float32 or uint8.
        action: Discrete actions as whole numbers, or continuous ones on the environment's own
            scale.
        reward: The environment's reward.
        next_observation: The observation after the action, also at the end of an episode.
        terminated: Whether the transition ended in a terminal state.
        truncated: Whether the episode was cut off after the transition.
        env: The registered environment, if it is known.
        parts: The subsets applied to the named data set, in order.
        note: The data set's description of itself, on one line.
    """

    name: str
    observation: Num[np.ndarray, "n features"]
    action: Num[np.ndarray, "n *size"]
    reward: Float[np.ndarray, " n"]
    next_observation: Num[np.ndarray, "n features"]
    terminated: Bool[np.ndarray, " n"]
    truncated: Bool[np.ndarray, " n"]
    env: str | None = None
    note: str = ""
    parts: tuple[Subset, ...] = ()

    def __post_init__(self) -> None:
        for field, kind in (("name", str), ("env", str | None), ("note", str)):
            checked(field, kind, getattr(self, field))
        where = f"the data set {self.name!r}"
        columns = {field: getattr(self, field) for field in FIELDS}
        for field, values in columns.items():
            kinds, dtype = FIELDS[field], getattr(values, "dtype", np.dtype(object))
            if dtype.kind not in kinds or not values.ndim:
                raise InputError(
                    f"{where}: {field!r} must be an array of {KINDS[kinds]} with a row for each"
                    f" transition, got {shown(values)}"
                )
        count = len(self.reward)
        if count == 0:
            raise InputError(f"{where} has no transitions")
        for field, values in columns.items():
            if len(values) != count:
                raise InputError(f"{where} has {count} rewards and {len(values)} rows of {field!r}")
            odd = np.flatnonzero(~np.isfinite(values).all(axis=tuple(range(1, values.ndim))))
            if odd.size:
                raise InputError(
                    f"{where}: {field!r} is not finite in row {odd[0]}: {values[odd[0]]}"
                )
        shape = self.observation.shape
        if len(shape) != 2 or shape[1] == 0 or shape != self.next_observation.shape:
            raise InputError(
                f"{where} has observations of the shape {shape[1:]} and next observations of"
                f" {self.next_observation.shape[1:]}; both must be flat, alike and not empty"
            )

    def __len__(self) -> int:
        return len(self.reward)

    @cached_property
    def digest(self) -> str:
        """A short hash of the contents."""
        content = sha256()
        for field in FIELDS:
            values = np.ascontiguousarray(getattr(self, field))
            content.update(f"{field} {values.dtype} {values.shape}".encode())
            content.update(values.data)
        return content.hexdigest()[:16]

    @cached_property
    def episodes(self) -> list[slice]:
        """The rows of each episode; the last episode may be unfinished."""
        ends = np.flatnonzero(self.terminated | self.truncated) + 1
        stops = [*ends.tolist(), *([len(self)] if not ends.size or ends[-1] < len(self) else [])]
        return [slice(a, b) for a, b in zip([0, *stops[:-1]], stops, strict=True)]

    @cached_property
    def returns(self) -> Float[np.ndarray, " episode"]:
        """The primal return of each episode."""
        return np.array([self.reward[rows].sum(dtype=np.float64) for rows in self.episodes])

    def summary(self) -> dict[str, str]:
        """The numbers of the data set as text, by name.

        An unfinished episode is neither terminated nor truncated: the data end within it.
        """
        ends = [rows.stop - 1 for rows in self.episodes]
        terminated = self.terminated[ends].sum()
        truncated = (self.truncated & ~self.terminated)[ends].sum()
        unfinished = len(ends) - terminated - truncated
        return {
            "transitions": str(len(self)),
            "episodes": f"{len(ends)}: {terminated} terminated, {truncated} truncated"
            + (f", {unfinished} unfinished" if unfinished else ""),
            "return": _spread(self.returns),
            "episode length": _spread(np.diff([-1, *ends])),
            "reward": _spread(self.reward.astype(np.float64)),
        }

    def subset(self, part: Subset) -> "Dataset":
        """A part of the data set."""
        if not isinstance(part, Subset):
            raise InputError(f"a part of a data set is a Subset, got {shown(part)}")
        if part.transitions > len(self):
            raise InputError(
                f"the data set {self.name!r} has {len(self)} transitions, {part.transitions} were"
                " asked for"
            )
        generator = np.random.default_rng(part.seed)
        if part.pick == "transitions":
            rows = np.sort(generator.choice(len(self), part.transitions, replace=False))
        else:
            order = generator.permutation(len(self.episodes))
            episodes = [self.episodes[i] for i in order]
            drawn = [np.arange(episode.start, episode.stop) for episode in episodes]
            rows = np.concatenate(drawn)[: part.transitions]
        columns = {field: getattr(self, field)[rows] for field in FIELDS}
        cut = np.append(np.diff(rows) != 1, True)  # another episode follows there
        columns["truncated"] = columns["truncated"] | (cut & ~columns["terminated"])
        return replace(self, **columns, parts=(*self.parts, part))


def _spread(values: np.ndarray) -> str:
    return f"mean {values.mean():.6g}, from {values.min():.6g} to {values.max():.6g}"
