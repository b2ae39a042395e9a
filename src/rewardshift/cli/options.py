"""What `rewardshift train` takes: the settings of every agent, each with its help."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from rewardshift.agents.bcq import BCQ
from rewardshift.agents.cql import CQL
from rewardshift.agents.dqn import DQN, Schedule
from rewardshift.agents.intrinsic import RND, CountBonus
from rewardshift.agents.offline import Offline
from rewardshift.agents.selection import (
    SELECTIONS,
    Optimistic,
    ProgressArgmax,
    ProgressSoftmax,
    Selection,
)
from rewardshift.agents.td3 import TD3
from rewardshift.data.dataset import Pick, Subset
from rewardshift.envs.engines import EngineName
from rewardshift.errors import InputError
from rewardshift.hindsight import Hindsight
from rewardshift.shift import Shift, Terminal
from rewardshift.training.offline import OfflineBudget
from rewardshift.training.online import OnlineBudget


def _names(kind: Any) -> set[str]:
    """The names of the settings of a dataclass."""
    return {field.name for field in fields(kind)}


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What every training takes."""

    shift: Annotated[tuple[float, ...], tyro.conf.arg(metavar="FLOAT [FLOAT ...]")] = (0.0,)
    """The constant that is added to every reward; several are members: Random Reward Shift."""
    scale: float = 1.0
    """The factor on every reward."""
    seeds: int = 1
    """How many, which are run side by side."""
    first_seed: int = 0
    """The first of them; the others follow it."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """The run's folder; by default one in `runs/`, named after the configuration."""
    terminal: Terminal = "zero"
    """What the shift does at a terminal state: "zero" as in the paper, or "absorbing"."""

    def settings(self, agent: type[Any]) -> dict[str, Any]:
        """The agent's settings among the options, by the names that it has for them."""
        names = _names(agent) & _names(type(self)) - {"shift"}
        return {"shift": self._shift(), **{name: getattr(self, name) for name in names}}

    def _shift(self) -> tuple[Shift, ...]:
        if not self.shift:
            raise InputError("--shift needs a number, or one for each member")
        return tuple(Shift(bias, self.scale, None, self.terminal) for bias in self.shift)


@dataclass(frozen=True, kw_only=True)
class OnlineOptions(RunOptions):
    """What every training in an environment takes."""

    env: str
    """A registered Gymnasium environment; for module:Name-v0 the module is imported first."""
    engine: EngineName = "auto"
    """EnvPool where it has the very same task and is faster ("auto"), or one of the two."""
    hindsight: Literal["none", "future", "final", "episode"] = "none"
    """In a goal task: which achieved goals take the place of the desired one."""
    hindsight_ratio: float = Hindsight.ratio
    """How many transitions are relabelled for each that is left as it was."""
    success_ends: bool = Hindsight.success_ends
    """Whether reaching a goal is terminal, for hindsight."""
    reward_range: Annotated[tuple[float, float] | None, tyro.conf.arg(metavar="FLOAT FLOAT")] = None
    """For hindsight: the lowest and the highest reward, if values are to be kept in their range."""

    def settings(self, agent: type[Any]) -> dict[str, Any]:
        """See `RunOptions`; with how goals are relabelled."""
        return {**super().settings(agent), "hindsight": self._hindsight()}

    def _hindsight(self) -> Hindsight | None:
        given = (self.hindsight_ratio, self.success_ends, self.reward_range)
        if self.hindsight != "none":
            return Hindsight(self.hindsight, *given)
        if given != (Hindsight.ratio, Hindsight.success_ends, Hindsight.reward_range):
            raise InputError(
                "--hindsight-ratio, --success-ends and --reward-range are for --hindsight"
            )
        return None


@dataclass(frozen=True, kw_only=True)
class OfflineOptions(RunOptions):
    """What every training on a data set takes."""

    data: str
    """A data set: embedded/NAME, a Minari id, or an HDF5 or npz file."""
    env: Annotated[str | None, tyro.conf.arg(metavar="STR")] = None
    """Where to evaluate, if the data set does not say."""
    transitions: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """How many of the data set's transitions to take, if not all."""
    pick: Pick = "episodes"
    """Whole episodes (the last is cut), or transitions one by one."""
    data_seed: int = 0
    """The seed of that choice."""
    gamma: float = Offline.gamma
    """The discount."""
    tau: float = Offline.tau
    """How far the target networks move at every update."""
    budget: tyro.conf.OmitArgPrefixes[OfflineBudget] = field(default_factory=OfflineBudget)
    """How long and how."""

    def subset(self) -> Subset | None:
        """The part of the data set that the options ask for."""
        if self.transitions is None:
            if (self.pick, self.data_seed) != ("episodes", 0):
                raise InputError("--pick and --data-seed choose --transitions; say how many")
            return None
        return Subset(self.transitions, self.pick, self.data_seed)

    def settings(self, agent: type[Any]) -> dict[str, Any]:
        """See `RunOptions`; with the one shift that an offline agent has."""
        settings = super().settings(agent)
        if len(settings["shift"]) > 1:
            raise InputError(
                f"--shift must be one number for {agent.__name__}, got {len(self.shift)}"
            )
        return {**settings, "shift": settings["shift"][0]}


@dataclass(frozen=True, kw_only=True)
class DQNOptions(OnlineOptions):
    """DQN, for discrete actions."""

    intrinsic: Literal["none", "rnd", "count"] = "none"
    """An intrinsic reward beside the environment's."""
    intrinsic_shift: float = 0.0
    """The shift of the intrinsic reward; -1 makes it negative."""
    gamma: float = DQN.gamma
    """The discount."""
    hidden: tuple[int, ...] = DQN.hidden
    """Widths of the hidden layers."""
    learning_rate: float = DQN.learning_rate
    """Adam's learning rate."""
    batch_size: int = DQN.batch_size
    """Transitions per update."""
    tau: float = DQN.tau
    """How far the target network moves at every update."""
    double: bool = DQN.double
    """Double DQN."""
    n_step: int = DQN.n_step
    """How many rewards a target sums up."""
    epsilon: Schedule = DQN.epsilon
    """Linear as in the paper, or exponential as in the authors' code."""
    budget: tyro.conf.OmitArgPrefixes[OnlineBudget] = field(default_factory=OnlineBudget)
    """How long and how."""

    def agent(self) -> DQN:
        """The agent that the options describe."""
        if self.intrinsic == "none" and self.intrinsic_shift:
            raise InputError("--intrinsic-shift shifts an --intrinsic reward; say which one")
        sources = {
            "none": None,
            "rnd": RND(self.intrinsic_shift),
            "count": CountBonus(self.intrinsic_shift),
        }
        return DQN(**{**self.settings(DQN), "intrinsic": sources[self.intrinsic]})


@dataclass(frozen=True, kw_only=True)
class TD3Options(OnlineOptions):
    """TD3, for continuous actions."""

    gamma: float = TD3.gamma
    """The discount."""
    hidden: tuple[int, ...] = TD3.hidden
    """Widths of the hidden layers of actors and critics."""
    learning_rate: float = TD3.learning_rate
    """Adam's learning rate."""
    batch_size: int = TD3.batch_size
    """Transitions per update."""
    tau: float = TD3.tau
    """How far the target networks move at every update of the policy."""
    noise: float = TD3.noise
    """Standard deviation of the exploration noise; actions are in [-1, 1] inside."""
    random_actions: float = TD3.random_actions
    """The probability of an action that is drawn uniformly instead."""
    target_noise: float = TD3.target_noise
    """Standard deviation of the noise that smooths the target policy."""
    policy_delay: int = TD3.policy_delay
    """Updates of the critics per update of the policy."""
    twins: int = TD3.twins
    """Critics of a member, whose minimum is the target."""
    warm_up: int = TD3.warm_up
    """Steps with random actions and without updates, at first."""
    n_step: int = TD3.n_step
    """How many rewards a target sums up."""
    own_actors: bool = TD3.own_actors
    """An actor for every member: Bootstrapped TD3."""
    mask: float = TD3.mask
    """The share of the transitions that a member learns from, another share for each."""
    selection: Literal["uniform", "progress-softmax", "progress-argmax", "optimistic", "mean"] = (
        "uniform"
    )
    """Which member the policy follows."""
    temperature: float = ProgressSoftmax.temperature
    """The temperature of "progress-softmax"."""
    epsilon: float = ProgressArgmax.epsilon
    """How often "progress-argmax" takes any member."""
    beta: float = Optimistic.beta
    """How far "optimistic" trusts its optimistic member."""
    lead_episodes: int = TD3.lead_episodes
    """Episodes that a member leads at least; 0 allows a switch within an episode."""
    lead_steps: int = TD3.lead_steps
    """Steps that a member leads at least."""
    normalise: bool = TD3.normalise
    """Scale observations by their running mean and deviation."""
    budget: tyro.conf.OmitArgPrefixes[OnlineBudget] = field(
        default_factory=lambda: OnlineBudget(
            steps=1_000_000, capacity=1_000_000, evaluate_every=5_000
        )
    )
    """How long and how."""

    def agent(self) -> TD3:
        """The agent that the options describe."""
        return TD3(**{**self.settings(TD3), "selection": make_selection(self)})


def make_selection(options: Any, prefix: str = "") -> Selection:
    """The selection that options describe, whose settings have names with this prefix."""
    kind = SELECTIONS[options.selection]
    for name, other in SELECTIONS.items():
        for setting in _names(other) - _names(kind):
            if getattr(options, prefix + setting) != getattr(other, setting):
                flag = f"--{prefix}{setting}".replace("_", "-")
                raise InputError(f"{flag} is for --selection {name}, not {options.selection}")
    return kind(**{name: getattr(options, prefix + name) for name in _names(kind)})


@dataclass(frozen=True, kw_only=True)
class BCQOptions(OfflineOptions):
    """BCQ, on a data set with continuous actions."""

    hidden: tuple[int, ...] = BCQ.hidden
    """Widths of the hidden layers of the actor and the critics."""
    proposer_hidden: tuple[int, ...] = BCQ.proposer_hidden
    """Widths of the hidden layers of the auto-encoder that proposes actions."""
    learning_rate: float = BCQ.learning_rate
    """Adam's learning rate."""
    batch_size: int = BCQ.batch_size
    """Transitions per update."""
    perturbation: float = BCQ.perturbation
    """How far the actor may move a proposed action."""
    candidates: int = BCQ.candidates
    """Proposed actions per following state, in a target."""
    minimum_weight: float = BCQ.minimum_weight
    """The share of the lower twin in a target."""

    def agent(self) -> BCQ:
        """The agent that the options describe."""
        return BCQ(**self.settings(BCQ))


@dataclass(frozen=True, kw_only=True)
class CQLOptions(OfflineOptions):
    """CQL, on a data set with continuous actions."""

    hidden: tuple[int, ...] = CQL.hidden
    """Widths of the hidden layers of the policy and the critics."""
    learning_rate: float = CQL.learning_rate
    """Adam's learning rate for the critics."""
    policy_rate: float = CQL.policy_rate
    """Adam's learning rate for the policy and the temperature."""
    batch_size: int = CQL.batch_size
    """Transitions per update."""
    candidates: int = CQL.candidates
    """Actions that the penalty looks at from each of its three sources."""
    weight: float = CQL.weight
    """The weight of the penalty."""
    threshold: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = CQL.threshold
    """Where the tuned penalty is kept (the Lagrange form); by default it is not tuned."""
    entropy_backup: bool = CQL.entropy_backup
    """Whether targets count the policy's entropy."""
    cloning_updates: int = CQL.cloning_updates
    """Updates at the start in which the policy imitates the data."""

    def agent(self) -> CQL:
        """The agent that the options describe."""
        return CQL(**self.settings(CQL))
