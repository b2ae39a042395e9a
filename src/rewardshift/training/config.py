"""What decides a run, as a value and as the `config.json` of its folder."""

import dataclasses
import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from rewardshift.agents.dqn import DQN
from rewardshift.agents.intrinsic import RND, CountBonus
from rewardshift.agents.selection import SELECTIONS
from rewardshift.agents.td3 import TD3
from rewardshift.envs.engines import EngineName, MakeEnv, probe_spec, resolve_engine
from rewardshift.errors import InputError
from rewardshift.files import writable_folder, write_atomic
from rewardshift.training.online import OnlineBudget

FORMAT = 2
Agent = DQN | TD3
# What a configuration may be made of, by name.
PARTS: dict[str, Any] = {
    part.__name__: part for part in (DQN, TD3, RND, CountBonus, *SELECTIONS.values())
}


@dataclass(frozen=True)
class RunConfig:
    """What decides a run.

    Args:
        agent: The agent's configuration.
        env: A registered environment's name, or the name of the function that makes it.
        seeds: One row each.
        budget: How long and how.
        engine: The engine that is used, not "auto".
    """

    agent: Agent
    env: str
    seeds: tuple[int, ...]
    budget: OnlineBudget
    engine: EngineName

    def to_json(self) -> dict[str, Any]:
        """As `config.json` has it."""
        return {
            "format": FORMAT,
            "agent": _part_to_json(self.agent),
            "env": self.env,
            "seeds": list(self.seeds),
            "budget": dataclasses.asdict(self.budget),
            "engine": self.engine,
        }

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> "RunConfig":
        """From what `to_json` gave."""
        agent = _part_from_json(body["agent"])
        budget = OnlineBudget(**body["budget"])
        return cls(agent, body["env"], tuple(body["seeds"]), budget, body["engine"])

    @property
    def digest(self) -> str:
        """A short name for the configuration."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return sha256(text.encode()).hexdigest()[:12]


def _part_to_json(part: Any) -> dict[str, Any]:
    """A dataclass with its type beside its fields, and the same for those within it."""
    fields = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
    return {
        "type": type(part).__name__,
        **{k: _part_to_json(v) if dataclasses.is_dataclass(v) else v for k, v in fields.items()},
    }


def _part_from_json(body: dict[str, Any]) -> Any:
    fields = dict(body)
    kind = PARTS[fields.pop("type")]
    for name, value in fields.items():
        if isinstance(value, dict):
            fields[name] = _part_from_json(value)
        elif isinstance(value, list):
            fields[name] = tuple(value)
    return kind(**fields)


def make_config(
    agent: Agent,
    env: str | MakeEnv,
    seeds: int | tuple[int, ...],
    budget: OnlineBudget,
    engine: EngineName,
) -> RunConfig:
    """The configuration of a run, checked as far as that goes without making it."""
    chosen = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not chosen or len(set(chosen)) != len(chosen) or min(chosen) < 0:
        raise InputError(f"seeds must be 1 or more, or different numbers from 0 on, got {seeds!r}")
    spec = probe_spec(env)
    if agent.continuous != bool(spec.action_size):
        kind = "continuous" if agent.continuous else "discrete"
        raise InputError(f"{type(agent).__name__} needs {kind} actions, {env} has others")
    if agent.warm_up >= budget.steps:
        raise InputError(
            f"nothing would be learned: the warm-up is {agent.warm_up} steps,"
            f" the whole training {budget.steps}"
        )
    if agent.continuous and budget.diagnose:
        raise InputError("diagnose counts visits of discrete actions, so DQN's alone")
    name = env if isinstance(env, str) else getattr(env, "__qualname__", type(env).__qualname__)
    return RunConfig(agent, name, chosen, budget, resolve_engine(env, engine))


def claim_folder(folder: Path, config: RunConfig) -> Path:
    """The folder, for this run: new, or holding the same run."""
    if (folder / "config.json").exists():
        if read_config(folder) != config:
            raise InputError(
                f"the folder {str(folder)!r} holds a run with another configuration;"
                " choose another folder, or go on with that run: rewardshift resume"
            )
    elif folder.exists() and any(folder.iterdir()):
        raise InputError(f"the folder {str(folder)!r} is not empty and holds no run")
    else:
        writable_folder(folder)
        write_atomic(folder / "config.json", json.dumps(config.to_json(), indent=2) + "\n")
    return folder


def read_config(folder: Path) -> RunConfig:
    """The configuration of the run in a folder."""
    path = folder / "config.json"
    try:
        body = json.loads(path.read_text())
        if body["format"] != FORMAT:
            raise ValueError(f"its format is {body['format']!r}, this version reads {FORMAT}")
        return RunConfig.from_json(body)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"no run in {str(folder)!r}: {path.name}: {error}") from error


def networks_of(agent: Agent, state: Any) -> dict[str, Any]:
    """What `parameters.npz` keeps of an agent's state."""
    return {name: getattr(state, name) for name in agent.networks}
