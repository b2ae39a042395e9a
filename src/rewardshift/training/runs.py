"""A run and its folder: training that can be stopped at any moment and goes on the same.

`config.json` says what is run, `metrics.csv` what came of it; both are the same for the same
configuration, whatever happened on the way. Times are in `timing.csv`, curves for TensorBoard
in `tensorboard/`, checkpoints in `checkpoints/`, the networks at the last one in
`parameters.npz`.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax

from rewardshift.agents.contract import Agent, OnlineAgent
from rewardshift.data.dataset import Dataset, Subset
from rewardshift.data.loading import load_dataset, whole_name
from rewardshift.envs.engines import EngineName
from rewardshift.envs.tasks import MakeEnv, check_imported
from rewardshift.errors import InputError
from rewardshift.files import held, writable_folder
from rewardshift.rollout.policy import Policy, acting_state, policy_state
from rewardshift.training.config import DataConfig, RunConfig
from rewardshift.training.deciding import make_config, make_offline_config
from rewardshift.training.folder import check_folder, claim_folder, read_config
from rewardshift.training.keeping import run_in_folder
from rewardshift.training.loading import row_of
from rewardshift.training.metrics import Columns
from rewardshift.training.offline import OfflineBudget, OfflineTrainer, as_batch
from rewardshift.training.online import OnlineBudget, OnlineTrainer
from rewardshift.training.trainer import OnProgress, Trainer


@dataclass(frozen=True)
class Result:
    """What a run comes to.

    Args:
        rows: The lines of `metrics.csv`.
        columns: Its columns.
        state: The agent's state, with a leading axis over the seeds.
        config: What was run.
        env: The environment, as it was given.
        finished: False if it was stopped before its end.
        step: How far it came; at the next start it goes on from the checkpoint before.
    """

    rows: Sequence[Any]
    columns: Columns
    state: Any
    config: RunConfig
    env: str | MakeEnv
    finished: bool
    step: int

    def policy(self, seed: int | None = None) -> Policy:
        """The greedy policy of one of the seeds; by default of the first."""
        config = self.config
        row = row_of(config, config.seeds[0] if seed is None else seed)
        networks = policy_state(config.agent, self.state)
        chosen = jax.tree.map(lambda leaf: leaf[row], networks)
        state = acting_state(self.state, chosen)
        return Policy(config.agent, config.spec, state, self.env, config.seeds[row], self.step)


@dataclass(frozen=True)
class Run:
    """A run that is decided and checked, and not begun.

    Args:
        config: What decides it.
        env: The environment, as it was given.
        make: Makes its trainer.
    """

    config: RunConfig
    env: str | MakeEnv
    make: Callable[[], Trainer]

    def start(self, folder: Path | str | None, on_progress: OnProgress | None = None) -> Result:
        """Runs it, or goes on with it: see `train`."""
        place = None if folder is None else Path(folder)
        if place is not None:
            check_folder(place, self.config)
        # Made before the folder is claimed: what does not fit into the memory leaves no trace.
        with contextlib.closing(self.make()) as trainer:
            if place is None:
                finished = _run_in_memory(self.config, trainer, on_progress)
            else:
                with held(writable_folder(place)):
                    claim_folder(place, self.config)
                    finished = run_in_folder(self.config, trainer, place, on_progress)
            return Result(
                trainer.rows,
                trainer.columns,
                trainer.state,
                self.config,
                self.env,
                finished,
                trainer.step,
            )


def online_run(
    agent: Agent[Any],
    env: str | MakeEnv,
    seeds: int | tuple[int, ...] = 1,
    budget: OnlineBudget | None = None,
    engine: EngineName = "auto",
) -> Run:
    """What `train` starts; the arguments are its."""
    return _online(make_config(agent, env, seeds, budget or OnlineBudget(), engine), env)


def _online(config: RunConfig, env: str | MakeEnv) -> Run:
    agent, budget = config.agent, config.budget
    assert isinstance(agent, OnlineAgent)  # both have been checked
    assert isinstance(budget, OnlineBudget)
    return Run(config, env, lambda: OnlineTrainer(agent, env, config.seeds, budget, config.engine))


def offline_run(
    agent: Agent[Any],
    data: Dataset | Path | str,
    env: str | MakeEnv | None = None,
    seeds: int | tuple[int, ...] = 1,
    budget: OfflineBudget | None = None,
    subset: Subset | None = None,
) -> Run:
    """What `train_offline` starts; the arguments are its."""
    loaded = data if isinstance(data, Dataset) else load_dataset(data)
    if subset is not None:
        loaded = loaded.subset(subset)
    place = env if env is not None else loaded.env
    if place is None:
        raise InputError(
            f"the data set {loaded.name!r} does not say its environment; name one: env, or on the"
            " command line --env"
        )
    if env is None:
        check_imported(str(place))  # which the data set names
    # Whole, so that the run may go on from another folder.
    source = DataConfig(whole_name(loaded.name), loaded.digest, loaded.parts)
    config = make_offline_config(agent, place, seeds, budget or OfflineBudget(), source)
    return _offline(config, loaded, place)


def _offline(config: RunConfig, data: Dataset, env: str | MakeEnv) -> Run:
    assert isinstance(config.budget, OfflineBudget)
    batch = as_batch(data, env)
    settings = (config.agent, batch, env, config.seeds, config.budget, config.engine)
    return Run(config, env, lambda: OfflineTrainer(*settings))


def train(
    agent: Agent[Any],
    env: str | MakeEnv,
    *,
    seeds: int | tuple[int, ...] = 1,
    budget: OnlineBudget | None = None,
    engine: EngineName = "auto",
    folder: Path | str | None = None,
    on_progress: OnProgress | None = None,
) -> Result:
    """Trains an agent, with all its seeds side by side.

    Args:
        agent: Its configuration, for example `DQN(shift=-0.5)`.
        env: A registered name, or a function that makes an environment.
        seeds: How many (0, 1, 2, ...), or which.
        budget: How long and how; the default is that of `OnlineBudget`.
        engine: `"gymnasium"`, `"envpool"` or `"auto"`.
        folder: The run's folder. If it holds the same run already, that one goes on from its last
            checkpoint; if it holds another one, that is an error. A function that makes the
            environment must then be one of a module, or `functools.partial` of one, so that it
            can be told from others. None keeps nothing.
        on_progress: Called after every step, and at every step of an evaluation, with the step of
            the training and the rows so far.
    """
    return online_run(agent, env, seeds, budget, engine).start(folder, on_progress)


def train_offline(
    agent: Agent[Any],
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
        agent: Its configuration, for example `BCQ(shift=8.0)`. `DQN`, `TD3` and `SAC` work too.
        data: The data set, or where `load_dataset` finds it.
        env: Where to evaluate, if the data set does not say.
        subset: Which part of the data set, if not all of it.
        budget: How long and how; the default is that of `OfflineBudget`.
        seeds, folder, on_progress: As in `train`.
    """
    return offline_run(agent, data, env, seeds, budget, subset).start(folder, on_progress)


def resume(
    folder: Path | str, on_progress: OnProgress | None = None, *, steps: int | None = None
) -> Result:
    """Goes on with the run in a folder.

    At the end of a run there is nothing left to train: then `metrics.csv` and `parameters.npz` are
    written again from the last checkpoint.

    Args:
        folder: The run's folder.
        on_progress: As in `train`.
        steps: A greater number of steps, or of updates, than the run has; it goes on past its end.
            What depends on the length, such as DQN's linear epsilon, follows the new one from
            there. The folder keeps every length that it was given.
    """
    config = read_config(Path(folder))
    if steps is not None:
        config = config.longer(steps)
    if config.data is not None:
        assert isinstance(config.budget, OfflineBudget)
        settings = (config.agent, config.env, config.seeds, config.budget, config.data)
        checked = replace(make_offline_config(*settings), earlier_steps=config.earlier_steps)
        run = _offline(checked, config.data.load(), config.env)
    else:
        assert isinstance(config.budget, OnlineBudget)
        online = (config.agent, config.env, config.seeds, config.budget, config.engine)
        run = _online(replace(make_config(*online), earlier_steps=config.earlier_steps), config.env)
    return run.start(folder, on_progress)


def _run_in_memory(config: RunConfig, trainer: Trainer, on_progress: OnProgress | None) -> bool:
    while trainer.step < config.budget.steps:
        trainer.run_to_checkpoint(on_progress)
    return True
