"""What `rewardshift train sac` takes."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import tyro

from rewardshift.agents.sac import SAC
from rewardshift.agents.selection import Optimistic, ProgressArgmax, ProgressSoftmax
from rewardshift.cli.options import OnlineOptions, make_selection
from rewardshift.training.online import OnlineBudget


@dataclass(frozen=True, kw_only=True)
class SACOptions(OnlineOptions):
    """SAC, for continuous actions."""

    gamma: float = SAC.gamma
    """The discount."""
    hidden: tuple[int, ...] = SAC.hidden
    """Widths of the hidden layers of the policy and the critics."""
    learning_rate: float = SAC.learning_rate
    """Adam's learning rate."""
    batch_size: int = SAC.batch_size
    """Transitions per update."""
    tau: float = SAC.tau
    """How far the target critics move at every update."""
    temperature: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = SAC.temperature
    """The weight of the policy's entropy; by default it is tuned."""
    target_entropy: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = SAC.target_entropy
    """The entropy that a tuned temperature aims at; by default minus the size of an action."""
    warm_up: int = SAC.warm_up
    """Steps with random actions and without updates, at the start."""
    n_step: int = SAC.n_step
    """Rewards that a target sums up."""
    selection: Literal["uniform", "progress-softmax", "progress-argmax", "optimistic", "mean"] = (
        "uniform"
    )
    """Which member the policy follows."""
    selection_temperature: float = ProgressSoftmax.temperature
    """How evenly "progress-softmax" draws; the lower, the greedier."""
    selection_epsilon: float = ProgressArgmax.epsilon
    """How often "progress-argmax" takes any member."""
    selection_beta: float = Optimistic.beta
    """How far "optimistic" trusts its optimistic member."""
    lead_episodes: int = SAC.lead_episodes
    """The least number of episodes that a member leads; 0 allows a switch within an episode."""
    lead_steps: int = SAC.lead_steps
    """The least number of steps that a member leads."""
    budget: tyro.conf.OmitArgPrefixes[OnlineBudget] = field(
        default_factory=lambda: OnlineBudget(
            steps=1_000_000, capacity=1_000_000, evaluate_every=5_000
        )
    )
    """How long and how."""

    def agent(self) -> SAC:
        """The agent that the options describe."""
        return SAC(**{**self.settings(SAC), "selection": make_selection(self, "selection_")})
