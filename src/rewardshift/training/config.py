"""The configuration of a run, as a value and as JSON."""

import json
import string
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from typing import Any

from rewardshift.agents.base import Agent
from rewardshift.checks import Count, Finite, check, checked
from rewardshift.data.dataset import Dataset, Subset
from rewardshift.data.loading import load_dataset
from rewardshift.envs.tasks import TaskSpec, check_imported
from rewardshift.errors import InputError
from rewardshift.training.offline import OfflineBudget
from rewardshift.training.online import OnlineBudget
from rewardshift.training.seeding import check_seeds
from rewardshift.training.serialise import build, part_from_json, part_to_json

FORMAT = 9
PLAIN = f"{string.ascii_letters}{string.digits}._"
LONGEST_NAME = 100  # file systems allow 255


@dataclass(frozen=True)
class DataConfig:
    """The data set of a run.

    Args:
        source: The argument of `load_dataset`.
        digest: The digest of the contents, so that a run never continues with other data.
        parts: The subsets applied to the data set, in order.
    """

    source: str
    digest: str
    parts: tuple[Subset, ...] = ()

    def __post_init__(self) -> None:
        check(self)

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
class RunConfig:
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
    seeds: tuple[int, ...]
    budget: OnlineBudget | OfflineBudget
    data: DataConfig | None = None
    earlier_steps: tuple[Count, ...] = ()
    biases: tuple[Finite, ...] = ()

    def __post_init__(self) -> None:
        check(self)
        check_seeds(self.seeds)

    def to_json(self) -> dict[str, Any]:
        """The contents of `config.json`."""
        return {
            "format": FORMAT,
            "agent": part_to_json(self.agent),
            "env": self.env,
            "spec": self.spec.to_json(),
            "seeds": list(self.seeds),
            "budget": _fields_to_json(self.budget),
            "earlier_steps": list(self.earlier_steps),
            "biases": list(self.biases),
            "data": None if self.data is None else _fields_to_json(self.data),
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

    def longer(self, steps: int) -> "RunConfig":
        """The same run with more steps."""
        steps, now = checked("steps", Count, steps), self.budget.steps
        if steps < now:
            raise InputError(f"the run has {now} steps already; steps must be more, got {steps}")
        if steps == now:
            return self
        budget = _with_length(self.budget, steps)
        return replace(self, budget=budget, earlier_steps=(*self.earlier_steps, now))

    @property
    def digests(self) -> tuple[str, ...]:
        """The digests of this run and of its shorter versions."""
        if not self.earlier_steps:
            return (self.digest,)
        *before, last = self.earlier_steps
        budget = _with_length(self.budget, last)
        shorter = replace(self, budget=budget, earlier_steps=tuple(before))
        return (self.digest, *shorter.digests)

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
    plain = "".join(letter if letter in PLAIN else "-" for letter in where)
    return f"{agent}-{plain[:LONGEST_NAME]}-{digest}"


def _fields_to_json(part: Any) -> dict[str, Any]:
    """The fields of a dataclass, without its type."""
    return {field.name: part_to_json(getattr(part, field.name)) for field in fields(part)}


def _with_length(budget: OnlineBudget | OfflineBudget, steps: int) -> OnlineBudget | OfflineBudget:
    if isinstance(budget, OfflineBudget):
        return replace(budget, updates=steps)
    return replace(budget, steps=steps)
