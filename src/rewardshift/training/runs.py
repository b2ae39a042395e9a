"""Runs: training that can stop at any moment and continue bit for bit."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax

from rewardshift.agents.base import Agent
from rewardshift.agents.offline import OfflineAgent
from rewardshift.agents.online import OnlineAgent
from rewardshift.auto import rule_on_data
from rewardshift.data.dataset import Dataset, Subset
from rewardshift.data.loading import absolute_source, load_dataset
from rewardshift.envs.tasks import MakeEnv, check_imported
from rewardshift.errors import InputError, shown, stop_requests
from rewardshift.files import as_path, held, writable_folder
from rewardshift.training.budgets import OfflineBudget, OnlineBudget
from rewardshift.training.config import DataConfig, RunConfig
from rewardshift.training.metrics import Columns
from rewardshift.training.offline import OfflineTrainer, as_batch
from rewardshift.training.online import OnlineTrainer
from rewardshift.training.policy import Policy
from rewardshift.training.run_folder import check_folder, read_config, run_in_folder
from rewardshift.training.trainer import OnProgress, Trainer
from rewardshift.training.validate import checked_config


@dataclass(frozen=True)
class Result:
    """The result of a run.

    Args:
        rows: The lines of `metrics.csv`.
        columns: The columns of `metrics.csv`.
        state: The agent's state, with a leading axis over the seeds.
        config: The configuration of the run.
        env: The environment, as it was given.
        finished: Whether the run reached its end.
        step: The last step; the next start continues from the checkpoint before it.
    """

    rows: Sequence[Any]
    columns: Columns
    state: Any
    config: RunConfig
    env: str | MakeEnv
    finished: bool
    step: int

    def policy(self, seed: int | None = None) -> Policy:
        """The greedy policy of a seed; by default of the first."""
        config, row = self.config, self.config.row(seed)
        state = jax.tree.map(lambda leaf: leaf[row], self.state)
        acting, seed = config.agent.acting_state(state), config.seeds[row]
        return Policy(config.agent, config.spec, acting, self.env, seed, self.step)


@dataclass(frozen=True)
class Run:
    """A run that is configured and checked, but not started.

    Args:
        config: The configuration of the run.
        env: The environment, as it was given.
        make: Makes the trainer at step 0.
    """

    config: RunConfig
    env: str | MakeEnv
    make: Callable[[], Trainer]

    def start(self, folder: Path | str | None, on_progress: OnProgress | None = None) -> Result:
        """Starts or continues the run; see `train`.

        SIGINT and SIGTERM stop it between two steps, so that no file is half written. The signal
        then takes the effect that it has outside of the training: by default it ends the process.
        A second signal ends it at once.
        """
        folder = None if folder is None else as_path("folder", folder)
        if not (on_progress is None or callable(on_progress)):
            raise InputError(f"on_progress must be a function, got {shown(on_progress)}")
        if folder is not None:
            check_folder(folder, self.config)
        # Made before the folder is claimed: a run that does not fit into memory leaves no files.
        with stop_requests() as asked, contextlib.closing(self.make()) as trainer:

            def on_step(step: int, rows: Sequence[Any]) -> None:
                if on_progress is not None:
                    on_progress(step, rows)
                if asked:
                    raise KeyboardInterrupt

            finished = False
            try:
                if folder is not None:
                    with held(writable_folder(folder)):
                        run_in_folder(self.config, trainer, folder, on_step)
                while trainer.step < self.config.budget.steps:
                    trainer.run_to_checkpoint(on_step)
                finished = True
            except KeyboardInterrupt:
                if folder is None and not asked:
                    raise
            kept = (trainer.rows, trainer.columns, trainer.state)
            return Result(*kept, self.config, self.env, finished, trainer.step)


def online_run(
    agent: Agent,
    env: str | MakeEnv,
    seeds: int | tuple[int, ...] = 1,
    budget: OnlineBudget | None = None,
    biases: tuple[float, ...] = (),
) -> Run:
    """The run that `train` starts, with the same arguments.

    With `biases` it has a row for each of them and each seed, instead of the agent's own bias.
    """
    chosen = OnlineBudget() if budget is None else budget
    config, columns = checked_config(agent, env, seeds, chosen, biases=biases)
    return Run(config, env, partial(OnlineTrainer, config, env, columns))


def offline_run(
    agent: Agent,
    data: Dataset | Path | str,
    env: str | MakeEnv | None = None,
    seeds: int | tuple[int, ...] = 1,
    budget: OfflineBudget | None = None,
    subset: Subset | None = None,
) -> Run:
    """The run that `train_offline` starts, with the same arguments."""
    loaded = data if isinstance(data, Dataset) else load_dataset(data)
    if subset is not None:
        loaded = loaded.subset(subset)
    if env is None:
        env = loaded.env
        if env is None:
            raise InputError(
                f"the data set {loaded.name!r} does not say its environment; name one: env, or on"
                " the command line --env"
            )
        check_imported(env)  # the data set names it
    # An absolute path, so that the run can continue from another working folder.
    source = DataConfig(absolute_source(loaded.name), loaded.digest, loaded.parts)
    chosen = OfflineBudget() if budget is None else budget
    rule = rule_on_data(agent.shift) if isinstance(agent, OnlineAgent | OfflineAgent) else None
    if rule is not None:
        agent = replace(agent, shift=rule.shift(loaded.reward, loaded.terminated, agent.gamma))
    config, columns = checked_config(agent, env, seeds, chosen, source)
    batch = as_batch(loaded, env, config.spec)
    return Run(config, env, partial(OfflineTrainer, config, env, columns, batch))


def train(
    agent: Agent,
    env: str | MakeEnv,
    *,
    seeds: int | tuple[int, ...] = 1,
    budget: OnlineBudget | None = None,
    folder: Path | str | None = None,
    on_progress: OnProgress | None = None,
) -> Result:
    """Trains an agent, with all its seeds side by side.

    Args:
        agent: The agent, for example `DQN(shift=-0.5)`.
        env: A registered name, or a function that makes an environment.
        seeds: The number of seeds (0, 1, 2, ...), or the seeds themselves.
        budget: The length and the schedule of the training; by default `OnlineBudget()`.
        folder: The run's folder. If it already holds the same run, that run continues from its
            last checkpoint; another run there is an error. With a folder, a function that makes
            the environment must belong to a module, or be `functools.partial` of one that does,
            so that its name identifies it. None writes no files.
        on_progress: A function to call after every step, and at every step of an evaluation, with
            the step of the training and the rows so far.
    """
    with stop_requests():
        return online_run(agent, env, seeds, budget).start(folder, on_progress)


def train_offline(
    agent: Agent,
    data: Dataset | Path | str,
    env: str | MakeEnv | None = None,
    *,
    seeds: int | tuple[int, ...] = 1,
    budget: OfflineBudget | None = None,
    subset: Subset | None = None,
    folder: Path | str | None = None,
    on_progress: OnProgress | None = None,
) -> Result:
    """Trains an agent on a data set, with all its seeds side by side.

    Args:
        agent: The agent, for example `BCQ(shift=8.0)`. `DQN`, `TD3` and `SAC` work too. With
            `shift="auto"` the data choose the shift, see `Cautious`.
        data: The data set, or its source for `load_dataset`.
        env: The environment for evaluations; by default the one that the data set names.
        subset: The part of the data set to learn from; by default all of it.
        budget: The length and the schedule of the training; by default `OfflineBudget()`.
        seeds, folder, on_progress: As in `train`.
    """
    with stop_requests():
        return offline_run(agent, data, env, seeds, budget, subset).start(folder, on_progress)


def resume(
    folder: Path | str, on_progress: OnProgress | None = None, *, steps: int | None = None
) -> Result:
    """Continues the run in a folder.

    For a finished run it only writes `metrics.csv` and `parameters.npz` again, from the last
    checkpoint.

    Args:
        folder: The run's folder.
        on_progress: As in `train`.
        steps: A larger number of steps, or of updates, which extends the run. Settings that depend
            on the length, such as DQN's linear epsilon, follow the new length from there on. The
            folder records every earlier length.
    """
    config = read_config(as_path("folder", folder)).longer(steps)
    # Validated again: the environment, or an agent from another package, may have changed.
    agent, env, seeds = config.agent, config.env, config.seeds
    if isinstance(config.budget, OnlineBudget):
        run = online_run(agent, env, seeds, config.budget, config.biases)
    else:
        assert config.data is not None
        run = offline_run(agent, config.data.load(), env, seeds, config.budget)
    valid = replace(run.config, earlier_steps=config.earlier_steps)
    return replace(run, config=valid).start(folder, on_progress)
