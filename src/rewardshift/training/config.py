"""The configuration of a run, as a value and as JSON.

A part of ours is stored by its name. A part from another package is stored as module and name, and
is found again only if its module is already imported: a file never causes an import.
"""

import dataclasses
import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from typing import Annotated, Any

import numpy as np

from rewardshift.agents.base import Agent
from rewardshift.agents.bcq import BCQ
from rewardshift.agents.cql import CQL
from rewardshift.agents.dqn import DQN
from rewardshift.agents.intrinsic import RND
from rewardshift.agents.networks import MLP
from rewardshift.agents.sac import SAC
from rewardshift.agents.selection import SELECTIONS
from rewardshift.agents.td3 import TD3
from rewardshift.auto import Auto
from rewardshift.checks import Count, Counts, Finite, Must, Natural, Settings, checked
from rewardshift.data.dataset import Dataset, Subset
from rewardshift.data.loading import load_dataset
from rewardshift.envs.tasks import TaskSpec, check_imported
from rewardshift.errors import InputError, shown
from rewardshift.shift import Shift
from rewardshift.training.budgets import OfflineBudget, OnlineBudget
from rewardshift.training.hindsight import Hindsight

FORMAT = 10
PLAIN = (bool, int, float, str, type(None))
LONGEST_NAME = 100  # file systems allow 255
MOST_SEEDS = 2**16  # per run or figure
Seeds = Annotated[
    tuple[Natural, ...],
    Must(
        f"up to {MOST_SEEDS} different whole numbers of 0 or more, below 2^31",
        lambda seeds: 1 <= len(set(seeds)) == len(seeds) <= MOST_SEEDS,
    ),
]
OURS: dict[str, type] = {
    part.__name__: part
    for part in (
        *(DQN, TD3, SAC, BCQ, CQL, Shift, Auto, RND, Hindsight, Subset, MLP),
        *SELECTIONS.values(),
    )
}


@dataclass(frozen=True)
class DataConfig(Settings):
    """The data set of a run.

    Args:
        source: The argument of `load_dataset`.
        digest: The digest of the contents, so that a run never continues with other data.
        parts: The subsets applied to the data set, in order.
    """

    source: str
    digest: str
    parts: tuple[Subset, ...] = ()

    def load(self) -> Dataset:
        """The data set; refused if its contents have changed, or if it would be downloaded."""
        try:
            data = load_dataset(self.source, download=False)  # a file names it
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
class RunConfig(Settings):
    """The configuration of a run: everything that its results depend on.

    Args:
        agent: The agent's configuration.
        env: The name of a registered environment, or of the function that makes it.
        spec: The task, as the environment described it when the run was configured.
        seeds: The seeds, one row each.
        budget: The length and the schedule of the training.
        data: The data set, if the run is offline.
        earlier_steps: The lengths of the run before it was extended.
        biases: The biases of a sweep, if its constants are rows beside the seeds.
    """

    agent: Agent
    env: str
    spec: TaskSpec
    seeds: Seeds
    budget: OnlineBudget | OfflineBudget
    data: DataConfig | None = None
    earlier_steps: Counts = ()
    biases: tuple[Finite, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The contents of `config.json`."""
        return {
            "format": FORMAT,
            "agent": part_to_json(self.agent),
            "env": self.env,
            "spec": self.spec._asdict(),
            "seeds": list(self.seeds),
            "budget": part_to_json(self.budget, typed=False),
            "earlier_steps": list(self.earlier_steps),
            "biases": list(self.biases),
            "data": None if self.data is None else part_to_json(self.data, typed=False),
        }

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> "RunConfig":
        """The configuration from the result of `to_json`."""
        offline = body["data"] is not None
        config = cls(
            agent=part_from_json(body["agent"]),
            env=body["env"],
            spec=TaskSpec.from_json(body["spec"]),
            seeds=part_from_json(body["seeds"]),
            budget=build(OfflineBudget if offline else OnlineBudget, body["budget"]),
            data=build(DataConfig, body["data"]) if offline else None,
            earlier_steps=part_from_json(body["earlier_steps"]),
            biases=part_from_json(body["biases"]),
        )
        check_imported(config.env)
        return config

    def longer(self, steps: int | None) -> "RunConfig":
        """The same run with more steps; None leaves it as it is."""
        if steps is None:
            return self
        steps, now = checked("steps", Count, steps), self.budget.steps
        if steps < now:
            raise InputError(f"the run has {now} steps already; steps must be more, got {steps}")
        if steps == now:
            return self
        budget, earlier = self.budget.longer(steps), (*self.earlier_steps, now)
        return replace(self, budget=budget, earlier_steps=earlier)

    def row(self, seed: int | None = None) -> int:
        """The row of a seed; by default of the first."""
        if seed is None:
            return 0
        if checked("seed", Natural, seed) not in self.seeds:
            raise InputError(f"the run has the seeds {list(self.seeds)}, not {seed}")
        return self.seeds.index(seed)

    @property
    def row_seeds(self) -> tuple[int, ...]:
        """The seed of each row: with biases, all seeds for the first bias come first."""
        return self.seeds * max(1, len(self.biases))

    @property
    def digests(self) -> tuple[str, ...]:
        """The digests of this run and of its shorter versions."""
        lengths = self.earlier_steps
        shorter = [
            replace(self, budget=self.budget.longer(last), earlier_steps=lengths[:number])
            for number, last in enumerate(lengths)
        ]
        return (self.digest, *(one.digest for one in reversed(shorter)))

    @property
    def name(self) -> str:
        """A name for the run's folder."""
        where = self.env if self.data is None else self.data.source
        return plain_name(type(self.agent).__name__.lower(), where, self.digest)

    @property
    def digest(self) -> str:
        """A short hash of the configuration."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return sha256(text.encode()).hexdigest()[:12]


def plain_name(agent: str, where: str, digest: str) -> str:
    """A name for a folder, of an agent, its task and the digest of the configuration."""
    return f"{agent}-{re.sub('[^A-Za-z0-9._]', '-', where)[:LONGEST_NAME]}-{digest}"


def chosen_seeds(seeds: Any) -> tuple[int, ...]:
    """The seeds as a tuple; a number n stands for 0 to n - 1. Refuses other values."""
    if isinstance(seeds, int | np.integer):
        if not 1 <= seeds <= MOST_SEEDS:
            raise InputError(f"seeds must be 1 or more, up to {MOST_SEEDS}, got {shown(seeds)}")
        return tuple(range(seeds))
    single = getattr(seeds, "ndim", 1) == 0  # an array of no axes says that it can be iterated
    if single or not isinstance(seeds, Iterable) or isinstance(seeds, str | bytes | dict):
        raise InputError(f"seeds must be a number, or numbers, got {shown(seeds)}")
    return tuple(seeds)


def part_to_json(part: Any, *, typed: bool = True) -> Any:
    """A dataclass as its type and its fields, recursively; refused if it could not be restored.

    Args:
        part: The dataclass, a tuple of parts, or a number or text.
        typed: Whether to record the type of the outermost dataclass.
    """
    if isinstance(part, tuple):
        return [part_to_json(item) for item in part]
    if dataclasses.is_dataclass(part):
        body = {field.name: part_to_json(getattr(part, field.name)) for field in fields(part)}
        if not typed:
            return body
        kind = type(part)
        ours = OURS.get(kind.__name__) is kind
        name = kind.__name__ if ours else f"{kind.__module__}:{kind.__qualname__}"
        if _look_up(name) is not kind:
            raise InputError(
                "a run in a folder needs parts that can be found again: define"
                f" {kind.__qualname__} at the top of a module, got {shown(part)}"
            )
        return {"type": name, **body}
    if not isinstance(part, PLAIN):
        raise InputError(
            "a run in a folder needs settings that a file can keep: numbers, texts and frozen"
            f" dataclasses of these, got {shown(part)}"
        )
    return part


def part_from_json(body: Any) -> Any:
    """The part from the result of `part_to_json`."""
    if isinstance(body, list):
        return tuple(part_from_json(item) for item in body)
    if not isinstance(body, dict):
        return body
    name = body.get("type")
    if not isinstance(name, str):
        raise InputError(f"a part must name its type, got {shown(body)}")
    return build(find_part(name), {key: body[key] for key in body if key != "type"})


def build(kind: Any, body: Any) -> Any:
    """The dataclass from its fields in JSON; raises InputError if it has other fields."""
    if not isinstance(body, dict):
        raise InputError(f"{kind.__name__} needs its settings by name, got {shown(body)}")
    settings = {name: part_from_json(value) for name, value in body.items()}
    try:
        return kind(**settings)
    except TypeError as error:
        raise InputError(f"{kind.__name__} has other settings: {error}") from error


def foreign_modules(body: Any) -> set[str]:
    """The modules of the parts that are not ours, in the result of `part_to_json`."""
    if isinstance(body, list):
        return set().union(*map(foreign_modules, body))
    if not isinstance(body, dict):
        return set()
    module, colon, _ = body["type"].partition(":")
    return foreign_modules(list(body.values())) | ({module} if colon else set())


def _look_up(name: str) -> Any:
    """The class of that name, among ours or in an imported module; None if there is none."""
    if name in OURS:
        return OURS[name]
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for step in path.split("."):
        found = getattr(found, step, None)
    return found


def find_part(name: str) -> Any:
    """The class of a part by its name, as `part_to_json` writes it; imports nothing."""
    found = _look_up(name)
    if isinstance(found, type) and dataclasses.is_dataclass(found):
        return found
    module, _, path = name.partition(":")
    if not path:
        raise InputError(f"there is no part called {name!r}")
    if module not in sys.modules:
        raise InputError(
            f"{path} is from the module {module!r}, which is not imported: import it first, or on"
            f" the command line: rewardshift --import {module} ..."
        )
    raise InputError(f"the module {module!r} has no dataclass {path!r}")
