"""The commands that train: `train`, `resume` and `play`."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from rewardshift.agents.bcq import BCQ
from rewardshift.agents.cql import CQL
from rewardshift.agents.dqn import DQN, Schedule
from rewardshift.agents.intrinsic import RND, CountBonus
from rewardshift.agents.offline import Offline
from rewardshift.agents.selection import SELECTIONS, Optimistic, ProgressArgmax, ProgressSoftmax
from rewardshift.agents.td3 import TD3
from rewardshift.data.dataset import Pick, Subset
from rewardshift.envs.engines import EngineName
from rewardshift.errors import InputError
from rewardshift.shift import Terminal
from rewardshift.training.common import OnProgress
from rewardshift.training.config import Agent, read_config
from rewardshift.training.offline import OfflineBudget
from rewardshift.training.online import OnlineBudget
from rewardshift.training.play import record_episode
from rewardshift.training.runs import Result, offline_run, online_run, resume


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What every training takes."""

    shift: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = None
    """The constant that is added to every reward."""
    seeds: int = 1
    """How many, which are run side by side."""
    first_seed: int = 0
    """The first of them; the others follow it."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """The run's folder; by default one in `runs/`, named after the configuration."""
    terminal: Terminal = "zero"
    """What happens at a terminal state: "zero" as in the paper, or "absorbing"."""

    def settings(self, agent: type[Agent]) -> dict[str, Any]:
        """The agent's settings among the options, by the names that it has for them."""
        names = {field.name for field in fields(agent)} & {field.name for field in fields(self)}
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class OnlineOptions(RunOptions):
    """What every training in an environment takes."""

    env: str
    """A registered Gymnasium environment."""
    shifts: tuple[float, ...] = ()
    """Several: Random Reward Shift, a member for each."""
    engine: EngineName = "auto"
    """EnvPool where it has the very same task and is faster ("auto"), or one of the two."""

    def settings(self, agent: type[Agent]) -> dict[str, Any]:
        """See `RunOptions`; with the shift of each member."""
        if self.shift is not None and self.shifts:
            raise InputError("give either --shift or --shifts")
        biases = self.shifts or (self.shift if self.shift is not None else 0.0,)
        return {**super().settings(agent), "shifts": biases}


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
    """Of that choice."""
    scale: float = 1.0
    """The factor on every reward."""
    gamma: float = Offline.gamma
    """The discount."""
    tau: float = Offline.tau
    """How far the target networks move at every update."""
    budget: tyro.conf.OmitArgPrefixes[OfflineBudget] = field(default_factory=OfflineBudget)
    """How long and how."""

    def subset(self) -> Subset | None:
        """The part of the data set that the options ask for."""
        if self.transitions is None:
            return None
        return Subset(self.transitions, self.pick, self.data_seed)

    def settings(self, agent: type[Agent]) -> dict[str, Any]:
        """See `RunOptions`; with the shift as a bias."""
        return {**super().settings(agent), "bias": self.shift if self.shift is not None else 0.0}


@dataclass(frozen=True, kw_only=True)
class DQNOptions(OnlineOptions):
    """DQN, for discrete actions."""

    intrinsic: Literal["none", "rnd", "count"] = "none"
    """An intrinsic reward beside the environment's."""
    intrinsic_bias: float = 0.0
    """The shift of the intrinsic reward; -1 makes it negative."""
    gamma: float = DQN.gamma
    """The discount."""
    hidden: tuple[int, ...] = DQN.hidden
    """Widths of the hidden layers."""
    learning_rate: float = DQN.learning_rate
    """Of Adam."""
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
        sources = {
            "none": None,
            "rnd": RND(self.intrinsic_bias),
            "count": CountBonus(self.intrinsic_bias),
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
    """Of Adam."""
    batch_size: int = TD3.batch_size
    """Transitions per update."""
    tau: float = TD3.tau
    """How far the target networks move at every update of the policy."""
    noise: float = TD3.noise
    """Standard deviation of the exploration noise; actions are in [-1, 1] inside."""
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
    """Of "progress-softmax"."""
    epsilon: float = ProgressArgmax.epsilon
    """How often "progress-argmax" takes any member."""
    beta: float = Optimistic.beta
    """How far "optimistic" trusts its optimistic member."""
    lead_episodes: int = TD3.lead_episodes
    """For how many episodes at least; 0 draws anew within an episode."""
    lead_steps: int = TD3.lead_steps
    """For how many steps at least."""
    budget: tyro.conf.OmitArgPrefixes[OnlineBudget] = field(
        default_factory=lambda: OnlineBudget(
            steps=1_000_000, capacity=1_000_000, evaluate_every=5_000
        )
    )
    """How long and how."""

    def agent(self) -> TD3:
        """The agent that the options describe."""
        kind = SELECTIONS[self.selection]
        selection = kind(**{field.name: getattr(self, field.name) for field in fields(kind)})
        return TD3(**{**self.settings(TD3), "selection": selection})


@dataclass(frozen=True, kw_only=True)
class BCQOptions(OfflineOptions):
    """BCQ, on a data set with continuous actions."""

    hidden: tuple[int, ...] = BCQ.hidden
    """Widths of the hidden layers of the actor and the critics."""
    proposer_hidden: tuple[int, ...] = BCQ.proposer_hidden
    """Widths of the hidden layers of the auto-encoder that proposes actions."""
    learning_rate: float = BCQ.learning_rate
    """Of Adam."""
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
    """Of Adam for the critics."""
    policy_rate: float = CQL.policy_rate
    """Of Adam for the policy and the temperature."""
    batch_size: int = CQL.batch_size
    """Transitions per update."""
    candidates: int = CQL.candidates
    """Actions that the penalty looks at from each of its three sources."""
    weight: float = CQL.weight
    """Of the penalty."""
    threshold: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = CQL.threshold
    """Where the tuned penalty is kept (the Lagrange form); by default it is not tuned."""
    entropy_backup: bool = CQL.entropy_backup
    """Whether targets count the policy's entropy."""
    cloning_updates: int = CQL.cloning_updates
    """For how many updates the policy imitates the data, at first."""

    def agent(self) -> CQL:
        """The agent that the options describe."""
        return CQL(**self.settings(CQL))


def train_agent(
    options: tyro.conf.OmitArgPrefixes[
        tyro.conf.OmitSubcommandPrefixes[
            Annotated[DQNOptions, tyro.conf.subcommand("dqn")]
            | Annotated[TD3Options, tyro.conf.subcommand("td3")]
            | Annotated[BCQOptions, tyro.conf.subcommand("bcq")]
            | Annotated[CQLOptions, tyro.conf.subcommand("cql")]
        ]
    ],
) -> None:
    """Train an agent, all its seeds in one process.

    The run goes to a folder of its own, with checkpoints: when it is stopped, the same
    command, or `rewardshift resume FOLDER`, goes on and ends as if nothing had happened.

    Args:
        options: Of the algorithm.
    """
    try:
        agent = options.agent()
    except ValueError as error:
        raise InputError(str(error)) from error
    if options.seeds < 1:
        raise InputError(f"seeds must be 1 or more, got {options.seeds}")
    seeds = tuple(range(options.first_seed, options.first_seed + options.seeds))
    if isinstance(options, OfflineOptions):
        run = offline_run(agent, options.data, options.env, seeds, options.budget, options.subset())
    else:
        run = online_run(agent, options.env, seeds, options.budget, options.engine)
    folder = options.out or Path("runs") / run.config.name
    with _training_progress(run.config.budget.steps, folder.name) as on_progress:
        result = run.start(folder, on_progress)
    _print_run(folder, result)


def resume_run(folder: Annotated[Path, tyro.conf.Positional], /) -> None:
    """Go on with a run that was stopped.

    Args:
        folder: Of the run.
    """
    steps = read_config(folder).budget.steps
    with _training_progress(steps, folder.name) as on_progress:
        result = resume(folder, on_progress)
    _print_run(folder, result)


def play(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    *,
    film: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None,
    seed: int = 0,
    episode: int = 0,
) -> None:
    """Record an episode of a finished run as a GIF or MP4.

    Args:
        folder: Of the run.
        film: The file to make, .gif or .mp4; by default episode.gif in the run's folder.
        seed: Which of the run's seeds acts.
        episode: Another number is another start.
    """
    path = film or folder / "episode.gif"
    total = record_episode(folder, path, seed, episode)
    print(f"return {total:g}: {path}")


@contextlib.contextmanager
def _training_progress(steps: int, name: str) -> Iterator[OnProgress]:
    """A bar with the last returns, the speed and the time that is left."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} steps"),
        TextColumn("{task.fields[seen]}, {task.fields[speed]:,.0f}/s, left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(name, total=steps, seen="return -", speed=0.0)
        last, clock = 0, time.perf_counter()

        def on_progress(step: int, rows: list[Any]) -> None:
            nonlocal last, clock
            now = time.perf_counter()
            if now - clock < 0.5 and step < steps:  # a picture twice a second is enough
                return
            recent = [row.evaluation_return for row in rows if row.step == rows[-1].step]
            seen = f"return {np.mean(recent):.2f}" if recent else "return -"
            progress.update(task, completed=step, seen=seen, speed=(step - last) / (now - clock))
            last, clock = step, now

        yield on_progress


def _print_run(folder: Path, result: Result) -> None:
    if not result.finished:
        print(
            f"stopped at step {result.step}; go on from the last checkpoint with:"
            f" rewardshift resume {folder}"
        )
        raise KeyboardInterrupt
    last = [row.evaluation_return for row in result.rows if row.step == result.rows[-1].step]
    if last:
        print(f"last evaluation: mean return {np.mean(last):.2f} over {len(last)} seeds")
    print(f"run:     {folder}")
