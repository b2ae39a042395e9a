"""Tasks as agents see them: flat observations, and actions in [-1, 1] or discrete."""

import contextlib
import importlib.util
import io
import math
import sys
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any, Literal, NamedTuple, TypeGuard, get_type_hints

import gymnasium as gym
import numpy as np

from rewardshift.checks import Count, Finite, Natural, checked
from rewardshift.envs.observations import (
    GOAL_KEYS,
    Structure,
    flat_size,
    frozen,
    goal_structure,
    space_of,
    structure_of,
)
from rewardshift.errors import InputError, blaming, one_line, require, shown
from rewardshift.wrappers import METADATA_KEY

MakeEnv = Callable[[], gym.Env[Any, Any]]

# Libraries that register their tasks when they are imported.
LIBRARIES = ("minigrid", "gymnasium_robotics")
FUNCTION = "function "  # prefix of the names of environments that a function makes
GOALS = set(GOAL_KEYS)
GOAL_SPACES = (gym.spaces.Box, gym.spaces.MultiBinary, gym.spaces.MultiDiscrete)
# The parts of MiniGrid's observations, of which agents see the image.
MINIGRID = {"image", "direction", "mission"}


class TaskSpec(NamedTuple):
    """The description of a task for an agent.

    `features` and `dtype` are the length and the type of flat observations. A task has either
    `num_actions` discrete actions or continuous ones of `action_size` numbers, always in [-1, 1];
    the other field is 0. In a goal task an observation ends with the achieved and then the desired
    goal, of `goal_size` numbers each; in other tasks `goal_size` is 0. `shape` is the shape of an
    observation before flattening; it is empty if that is not a single array. `low` and `high` are
    the bounds of continuous actions on the environment's own scale. `structure` is that of the
    environment's own observations, see `structure_of`; it is empty if `shape` or `goal_size` alone
    tells it.
    """

    features: Count
    dtype: Literal["uint8", "float32"]
    num_actions: Natural = 0
    action_size: Natural = 0
    goal_size: Natural = 0
    shape: tuple[Natural, ...] = ()
    low: tuple[Finite, ...] = ()
    high: tuple[Finite, ...] = ()
    structure: Structure = ()

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> "TaskSpec":
        """The spec from its fields as JSON; raises ValueError if it is damaged."""
        kinds = get_type_hints(cls, include_extras=True)
        if not isinstance(body, dict) or set(body) != set(kinds):
            raise ValueError(f"a task has the fields {', '.join(kinds)}")
        del kinds["structure"]  # which `flat_size` checks
        fields = {name: checked(name, kind, body[name]) for name, kind in kinds.items()}
        spec = cls(**fields, structure=frozen(body["structure"]))
        if flat_size(spec._whole_structure()) != spec.features:
            raise ValueError(f"its observations do not have {spec.features} numbers")
        return spec

    @property
    def space(self) -> gym.Space[Any]:
        """The environment's own observation space, without bounds; for MiniGrid, the image's."""
        return space_of(self._whole_structure())

    def _whole_structure(self) -> Structure:
        if self.structure:
            return self.structure
        if self.goal_size:
            sizes = (self.features - 2 * self.goal_size, self.goal_size, self.goal_size)
            return goal_structure([(size,) for size in sizes])
        return ("Box", self.shape or (self.features,))

    def own_scale(self, action: np.ndarray) -> np.ndarray:
        """Converts continuous actions in [-1, 1] to the environment's own scale."""
        low, high = np.asarray(self.low, np.float32), np.asarray(self.high, np.float32)
        return action if self._is_unit() else low + (high - low) * (action + 1) / 2

    def unit_scale(self, action: np.ndarray) -> np.ndarray:
        """Converts continuous actions on the environment's own scale to [-1, 1]."""
        low, high = np.asarray(self.low, np.float32), np.asarray(self.high, np.float32)
        return action if self._is_unit() else 2 * (action - low) / (high - low) - 1

    def _is_unit(self) -> bool:
        """Whether actions need no rescaling, which would change their last bits."""
        return set(self.low) <= {-1.0} and set(self.high) <= {1.0}

    def achieved(self, observation: np.ndarray) -> np.ndarray:
        """The achieved goals in flat observations, as a view."""
        return observation[..., -2 * self.goal_size : -self.goal_size]

    def desired(self, observation: np.ndarray) -> np.ndarray:
        """The desired goals in flat observations, as a view."""
        return observation[..., -self.goal_size :]


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


class UnitBox(gym.wrappers.RescaleAction[Any, Any, Any]):
    """Our rescaling of actions to [-1, 1], as a class that differs from an environment's own."""


class FlatObservation(gym.wrappers.FlattenObservation[Any, Any, Any]):
    """Our flattening of observations, as a class that differs from an environment's own."""


def env_maker(env: str | MakeEnv, *, flat: bool = True, **options: Any) -> MakeEnv:
    """A function that makes the environment; it raises ForeignError if that one's code fails.

    Args:
        env: A registered name, or a function that makes the environment.
        flat: Whether it gets flat observations, and continuous actions in [-1, 1].
        options: Arguments of `gymnasium.make`, for a registered name.
    """
    name = env_name(env)
    if callable(env):
        make = env
    elif not isinstance(env, str):
        raise InputError(
            "env must be a registered name, or a function that makes an environment, got"
            f" {shown(env)}"
        )
    elif env.startswith(FUNCTION):
        raise InputError(
            f"the environment was made by the {env}, which a file cannot keep: go on from Python,"
            " with train or train_offline, give it to Policy.evaluate, or register the environment"
        )
    else:
        make = partial(gym.make, env, **options)
        try:
            find_env(env)
        except (gym.error.Error, ImportError) as error:
            raise InputError(
                f"no environment {env!r}: {one_line(error)} (for one of your own: MODULE:ID, where"
                " importing MODULE registers ID)"
            ) from error

    def made() -> gym.Env[Any, Any]:
        refusals = (InputError, gym.error.Error, ImportError)
        try:
            with blaming(f"the environment {name!r}, while it was made,", but=refusals):
                one = make()
        except (gym.error.Error, ImportError) as error:
            raise InputError(
                f"the environment {name!r} cannot be made: {one_line(error)}"
            ) from error
        if not isinstance(one, gym.Env):
            raise InputError(f"env must make a gymnasium.Env, the {name} made {shown(one)}")
        return _flat(one) if flat else one

    return made


def _flat(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """The environment with flat observations and continuous actions in [-1, 1].

    Observations that are an array, goals or MiniGrid's stay as they are: `flatten` reads them.
    """
    space, actions = env.observation_space, env.action_space
    names = set(space) if isinstance(space, gym.spaces.Dict) else set()
    if not (names >= GOALS or names == MINIGRID):
        is_array = isinstance(space, gym.spaces.Box)
        # `structure_of` refuses spaces that cannot be flattened.
        size = math.prod(space.shape or ()) if is_array else flat_size(structure_of(space))
        if not 0 < size < 2**31:
            raise InputError(
                f"observations must hold a number at least, and fewer than 2^31; {env} has {space}"
            )
        if not is_array:
            env = FlatObservation(env)
    if _is_continuous(actions) and not ((actions.low == -1).all() and (actions.high == 1).all()):
        return UnitBox(env, np.float32(-1), np.float32(1))
    return env


def _is_continuous(space: gym.Space[Any]) -> TypeGuard[gym.spaces.Box]:
    """Whether a space is a box of floating point numbers with finite bounds."""
    return isinstance(space, gym.spaces.Box) and space.dtype.kind == "f" and space.is_bounded()


def plain_env(env: str | MakeEnv) -> gym.Env[Any, Any]:
    """A new environment as it is; refused if there is none, or if its rewards are shifted."""
    return refuse_shifted(env_maker(env, flat=False)())


def env_name(env: str | MakeEnv) -> str:
    """The name by which a run identifies its environment."""
    return env if isinstance(env, str) else FUNCTION + _function_name(env)


def _function_name(function: Any) -> str:
    if isinstance(function, partial):
        named = [f"{name}={value!r}" for name, value in function.keywords.items()]
        arguments = ", ".join([*map(repr, function.args), *named])
        return f"{_function_name(function.func)}({arguments})"
    if isinstance(function, FunctionType | type):
        return f"{function.__module__}.{function.__qualname__}"
    return repr(function)


def flatten(observation: Any, spec: TaskSpec) -> np.ndarray:
    """One environment's observation as a flat array for the agents."""
    if spec.goal_size:
        parts = [np.asarray(observation[name], np.float32).ravel() for name in GOAL_KEYS]
        return np.concatenate(parts)
    image = observation["image"] if isinstance(observation, dict) else observation
    flat = np.asarray(image, spec.dtype).reshape(-1)
    if flat.size != spec.features:  # NumPy would spread a single number over all of them
        raise TypeError(f"an observation must have {spec.features} numbers, got {shown(image)}")
    return flat


def probe_spec(env: str | MakeEnv) -> TaskSpec:
    """The spec of a task, from an environment made and closed for it."""
    probe = env_maker(env)()
    with blaming(f"the environment {env_name(env)!r}, when closed,"):
        probe.close()
    return task_spec(refuse_shifted(probe))


def refuse_shifted(env: Any) -> Any:
    """The environment, or vector environment; raises if its rewards are shifted."""
    if METADATA_KEY in env.metadata:
        raise InputError(
            f"{env} is shifted already, by {env.metadata[METADATA_KEY]}: leave the environment"
            " as it is and give the agent the shift, which keeps all returns primal"
        )
    return env


def task_spec(env: gym.Env[Any, Any]) -> TaskSpec:
    """The task's spec; refuses spaces that no agent here supports."""
    spec = _observation_spec(env)
    match env.action_space:
        case gym.spaces.Discrete(start=0, n=n):
            if n >= 2**31:
                raise InputError(f"there must be fewer than 2^31 actions; {env} has {n}")
            return spec._replace(num_actions=int(n))
        case gym.spaces.Box(shape=(size,)) as box if _is_continuous(box):
            own = env.env.action_space if isinstance(env, UnitBox) else box
            assert isinstance(own, gym.spaces.Box)
            return spec._replace(
                action_size=size, low=tuple(own.low.tolist()), high=tuple(own.high.tolist())
            )
    raise InputError(
        "actions must be Discrete from 0 on, or a Box of floating point numbers with finite"
        f" bounds and one axis; {env} has {env.action_space}"
    )


def _observation_spec(env: gym.Env[Any, Any]) -> TaskSpec:
    """The observation part of the task's spec."""
    match env.observation_space:
        # The first is MiniGrid's.
        case gym.spaces.Dict(spaces={"image": gym.spaces.Box() as box}) | (gym.spaces.Box() as box):
            spec = TaskSpec(math.prod(box.shape), "uint8" if box.dtype == np.uint8 else "float32")
            inner = env.env if isinstance(env, UnitBox) else env
            if isinstance(inner, FlatObservation):
                return spec._replace(structure=structure_of(inner.env.observation_space))
            # An empty shape stands for none, so that of a single number is kept as a structure.
            return spec._replace(shape=box.shape, structure=() if box.shape else structure_of(box))
        case gym.spaces.Dict(spaces=spaces) if set(spaces) == GOALS and all(
            isinstance(space, GOAL_SPACES) for space in spaces.values()
        ):
            return _goal_spec(env, [spaces[name].shape or () for name in GOAL_KEYS])
        case other:
            raise InputError(
                "observations must be a Box, MiniGrid's Dict with an image, or a Dict of Box,"
                f" MultiBinary or MultiDiscrete named {', '.join(GOAL_KEYS)}; {env} has {other}"
            )


def _goal_spec(env: gym.Env[Any, Any], shapes: list[tuple[int, ...]]) -> TaskSpec:
    """The observation part of a goal task's spec, from the shapes of its parts."""
    _, achieved, desired = shapes
    if achieved != desired:
        raise InputError(
            "achieved_goal and desired_goal must have the same shape; in"
            f" {env} they have {achieved} and {desired}"
        )
    spec = TaskSpec(sum(map(math.prod, shapes)), "float32", goal_size=math.prod(desired))
    vectors = all(len(shape) == 1 for shape in shapes)
    return spec if vectors else spec._replace(structure=goal_structure(shapes))
