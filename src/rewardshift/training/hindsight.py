"""Hindsight experience replay: achieved goals take the place of desired ones.

Rewards of real and of relabelled transitions come from the same function, the task's own
`compute_reward`, on the goals as the replay keeps them. They are primal, like all rewards in a
replay, and shifted in the same place, so the two can never disagree.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt32

from rewardshift.checks import NonNegative, Settings
from rewardshift.envs.goals import GoalReward
from rewardshift.envs.tasks import TaskSpec
from rewardshift.errors import InputError
from rewardshift.training.replay import Replay

RUNNING = np.iinfo(np.int64).max
# The tolerated difference of paid and computed rewards; the number and share that may exceed it.
TOLERANCE, FEWEST_WRONG, WRONG_SHARE = 1e-4, 20, 0.01


@dataclass(frozen=True)
class Hindsight(Settings):
    """Relabelling of a goal task's transitions when they are sampled.

    The new desired goal is the one achieved at a random step of the episode, from the transition
    on. A running episode counts as ending at its latest step.

    Args:
        ratio: The number of relabelled transitions per unchanged one.
        success_ends: Whether a transition that reaches its goal, before or after relabelling, is
            terminal. It reaches the goal if its reward equals that of achieving exactly the
            desired goal, so this is for rewards of two values. A task that ends at its goal needs
            it. (A task that ends there and has more than two rewards cannot be relabelled.)
    """

    ratio: NonNegative = 4.0
    success_ends: bool = False


class HindsightReplay(Replay):
    """A replay of a goal task that relabels its samples.

    Args:
        rows, capacity, spec: As in `Replay`.
        hindsight: The settings for relabelling.
        reward: The reward function of the task.
    """

    # Random numbers per transition: for its index, for whether it is relabelled, and for its goal.
    draws = 3

    def __init__(
        self,
        rows: int,
        capacity: int,
        spec: TaskSpec,
        *,
        hindsight: Hindsight,
        reward: GoalReward,
    ) -> None:
        super().__init__(rows, capacity, spec)
        self.hindsight, self.reward = hindsight, reward
        # The end of each transition's episode: the number of the transition after its last one,
        # counted over all transitions ever added.
        self._stop = np.full((rows, capacity), RUNNING)
        self._began = np.zeros(rows, np.int64)
        # The number of sampled real transitions, and of those whose paid reward differed.
        self._compared = self._disagreed = 0

    def add(self, **fields: np.ndarray) -> None:
        """See `Replay`."""
        slot = self.added % self.capacity
        super().add(**fields)
        self._stop[:, slot] = RUNNING
        if fields["terminated"].any():
            self._check_end(fields)
        for row in np.flatnonzero(fields["ended"]):
            length = self.added - int(self._began[row])
            self._stop[row, self._slots(min(length, self.capacity))] = self.added
            self._began[row] = self.added

    def _check_end(self, fields: dict[str, np.ndarray]) -> None:
        """Raises if the task terminates at its goal although the settings rule it out."""
        if self.hindsight.success_ends:
            return
        flat = fields["next_observation"][fields["terminated"]]
        if self._reached(self.spec.achieved(flat), self.spec.desired(flat)).any():
            raise InputError("the task terminates at its goal: hindsight needs success_ends")

    def restore(self, records: np.ndarray, added: int) -> None:
        """See `Replay`. Assumes that no episode goes on after the records."""
        super().restore(records, added)
        ended = self.newest(self.size)["ended"] != 0
        numbers = np.arange(added - self.size, added)
        ends = np.where(ended, numbers + 1, added)[:, ::-1]
        self._stop[:, self._slots(self.size)] = np.minimum.accumulate(ends, axis=1)[:, ::-1]
        self._began[:] = added

    def sample(self, uniforms: Float[np.ndarray, "row draws"]) -> UInt32[np.ndarray, "row batch _"]:
        """Packed transitions, with replacement, one for every `draws` numbers in [0, 1)."""
        choice, relabel, pick = np.split(uniforms, self.draws, axis=1)
        oldest = self.added - self.size
        number = oldest + (choice * self.size).astype(np.int64)
        records = self.records.reshape(-1)
        slots = number % self.capacity + self._first
        stop = np.minimum(self._stop.take(slots), self.added)
        later = number + (pick * (stop - number)).astype(np.int64)
        batch, source = records[slots], records[later % self.capacity + self._first]
        relabelled = relabel < self.hindsight.ratio / (1 + self.hindsight.ratio)
        goal = self.spec.achieved(source["next_observation"])[relabelled]
        for name in ("observation", "next_observation"):
            self.spec.desired(batch[name])[relabelled] = goal
        achieved = self.spec.achieved(batch["next_observation"])
        desired = self.spec.desired(batch["next_observation"])
        rewards = self._rewards(achieved, desired)
        self._compare(batch["reward"][~relabelled], rewards[~relabelled])
        batch["reward"] = rewards
        if self.hindsight.success_ends:
            batch["terminated"] |= self._reached(achieved, desired)
        return batch.view(np.uint32).reshape(*number.shape, -1)

    def _compare(self, paid: np.ndarray, computed: np.ndarray) -> None:
        """Refuses a task whose `compute_reward` disagrees with the rewards of its steps.

        A few may differ: goals are rounded to float32, which may carry them across a threshold.
        """
        wrong = np.abs(paid - computed) > TOLERANCE * (1 + np.abs(paid))
        self._compared += wrong.size
        if not wrong.any():
            return
        self._disagreed += int(np.count_nonzero(wrong))
        if self._disagreed > max(FEWEST_WRONG, WRONG_SHARE * self._compared):
            raise InputError(
                f"compute_reward says {computed[wrong][0]:g} where a step paid"
                f" {paid[wrong][0]:g}, and it disagreed in {self._disagreed} of {self._compared}"
                " samples: does a wrapper change the rewards, or the goals, and not both?"
            )

    def _reached(self, achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
        return self._rewards(achieved, desired) == self._rewards(desired, desired)

    def _rewards(self, achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
        size = self.spec.goal_size
        flat = self.reward(achieved.reshape(-1, size), desired.reshape(-1, size))
        return flat.reshape(achieved.shape[:-1])
