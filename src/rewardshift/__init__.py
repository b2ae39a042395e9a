"""Reward shifting, `r' = k r + b`, for value-based agents."""

import importlib
from typing import TYPE_CHECKING, Any

from rewardshift import envs  # noqa: F401  registers the environments
from rewardshift.auto import Auto, Cautious
from rewardshift.errors import InputError, needs
from rewardshift.optimism import equivalent_bias, lifetime, optimistic_value
from rewardshift.shift import Shift, register_pytree
from rewardshift.suggestion import Suggestion, suggest_shift
from rewardshift.wrappers import ShiftReward, VectorShiftReward

if TYPE_CHECKING:
    from rewardshift.agents.base import Agent
    from rewardshift.agents.bcq import BCQ
    from rewardshift.agents.cql import CQL
    from rewardshift.agents.dqn import DQN
    from rewardshift.agents.intrinsic import RND
    from rewardshift.agents.networks import MLP
    from rewardshift.agents.sac import SAC
    from rewardshift.agents.td3 import TD3, ddpg
    from rewardshift.data import Dataset, Subset, load_dataset
    from rewardshift.report.response import Response
    from rewardshift.report.sweeps import sweep
    from rewardshift.training.budgets import OfflineBudget, OnlineBudget
    from rewardshift.training.hindsight import Hindsight
    from rewardshift.training.policy import Policy
    from rewardshift.training.run_folder import load
    from rewardshift.training.runs import Result, resume, train, train_offline

    __version__: str

__all__ = [
    "BCQ",
    "CQL",
    "DQN",
    "MLP",
    "RND",
    "SAC",
    "TD3",
    "Agent",
    "Auto",
    "Cautious",
    "Dataset",
    "Hindsight",
    "InputError",
    "OfflineBudget",
    "OnlineBudget",
    "Policy",
    "Response",
    "Result",
    "Shift",
    "ShiftReward",
    "Subset",
    "Suggestion",
    "VectorShiftReward",
    "ddpg",
    "equivalent_bias",
    "lifetime",
    "load",
    "load_dataset",
    "optimistic_value",
    "register_pytree",
    "resume",
    "suggest_shift",
    "sweep",
    "train",
    "train_offline",
]

# The names that need the extra `agents`, by their modules, which are imported when they are used.
_BY_MODULE = {
    "agents.base": ("Agent",),
    "agents.bcq": ("BCQ",),
    "agents.cql": ("CQL",),
    "agents.dqn": ("DQN",),
    "agents.intrinsic": ("RND",),
    "agents.networks": ("MLP",),
    "agents.sac": ("SAC",),
    "agents.td3": ("TD3", "ddpg"),
    "data": ("Dataset", "Subset", "load_dataset"),
    "report.response": ("Response",),
    "report.sweeps": ("sweep",),
    "training.budgets": ("OfflineBudget", "OnlineBudget"),
    "training.hindsight": ("Hindsight",),
    "training.policy": ("Policy",),
    "training.run_folder": ("load",),
    "training.runs": ("Result", "resume", "train", "train_offline"),
}
_LAZY = {name: module for module, names in _BY_MODULE.items() for name in names}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


if not TYPE_CHECKING:  # type checkers use the imports above and report unknown names

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version  # noqa: PLC0415  slow to import

            return version("rewardshift")
        if name not in _LAZY:
            raise AttributeError(f"module 'rewardshift' has no attribute {name!r}")
        with needs("agents"):
            value = getattr(importlib.import_module(f"rewardshift.{_LAZY[name]}"), name)
        globals()[name] = value
        return value
