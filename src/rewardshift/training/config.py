"""What decides a run, as a value and as the `config.json` of its folder."""

import dataclasses
import json
import string
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from rewardshift.agents.contract import Agent, Bounding, Choosy, Multistep, OnlineAgent, Valuing
from rewardshift.checks import check
from rewardshift.data.dataset import Dataset, Subset
from rewardshift.data.loading import load_dataset
from rewardshift.envs.engines import EngineName, resolve_engine
from rewardshift.envs.goals import probe_goals
from rewardshift.envs.tasks import MakeEnv, check_imported, env_name, probe_spec
from rewardshift.errors import InputError, one_line, shown
from rewardshift.files import DAMAGE, LEFTOVER, LOCK, read_own, write_atomic
from rewardshift.hindsight import Hindsight
from rewardshift.learners import Learner
from rewardshift.rollout.parts import check_restorable, part_from_json, part_to_json
from rewardshift.rollout.seeding import check_seeds, chosen_seeds
from rewardshift.training.offline import OfflineBudget
from rewardshift.training.online import OnlineBudget

FORMAT = 6
PLAIN = f"{string.ascii_letters}{string.digits}._"
LONGEST_NAME = 100  # a file system has room for 255


@dataclass(frozen=True)
class DataConfig:
    """Which data set a run learns from.

    Args:
        source: As `load_dataset` takes it.
        digest: The digest of the contents, so that a run never goes on with other ones.
        parts: Which part of which part of it, if not all.
    """

    source: str
    digest: str
    parts: tuple[Subset, ...] = ()

    def __post_init__(self) -> None:
        check(self)

    def load(self) -> Dataset:
        """The data set; refused if it is not the same any more."""
        try:
            data = load_dataset(self.source)
        except InputError as error:
            raise InputError(
                f"{error}; if the data set was made in memory, go on with train_offline"
            ) from error
        for part in self.parts:
            data = data.subset(part)
        if data.digest != self.digest:
            raise InputError(
                f"the data set {self.source!r} has changed since the run began: its digest is"
                f" {data.digest}, not {self.digest}"
            )
        return data


@dataclass(frozen=True)
class RunConfig:
    """What decides a run.

    Args:
        agent: The agent's configuration.
        env: A registered environment's name, or the name of the function that makes it.
        seeds: One row each.
        budget: How long and how.
        engine: The engine that is used, not "auto".
        data: The data set, if the run is offline.
    """

    agent: Agent[Any]
    env: str
    seeds: tuple[int, ...]
    budget: OnlineBudget | OfflineBudget
    engine: EngineName
    data: DataConfig | None = None

    def __post_init__(self) -> None:
        check(self)
        check_seeds(self.seeds)

    def to_json(self) -> dict[str, Any]:
        """As `config.json` has it."""
        return {
            "format": FORMAT,
            "agent": part_to_json(self.agent),
            "env": self.env,
            "seeds": list(self.seeds),
            "budget": part_to_json(self.budget),
            "engine": self.engine,
            "data": None
            if self.data is None
            else {**dataclasses.asdict(self.data), "parts": part_to_json(self.data.parts)},
        }

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> "RunConfig":
        """From what `to_json` gave."""
        agent, data = part_from_json(body["agent"]), body["data"]
        if data is not None:
            parts = part_from_json(data["parts"])
            data = DataConfig(data["source"], data["digest"], parts)
        budget = part_from_json(body["budget"])
        config = cls(agent, body["env"], tuple(body["seeds"]), budget, body["engine"], data)
        check_imported(config.env)
        return config

    @property
    def name(self) -> str:
        """What a folder for it may be called."""
        where = self.env if self.data is None else self.data.source
        plain = "".join(letter if letter in PLAIN else "-" for letter in where)
        return f"{type(self.agent).__name__.lower()}-{plain[:LONGEST_NAME]}-{self.digest}"

    @property
    def digest(self) -> str:
        """A short name for the configuration."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return sha256(text.encode()).hexdigest()[:12]


def make_config(
    agent: Agent[Any],
    env: str | MakeEnv,
    seeds: int | tuple[int, ...],
    budget: OnlineBudget,
    engine: EngineName,
) -> RunConfig:
    """The configuration of an online run, checked as far as that goes without making it."""
    _check_agent(agent)
    if not isinstance(agent, OnlineAgent):
        raise InputError(f"{type(agent).__name__} learns from a data set, not from {env}")
    _check_budget(budget, OnlineBudget)
    _check_task(agent, env)
    if budget.hindsight is not None:
        _check_goals(budget.hindsight, agent, env, budget.capacity)
    if agent.warm_up >= budget.steps:
        raise InputError(
            f"nothing would be learned: the warm-up is {agent.warm_up} steps,"
            f" the whole training {budget.steps}"
        )
    if budget.diagnose and (agent.continuous or not isinstance(agent, Valuing)):
        raise InputError(
            "diagnose counts visits of discrete actions and looks at their values, so it is DQN's"
            f" alone, got {type(agent).__name__}"
        )
    return RunConfig(agent, env_name(env), chosen_seeds(seeds), budget, resolve_engine(env, engine))


def make_offline_config(
    agent: Agent[Any],
    env: str | MakeEnv,
    seeds: int | tuple[int, ...],
    budget: OfflineBudget,
    data: DataConfig,
) -> RunConfig:
    """The configuration of an offline run, checked as far as that goes without making it."""
    _check_agent(agent)
    _check_budget(budget, OfflineBudget)
    _check_task(agent, env)
    for name in ("updates", "evaluate_every", "checkpoint_every"):
        if getattr(budget, name) % agent.period:
            raise InputError(
                f"{name} must be a multiple of {agent.period}, after which the updates of"
                f" {type(agent).__name__} repeat themselves, got {getattr(budget, name)}"
            )
    if isinstance(agent, Choosy):
        agent.check_offline(budget.updates)
    engine = resolve_engine(env, "auto")
    return RunConfig(agent, env_name(env), chosen_seeds(seeds), budget, engine, data)


def _check_goals(
    hindsight: Hindsight, agent: Agent[Any], env: str | MakeEnv, capacity: int
) -> None:
    """Refuses what hindsight cannot relabel, or not from whole episodes."""
    if isinstance(agent, Multistep) and agent.n_step != 1:
        raise InputError(f"hindsight needs n_step=1, got {agent.n_step}")
    if getattr(agent, "intrinsic", None) is not None:
        raise InputError(
            "hindsight does not go with an intrinsic reward, which would be another goal's, got"
            f" {shown(agent)}"
        )
    task = probe_goals(env)
    if task.longest is not None and capacity < task.longest:
        raise InputError(
            f"a capacity of {capacity} is too small for hindsight: an episode of {env} has"
            f" up to {task.longest} steps"
        )
    lowest, highest = task.rewards[0], task.rewards[-1]
    declared = agent.reward_range if isinstance(agent, Bounding) else None
    low, high = declared or (lowest, highest)
    if not low <= lowest <= highest <= high:
        raise InputError(
            f"reward_range must hold the rewards of {env} before any shift, {lowest:g} to"
            f" {highest:g} and maybe more; got {low:g} to {high:g}"
        )
    if task.ends and not hindsight.success_ends:
        raise InputError(f"{env} terminates at its goal: hindsight needs success_ends")
    if hindsight.success_ends and len(task.rewards) > 2:
        raise InputError(
            f"success_ends is for rewards of two values, {env} pays more, such as"
            f" {', '.join(f'{reward:g}' for reward in task.rewards[:3])}"
        )


def _check_agent(agent: Any) -> None:
    if isinstance(agent, type) or not isinstance(agent, Agent):
        raise InputError(
            "agent must be an agent, such as DQN(), or one of your own that has all that"
            f" rewardshift.agents.contract.Agent asks for, got {shown(agent)}"
        )


def _check_budget(budget: Any, kind: type) -> None:
    if not isinstance(budget, kind):
        raise InputError(f"budget must be an {kind.__name__}, got {shown(budget)}")


def _check_task(agent: Agent[Any], env: str | MakeEnv) -> None:
    spec = probe_spec(env)
    if agent.continuous != bool(spec.action_size):
        kind = "continuous" if agent.continuous else "discrete"
        raise InputError(f"{type(agent).__name__} needs {kind} actions, {env} has others")


def check_folder(folder: Path, config: RunConfig) -> None:
    """Refuses a folder that is neither new nor holds this run, before anything is written."""
    if "<" in config.env:  # as in "<lambda>", "<locals>" and "<... object at 0x...>"
        raise InputError(
            f"nothing tells the environment of the {config.env} from others, so a run in a folder"
            " could not go on: take a registered name, a function or class of a module, or"
            " functools.partial of one"
        )
    check_restorable(config.agent)
    if (folder / "config.json").exists():
        if read_config(folder) != config:
            raise InputError(
                f"the folder {str(folder)!r} holds a run with another configuration;"
                " choose another folder, or go on with that run: rewardshift resume"
            )
    elif folder.exists() and any(map(_is_foreign, folder.iterdir())):
        raise InputError(f"the folder {str(folder)!r} is not empty and holds no run")


def _is_foreign(path: Path) -> bool:
    """Whether a file is none of those that a run killed at its very beginning has left."""
    return path.suffix != LEFTOVER and path.name != LOCK


def claim_folder(folder: Path, config: RunConfig) -> None:
    """Makes a folder this run's, if it is not; by the process that holds it."""
    check_folder(folder, config)  # again: another process may have been here before it was held
    if not (folder / "config.json").exists():
        write_atomic(folder / "config.json", json.dumps(config.to_json(), indent=2) + "\n")


def read_config(folder: Path) -> RunConfig:
    """The configuration of the run in a folder."""
    path = folder / "config.json"
    try:
        body = json.loads(read_own(path))
        if body["format"] != FORMAT:
            raise ValueError(f"its format is {body['format']!r}, this version reads {FORMAT}")
        return RunConfig.from_json(body)
    except DAMAGE as error:
        raise InputError(f"no run in {str(folder)!r}: {path.name}: {one_line(error)}") from error


def networks_of(config: RunConfig, state: Any, step: int) -> dict[str, Any]:
    """What `parameters.npz` keeps of a run: its digest, its steps, and the agent's networks."""
    networks = {name: _without_optimiser(getattr(state, name)) for name in config.agent.networks}
    return {"config": np.asarray(config.digest), "step": np.asarray(step, np.int64), **networks}


def _without_optimiser(part: Any) -> Any:
    """A part of an agent's state as a policy needs it."""
    return part._replace(optimiser=()) if isinstance(part, Learner) else part
