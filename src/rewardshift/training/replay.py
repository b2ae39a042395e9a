"""Replay on the host: packed records of raw transitions, one ring per row.

A transition is one record of 32-bit words. A single indexing operation gathers a batch of all
rows, and the batch enters a compiled step as a single array. Unpacking words there costs almost
nothing, unlike unpacking bytes. A ring in device memory was slower, for one row and for ten.
"""

import jax
import numpy as np
from jaxtyping import Array, Float, UInt32

from rewardshift.agents.base import Batch
from rewardshift.envs.tasks import TaskSpec


def record_type(spec: TaskSpec) -> np.dtype[np.void]:
    """The fields of a transition in a task, as 32-bit words."""
    flat = np.dtype(spec.dtype)
    action = (np.float32, (spec.action_size,)) if spec.action_size else (np.int32,)
    return np.dtype(
        [
            ("reward", np.float32),
            ("intrinsic", np.float32),
            ("steps", np.int32),
            ("terminated", np.int32),
            ("ended", np.int32),  # for any reason: nothing follows within the episode
            ("action", *action),
            ("observation", flat, (spec.features,)),
            ("next_observation", flat, (spec.features,)),
            ("padding", np.uint8, (-2 * spec.features * flat.itemsize % 4,)),
        ]
    )


def unpack(packed: UInt32[Array, "*batch words"], spec: TaskSpec) -> Batch:
    """The fields of packed transitions, within a compiled function."""
    places = record_type(spec).fields
    assert places is not None
    fields: dict[str, Array] = {}
    for name in ("action", "reward", "terminated", "steps", "intrinsic"):
        dtype, offset = places[name][:2]
        base, shape = dtype.subdtype or (dtype, ())
        words = packed[..., offset // 4 : (offset + dtype.itemsize) // 4]
        fields[name] = jax.lax.bitcast_convert_type(words if shape else words[..., 0], base)
    first = places["observation"][1] // 4
    observations = jax.lax.bitcast_convert_type(packed[..., first:], np.dtype(spec.dtype))
    observations = observations.reshape(*packed.shape[:-1], -1)
    return Batch(
        observation=observations[..., : spec.features],
        action=fields["action"],
        reward=fields["reward"],
        next_observation=observations[..., spec.features : 2 * spec.features],
        terminated=fields["terminated"] != 0,
        steps=fields["steps"],
        intrinsic=fields["intrinsic"],
    )


class Replay:
    """The most recent transitions of every row.

    Args:
        rows: The number of rows, one per seed.
        capacity: The number of transitions kept per row.
        spec: The task.
        gamma: The discount within a multi-step return.
        n_step: The number of rewards in a sampled return; fewer where an episode ends.
    """

    # Random numbers per sampled transition.
    draws = 1

    def __init__(
        self, rows: int, capacity: int, spec: TaskSpec, *, gamma: float = 1.0, n_step: int = 1
    ) -> None:
        self.spec, self.gamma, self.n_step = spec, gamma, n_step
        self.capacity, self.added = capacity, 0
        self.records = np.zeros((rows, capacity), record_type(spec))
        # The same memory as words, the records of all rows in one line.
        self._words = self.records.view(np.uint32).reshape(rows * capacity, -1)
        self._first = (np.arange(rows) * capacity)[:, None]

    @property
    def size(self) -> int:
        """The number of transitions in each row."""
        return min(self.added, self.capacity)

    def add(self, **fields: np.ndarray) -> None:
        """Adds one transition to every row, overwriting the oldest when full."""
        slot = self.added % self.capacity
        for name, values in fields.items():
            self.records[name][:, slot] = values
        self.records["steps"][:, slot] = 1
        self.added += 1

    def newest(self, count: int) -> np.ndarray:
        """The records of the last `count` transitions, or of all that are kept."""
        return self.records[:, self._slots(min(count, self.capacity))]

    def restore(self, records: np.ndarray, added: int) -> None:
        """Restores the records, oldest first, and the number of transitions ever added."""
        kept = records[:, -self.capacity :]
        self.added = added
        self.records[:, self._slots(kept.shape[1])] = kept

    def _slots(self, count: int) -> np.ndarray:
        """The slots of the last `count` transitions."""
        return np.arange(self.added - count, self.added) % self.capacity

    def sample(self, uniforms: Float[np.ndarray, "row batch"]) -> UInt32[np.ndarray, "row batch _"]:
        """Packed transitions, with replacement, one for each number in [0, 1)."""
        starts = max(1, self.size - self.n_step + 1)  # where complete returns start
        age = (uniforms * starts).astype(np.int64)
        oldest = self.added - self.size
        slots = (oldest + age) % self.capacity + self._first
        if self.n_step == 1:
            return self._words.take(slots, axis=0)
        return self._multistep(oldest + age)

    def _multistep(self, index: np.ndarray) -> np.ndarray:
        """Records whose reward, end and next observation span n steps."""
        lines = self.records.reshape(-1)
        result = lines[index % self.capacity + self._first]
        total, alive = result["reward"].astype(np.float64), result["ended"] == 0
        for step in range(1, min(self.n_step, self.size)):
            following = lines[(index + step) % self.capacity + self._first]
            total += np.where(alive, self.gamma**step * following["reward"], 0.0)
            for name in ("next_observation", "terminated", "ended"):
                field = result[name]
                field[alive] = following[name][alive]
            result["steps"][alive] += 1
            alive &= following["ended"] == 0
        result["reward"] = total
        return result.view(np.uint32).reshape(*index.shape, -1)
