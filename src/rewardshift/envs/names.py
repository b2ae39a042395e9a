"""Finds environments by their names, and imports the modules that the user names."""

import contextlib
import importlib.util
import io
import sys

import gymnasium as gym

from rewardshift.errors import InputError, blaming
from rewardshift.extras import require

# Libraries that register their tasks when they are imported.
LIBRARIES = ("minigrid", "gymnasium_robotics")
FUNCTION = "function "  # prefix of the names of environments that a function makes


def find_env(env: str) -> gym.envs.registration.EnvSpec:
    """The spec of a registered name; imports the name's module, or `LIBRARIES` if necessary."""
    module, _, name = env.rpartition(":")
    if module and all(part.isidentifier() for part in module.split(".")):
        import_foreign(module)  # as `gymnasium.make` does
        return gym.spec(name)
    for library in filter(importlib.util.find_spec, LIBRARIES):
        with contextlib.suppress(gym.error.NameNotFound):
            return gym.spec(env)
        with contextlib.redirect_stderr(io.StringIO()):  # a note about tasks of the Adroit hand
            importlib.import_module(library)
    if env.startswith("Fetch"):
        require("gymnasium_robotics", "robotics")
    return gym.spec(env)


def check_imported(env: str) -> None:
    """Raises if the module of an environment's id from a file is not imported.

    `find_env` imports the module of an id such as `module:Name-v0`. Only the user may ask for that:
    a file must not decide what is imported.
    """
    module, colon, _ = env.rpartition(":")
    if colon and not env.startswith(FUNCTION) and module not in sys.modules:
        raise InputError(
            f"the environment {env!r} is from the module {module!r}, which is not imported: import"
            f" it first, or on the command line: rewardshift --import {module} ..."
        )


def import_foreign(module: str) -> None:
    """Imports a module that the user names; raises ForeignError if its code fails."""
    with blaming(f"the module {module!r}, while it was imported,", but=(ImportError,)):
        importlib.import_module(module)
