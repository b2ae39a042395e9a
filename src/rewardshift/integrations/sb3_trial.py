"""A trial for `rewardshift.sweep` made of a class of Stable-Baselines3 or SBX."""

import inspect
import sys
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import gymnasium as gym

from rewardshift.checks import Count, checked
from rewardshift.errors import InputError, needs, one_line, shown
from rewardshift.integrations.sb3_members import RandomRewardShift
from rewardshift.integrations.sb3_wrapper import VecShiftReward, check
from rewardshift.wrappers import ShiftReward

with needs("sb3"):
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
    from stable_baselines3.common.vec_env import DummyVecEnv


class Trial:
    """A trial that trains a model of Stable-Baselines3 or SBX, for `rewardshift.sweep`.

    It yields the model at equal distances, as `evaluations` policies to evaluate. The training is
    that of one call of `learn`. A class with the argument `shifts`, such as `RRSTD3`, can be given
    members; without them it has one member, and its environment is shifted.

    Args:
        agent: An off-policy class.
        policy: Its policy, for example `"MlpPolicy"`.
        steps: The environment steps of a training.
        evaluations: The number of evaluations of a training.
        **settings: Other arguments of the class, as keywords. The sweep gives `env` and `seed`.

    >>> from stable_baselines3 import DQN
    >>> Trial(DQN, "MlpPolicy", steps=50_000, learning_starts=1_000)
    Trial(DQN, 'MlpPolicy', steps=50000, evaluations=25, learning_starts=1000)
    """

    def __init__(
        self,
        agent: type[OffPolicyAlgorithm],
        policy: Any,
        *,
        steps: int,
        evaluations: int = 25,
        **settings: Any,
    ) -> None:
        if not (isinstance(agent, type) and issubclass(agent, OffPolicyAlgorithm)):
            raise InputError(
                "a trial needs an off-policy class of Stable-Baselines3 or SBX, such as DQN, whose"
                f" values a shift changes; got {shown(agent)}"
            )
        self.steps = checked("steps", Count, steps)
        self.evaluations = checked("evaluations", Count, evaluations)
        if steps % evaluations:
            raise InputError(
                f"steps must be a multiple of evaluations, got {steps} and {evaluations}"
            )
        self.agent, self.policy, self.settings = agent, policy, settings
        own = sorted({"env", "seed", "shifts"} & set(settings))
        if own:
            raise InputError(f"the sweep gives {', '.join(own)} to the trial: leave it out")
        known = _arguments_of(agent)
        try:
            bound = known.bind(policy=policy, env="env", seed=0, **settings)
        except TypeError as error:
            raise InputError(f"{agent.__name__} {one_line(error)}") from error
        bound.apply_defaults()
        self.gamma: float | None = bound.arguments.get("gamma")
        self.takes_members = "shifts" in known.parameters
        # Where it is made, as for a function: a unit of work imports that first.
        self.__module__ = sys._getframe(1).f_globals.get("__name__", self.__module__)

    def __repr__(self) -> str:
        """The class and all arguments, by which a sweep knows its trial."""
        settings = {"steps": self.steps, "evaluations": self.evaluations, **self.settings}
        words = ", ".join(f"{name}={_text(value)}" for name, value in settings.items())
        return f"Trial({self.agent.__name__}, {_text(self.policy)}, {words})"

    def __call__(
        self, env: gym.Env[Any, Any], seed: int, shifts: tuple[Any, ...] = (0.0,)
    ) -> Iterator[tuple[int, OffPolicyAlgorithm]]:
        """Trains on the environment, and yields each evaluated step and the model."""
        members = {"shifts": shifts} if self.takes_members else {}
        make: Any = self.agent
        if isinstance(env, ShiftReward) and issubclass(make, RandomRewardShift):
            make = _in_shifted(make)
        settings = deepcopy(self.settings)  # a model writes into its policy_kwargs
        model = make(self.policy, _outside(env), seed=seed, **members, **settings)
        check(model)
        whole = _WholeLength(self.steps)
        every = self.steps // self.evaluations
        for step in range(every, self.steps + 1, every):
            # A rollout may have gone beyond the step already.
            if step > model.num_timesteps:
                left = step - model.num_timesteps
                model.learn(left, callback=whole, reset_num_timesteps=False, log_interval=None)
            yield step, model


def _arguments_of(agent: type[Any]) -> inspect.Signature:
    """The arguments of a class by name, with those that it hands on to its parents."""
    found: dict[str, inspect.Parameter] = {}
    for kind in agent.__mro__:
        if "__init__" in vars(kind):
            own = dict(list(inspect.signature(vars(kind)["__init__"]).parameters.items())[1:])
            found = {**own, **found}
            if all(one.kind != one.VAR_KEYWORD for one in own.values()):
                break
    named = [one for one in found.values() if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    return inspect.Signature([one.replace(kind=one.KEYWORD_ONLY) for one in named])


def _outside(env: gym.Env[Any, Any]) -> Any:
    """The environment with its shift around the `VecEnv`, where hindsight needs it."""
    if not isinstance(env, ShiftReward):
        return env
    return VecShiftReward(DummyVecEnv([lambda: Monitor(env.env)]), env.shift)


def _in_shifted(agent: type[RandomRewardShift]) -> type[RandomRewardShift]:
    """The class with one member, whose shift of 0 leaves that of its environment as it is."""
    own = {"_wrap_env": staticmethod(OffPolicyAlgorithm._wrap_env), "__module__": agent.__module__}
    return type(agent.__name__, (agent,), own)


class _WholeLength(BaseCallback):
    """Lets schedules follow the whole training, of which a call of `learn` is a part."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._steps = steps

    def _on_training_start(self) -> None:
        self.model._total_timesteps = self._steps

    def _on_step(self) -> bool:
        return True


def _text(value: Any) -> str:
    """A setting as text: classes and functions by their names."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_text(one)}' for key, one in value.items())}}}"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_text, value))})"
    return str(getattr(value, "__qualname__", None) or repr(value))
