"""The length and the schedule of a training."""

from dataclasses import dataclass, replace

from rewardshift.checks import Count, Settings
from rewardshift.training.hindsight import Hindsight


@dataclass(frozen=True)
class OnlineBudget(Settings):
    """The length and the schedule of a training in an environment, for every agent.

    Args:
        steps: Environment steps of each seed, with one update each.
        capacity: Transitions that the replay keeps for each seed.
        evaluate_every: Steps between two evaluations. A shorter training is evaluated at its end.
        evaluation_episodes: Greedy episodes of one evaluation.
        hindsight: How the replay relabels goals, for goal tasks.
        checkpoint_every: Steps between two checkpoints. It changes the results, because episodes
            are truncated there.
        diagnose: Whether to compare, at every evaluation, the values of visited and of unvisited
            actions.
    """

    steps: Count = 200_000
    capacity: Count = 100_000
    hindsight: Hindsight | None = None
    evaluate_every: Count = 2_000
    evaluation_episodes: Count = 10
    checkpoint_every: Count = 10_000
    diagnose: bool = False

    def longer(self, steps: int) -> "OnlineBudget":
        """The same budget with another length."""
        return replace(self, steps=steps)


@dataclass(frozen=True)
class OfflineBudget(Settings):
    """The length and the schedule of a training on fixed data, for every agent.

    Args:
        updates: Gradient updates of each seed.
        evaluate_every: Updates between two evaluations. A shorter training is evaluated at its end.
        evaluation_episodes: Greedy episodes of one evaluation.
        checkpoint_every: Updates between two checkpoints.
    """

    updates: Count = 500_000
    evaluate_every: Count = 5_000
    evaluation_episodes: Count = 10
    checkpoint_every: Count = 10_000

    @property
    def steps(self) -> int:
        """The length, by the name that all budgets share."""
        return self.updates

    def longer(self, steps: int) -> "OfflineBudget":
        """The same budget with another length."""
        return replace(self, updates=steps)
