"""The shift around a `VecEnv` of Stable-Baselines3, and the check of a model that learns in it."""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from rewardshift.auto import Auto
from rewardshift.errors import InputError, needs
from rewardshift.probe import Probe, play_copy
from rewardshift.shift import Shift
from rewardshift.wrappers import (
    METADATA_KEY,
    UNREACHABLE,
    ShiftArgument,
    Shifting,
    refuse_second_shift,
)

with needs("sb3"):
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.vec_env import (
        DummyVecEnv,
        VecCheckNan,
        VecEnv,
        VecEnvWrapper,
        VecExtractDictObs,
        VecFrameStack,
        VecMonitor,
        VecTransposeImage,
        VecVideoRecorder,
        unwrap_vec_normalize,
        unwrap_vec_wrapper,
    )
    from stable_baselines3.common.vec_env.base_vec_env import (
        VecEnvIndices,
        VecEnvObs,
        VecEnvStepReturn,
    )

# The attribute of a model that holds what "auto" chose; `model.save` writes it as JSON.
KEPT = "reward_shift"
# The wrappers of Stable-Baselines3 that leave rewards as they are.
PASSING = (
    *(VecCheckNan, VecExtractDictObs, VecFrameStack),
    *(VecMonitor, VecTransposeImage, VecVideoRecorder),
)
UNKNOWN_ENDS = (
    "terminal='absorbing' and 'goal' need to know which relabelled transitions end: give"
    " HerReplayBuffer copy_info_dict=True"
)


class VecShiftReward(Shifting, VecEnvWrapper):
    """Shifts the rewards of a `VecEnv`, which resets within a step: every row is a real step.

    `Monitor` and `VecMonitor` inside it record on the primal scale, and so do
    ``rollout/ep_rew_mean`` and `evaluate_policy`; a `VecMonitor` outside records shifted rewards.
    ``infos[i]["primal_reward"]`` holds the primal reward. Unless ``terminal="zero"``,
    ``infos[i]["terminated"]`` says whether the episode ended in a terminal state rather than by a
    time limit; the agent must then bootstrap through time limits, which it does unless
    ``handle_timeout_termination=False``.

    ``env_method("compute_reward", ...)`` is shifted too, so relabelled and stored transitions of a
    `HerReplayBuffer` agree. That buffer keeps the terminations of the real transitions, so unless
    ``terminal="zero"`` these get the credit, and the buffer needs
    ``replay_buffer_kwargs={"copy_info_dict": True}`` to know them.

    A model is checked when it begins to learn; see `check`. With `"auto"` it keeps the shift that
    was chosen in its attribute ``reward_shift``, which `model.save` writes as JSON. After `load`, a
    new wrapper with `"auto"` chooses the same, because it plays the same actions in the same
    environment. If the environment or the discount has changed, the model is refused.

    Put `VecNormalize` outside. Inside it is refused, whatever it normalises, because an agent
    stores the rewards from before a `VecNormalize`. With ``norm_reward=True`` it divides the
    shifted rewards by a running number, so the scale changes: for an exact shift, turn it off.

    Args:
        venv: The environments to wrap.
        shift: A bias, a `Shift`, the dict of a `Shift` in JSON, or `"auto"`, which plays in a copy
            of the first environment and chooses one shift for all; see `ShiftReward` and `Auto`.
        gamma: The agent's discount, for `"auto"`.
        warn: As in `ShiftReward`.

    >>> from stable_baselines3.common.env_util import make_vec_env
    >>> venv = VecShiftReward(make_vec_env("CartPole-v1", n_envs=2), -0.5)
    >>> _ = venv.reset()
    >>> _, rewards, _, infos = venv.step(np.array([0, 1]))
    >>> rewards, infos[0]["primal_reward"]
    (array([0.5, 0.5], dtype=float32), np.float32(1.0))
    """

    def __init__(
        self, venv: VecEnv, shift: ShiftArgument, gamma: float | None = None, *, warn: bool = True
    ) -> None:
        if not isinstance(venv, VecEnv):
            raise InputError(
                f"VecShiftReward takes a VecEnv of Stable-Baselines3, got {venv!r};"
                " ShiftReward takes one environment"
            )
        if unwrap_vec_normalize(venv) is not None:
            raise InputError(
                f"{venv} has a VecNormalize inside, whose original rewards an agent stores instead"
                " of shifted ones; put it outside: VecNormalize(VecShiftReward(venv, shift))"
            )
        super().__init__(venv)
        refuse_second_shift(venv, next(iter(shifts_around(venv)), None))
        self._begin(partial(_play_one_of, venv), shift, gamma, warn)
        self._auto = isinstance(shift, str | Auto)
        self._began = False

    def reset(self) -> VecEnvObs:
        """Resets all environments; if a model begins to learn in them, checks it first."""
        self._check_learner()
        return self.venv.reset()

    def _check_learner(self) -> None:
        """Checks the model whose `learn` is calling, unless the environments are used by hand.

        Stable-Baselines3 shows no model to its environments, so it is looked for among the callers.
        """
        self._began, frame = True, inspect.currentframe()
        while frame is not None:
            model = frame.f_locals.get("self")
            if isinstance(model, BaseAlgorithm) and _wrapper_around(model.get_env()) is self:
                check(model)
                return
            frame = frame.f_back

    def _keep_with(self, model: Any) -> None:
        """Gives a model its record of what `"auto"` chose; refuses one that learned without it."""
        if hasattr(model, KEPT):
            return
        buffer = getattr(model, "replay_buffer", None)
        learned, stored = model._n_updates, 0 if buffer is None else buffer.size()
        if learned or stored:
            raise InputError(
                f"the {type(model).__name__} has {learned} updates and {stored} stored steps,"
                " and no record of what 'auto' chose for them: give VecShiftReward their shift"
                " in place of 'auto'"
            )
        setattr(model, KEPT, asdict(self._shift))

    def step_wait(self) -> VecEnvStepReturn:
        """Waits for the step and shifts its rewards."""
        if not self._began:  # after a load with force_reset=False, learn begins with a step
            self._check_learner()
        observations, rewards, dones, infos = self.venv.step_wait()
        for reward, info in zip(rewards, infos, strict=True):
            info["primal_reward"] = reward
        terminated: Any = False
        if self.shift.credits_ends:
            terminated = _ended(dones, infos)
            for flag, info in zip(terminated, infos, strict=True):
                info["terminated"] = bool(flag)
        elif self._watches and dones.any():
            self._watch(rewards, _ended(dones, infos))
        return observations, self._shifted(rewards, terminated), dones, infos

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Calls a method of the environments, and shifts the results of ``compute_reward``."""
        results = self.venv.env_method(method_name, *method_args, indices=indices, **method_kwargs)
        if method_name != "compute_reward":
            return results
        terminated: Any = False
        if self.shift.credits_ends:
            terminated = _terminated(method_kwargs["info"] if method_kwargs else method_args[2])
        return [self._shifted(reward, terminated) for reward in results]


def check(model: BaseAlgorithm) -> None:
    """Refuses a model that does not fit the shift around its environments.

    Unless ``terminal="zero"``, a terminal transition gets the shift of all later steps as a
    credit. It depends on the discount, which must be the model's, and a time limit does not get
    it, so a replay buffer with ``handle_timeout_termination=False`` is refused. A model that has
    learned with `"auto"` needs the shift that was chosen, and environments with another are
    refused.

    `VecShiftReward` calls this when a model begins to learn in it, and so does `DoctorCallback`. A
    `ShiftReward` in a `VecEnv` cannot: then call it after making the model.

    Args:
        model: A model with its environments.

    >>> from stable_baselines3 import DQN
    >>> from stable_baselines3.common.env_util import make_vec_env
    >>> shift = Shift(-0.5, gamma=0.9, terminal="absorbing")
    >>> venv = VecShiftReward(make_vec_env("CartPole-v1"), shift)
    >>> check(DQN("MlpPolicy", venv, gamma=0.9))
    """
    if not isinstance(model, BaseAlgorithm):
        raise InputError(f"expected a model of Stable-Baselines3 or SBX, got {model!r}")
    venv, gamma = model.get_env(), getattr(model, "gamma", None)
    if venv is None:
        raise InputError("the model has no environments yet: call model.set_env(venv) first")
    wrapper = _wrapper_around(venv)
    if wrapper is not None and wrapper._auto:
        wrapper._keep_with(model)
    shifts, buffer = shifts_around(venv), getattr(model, "replay_buffer", None)
    for shift in shifts:
        if not shift.credits_ends:
            continue
        if shift.gamma != gamma:
            raise InputError(
                f"the model has gamma={gamma}, but its environments are shifted by {shift}:"
                f" terminal={shift.terminal!r} needs the same discount in both"
            )
        if not getattr(buffer, "handle_timeout_termination", True):
            raise InputError(
                "the replay buffer has handle_timeout_termination=False, so it takes time limits"
                f" for ends, which terminal={shift.terminal!r} does not credit: set it to True"
            )
        if not getattr(buffer, "copy_info_dict", True):
            raise InputError(UNKNOWN_ENDS)
    kept = getattr(model, KEPT, None)
    if kept and set(shifts) != {Shift(**kept)}:
        raise InputError(
            f"the model has learned with the shift that 'auto' chose, but its environments have"
            f" {shifts or 'none'}: put VecShiftReward(venv, {kept}) around them"
        )


def _ended(dones: np.ndarray, infos: Iterable[Mapping[str, Any]]) -> np.ndarray:
    """Whether each step ended in a terminal state rather than by a time limit."""
    limits = [info.get("TimeLimit.truncated", False) for info in infos]
    return dones & ~np.array(limits, dtype=bool)


def _terminated(infos: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> Any:
    """Whether each step ended in a terminal state, as recorded by `VecShiftReward`."""
    try:
        if isinstance(infos, Mapping):
            return infos["terminated"]
        return np.array([info["terminated"] for info in infos])
    except KeyError:
        raise InputError(UNKNOWN_ENDS) from None


def _play_one_of(venv: VecEnv) -> Probe:
    """Random play in a copy of an environment inside."""
    while isinstance(venv, PASSING):
        venv = venv.venv
    if not isinstance(venv, DummyVecEnv):
        raise InputError(UNREACHABLE)
    return play_copy(venv.envs[0])


def _wrapper_around(venv: VecEnv | None) -> VecShiftReward | None:
    return None if venv is None else unwrap_vec_wrapper(venv, VecShiftReward)


def shifts_around(venv: VecEnv) -> list[Shift]:
    """The shifts around a `VecEnv`: a wrapper's, or those of the environments inside."""
    wrapper = _wrapper_around(venv)
    if wrapper is not None:
        return [wrapper.shift]
    inside = venv.get_attr("metadata") if venv.has_attr("metadata") else []
    return [metadata[METADATA_KEY] for metadata in inside if METADATA_KEY in metadata]
