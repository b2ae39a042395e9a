"""Gymnasium wrappers that shift the reward an agent sees.

Both mark the environment's ``metadata`` with the shift. The mark travels through other
wrappers and through Gymnasium's vectorisation, so a second shift is refused in every place,
also on a vector of environments that are shifted one by one.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Literal, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium.core import ActType, ObsType
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import (
    AsyncVectorEnv,
    SyncVectorEnv,
    VectorActionWrapper,
    VectorEnv,
    VectorObservationWrapper,
    VectorWrapper,
)
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from rewardshift.arrays import as_numpy, where
from rewardshift.auto import Auto, chosen_shift
from rewardshift.checks import checked
from rewardshift.errors import InputError, shown
from rewardshift.probe import ELSEWHERE, Probe, play_copy
from rewardshift.shift import Shift

METADATA_KEY = "reward_shift"
ShiftArgument = float | Mapping[str, Any] | Shift | Auto | Literal["auto"]
# Names, because Gymnasium 1.0, which d3rlpy pins, has no AutoresetMode yet. Its VectorWrapper is
# not generic either.
NEXT_STEP, SAME_STEP, DISABLED = AUTORESET_MODES = ("NextStep", "SameStep", "Disabled")
# The wrappers of Gymnasium around vectors that leave rewards as they are.
PASSING = (VectorObservationWrapper, VectorActionWrapper, RecordEpisodeStatistics)
UNREACHABLE = (
    "'auto' plays random actions in a copy of an environment, and these cannot be reached, or"
    f" wrappers around them may change their rewards. {ELSEWHERE}; Gymnasium's make_vec makes"
    ' others with vectorization_mode="sync"'
)


class Shifting:
    """The shift of a wrapper: given, or chosen by a rule from random play in a copy."""

    _shift: Shift
    _shifted: Callable[[Any, Any], Any]  # maps primal rewards and terminal flags
    _watches: bool  # whether an end that the shift favours is yet to be warned of

    @property
    def shift(self) -> Shift:
        """The shift, which never changes."""
        return self._shift

    def _begin(
        self, look: Callable[[], Probe], shift: ShiftArgument, gamma: float | None, warn: bool
    ) -> dict[str, Any]:
        """Sets the shift, and returns the arguments that stand for it in a spec.

        `look` is the random play for `"auto"`; it is called for that alone.
        """
        self._shift = chosen_shift(shift, gamma, lambda: look()[:2], Auto())
        self._shifted = self._shift.prepared()
        stops = not self._shift.credits_ends and self._shift.bias != 0
        self._watches = checked("warn", bool, warn) and stops
        return {"shift": self._shift, "warn": warn}

    def _watch(self, rewards: Any, terminated: Any) -> None:
        """Warns, once, of an end that the shift favours although its reward does not.

        A negative bias favours every end, a positive one none.
        """
        bias, paid = self._shift.bias, as_numpy(rewards)[as_numpy(terminated).astype(bool)]
        if bias < 0:
            surprising, learns, terminal = paid[paid <= 0], "to end episodes", "goal"
        else:
            surprising, learns, terminal = paid[paid > 0], "to avoid this end", "absorbing"
        if not surprising.size:
            return
        self._watches = False
        gym.logger.warn(
            f"an episode terminated with the reward {surprising[0]:g}, and with terminal='zero' the"
            f" bias {bias:g} ends with it, so the agent learns {learns}. If it should not, use"
            f" Shift({bias:g}, gamma=..., terminal={terminal!r}) with the agent's discount; if it"
            " should, warn=False silences this"
        )


class ShiftReward(Shifting, gym.Wrapper[ObsType, ActType, ObsType, ActType], RecordConstructorArgs):
    """Shifts the reward of an environment and keeps the primal one in ``info["primal_reward"]``.

    Put it outside wrappers that record returns (`RecordEpisodeStatistics`, `Monitor`): they
    then record on the primal scale. The ``compute_reward`` of a goal environment is shifted
    too, so relabelled and real transitions agree; only ``env.unwrapped.compute_reward``
    bypasses every wrapper and stays primal.

    Unless ``terminal="zero"``, a relabelled transition gets the terminal credit if the new goal
    would have ended the episode. The agent must then not bootstrap there; Stable-Baselines3 does,
    so use `VecShiftReward` with it.

    Put `Autoreset` outside: its reset is not a step of the task and must not be shifted.

    With `"auto"`, the wrapper plays 3,000 random actions in a copy of the environment when it is
    made, and `Auto` chooses the shift from their rewards. It always plays the same actions, so it
    chooses the same shift again, in every environment of a vector and after a model is loaded. The
    environment itself and its random numbers stay untouched.

    A vector version exists: `VectorShiftReward`.

    Args:
        env: The environment to wrap.
        shift: A bias, a `Shift`, the dict of a `Shift` in a spec's JSON, or `"auto"`; see `Auto`.
        gamma: The agent's discount, for `"auto"`.
        warn: Whether to warn, once, of an end that ``terminal="zero"`` makes attractive, or
            unattractive, against its reward: a negative bias where an episode terminates with a
            reward that is not positive, or a positive bias where it is.

    >>> import gymnasium as gym
    >>> env = ShiftReward(gym.make("CartPole-v1"), -0.5)
    >>> _ = env.reset(seed=1)
    >>> _, reward, _, _, info = env.step(0)
    >>> reward, info["primal_reward"]
    (0.5, 1.0)
    """

    def __init__(
        self,
        env: gym.Env[ObsType, ActType],
        shift: ShiftArgument,
        gamma: float | None = None,
        *,
        warn: bool = True,
    ) -> None:
        if not isinstance(env, gym.Env):
            raise InputError(f"env must be a gymnasium.Env, got {shown(env)}")
        gym.Wrapper.__init__(self, env)
        refuse_second_shift(env, env.metadata.get(METADATA_KEY))
        if any(isinstance(layer, gym.wrappers.Autoreset) for layer in layers(env)):
            raise InputError(
                f"{env} takes a step to reset itself, which would be shifted as well; put the shift"
                " inside: Autoreset(ShiftReward(env, ...))"
            )
        given = self._begin(partial(play_copy, env), shift, gamma, warn)
        RecordConstructorArgs.__init__(self, **given)
        self.metadata = {**env.metadata, METADATA_KEY: self._shift}
        if (
            self.shift.credits_ends
            and env.has_wrapper_attr("compute_reward")
            and not env.has_wrapper_attr("compute_terminated")
        ):
            raise InputError(
                f"{env} has compute_reward but no compute_terminated, without which"
                f" terminal={self.shift.terminal!r} cannot shift relabelled transitions; use 'zero'"
            )

    def step(self, action: ActType) -> tuple[ObsType, SupportsFloat, bool, bool, dict[str, Any]]:
        """Steps the environment and shifts the reward."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated and self._watches:
            self._watch(reward, True)
        info["primal_reward"] = reward
        return observation, self._shifted(reward, terminated), terminated, truncated, info

    @property
    def compute_reward(self) -> Callable[[Any, Any, Any], Any]:
        """The goal environment's ``compute_reward``, shifted; missing if that has none."""
        primal = self.env.get_wrapper_attr("compute_reward")

        def shifted(achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
            reward = primal(achieved_goal, desired_goal, info)
            return self._shifted(reward, self._is_terminal(achieved_goal, desired_goal, info))

        return shifted

    def _is_terminal(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        if not self.shift.credits_ends:
            return False
        compute = self.env.get_wrapper_attr("compute_terminated")
        goals: gym.spaces.Dict = self.observation_space  # type: ignore[assignment]
        if np.shape(achieved_goal) == goals["achieved_goal"].shape:
            return compute(achieved_goal, desired_goal, info)
        # Row by row: unlike compute_reward, compute_terminated need not take batches.
        infos = [info] * len(achieved_goal) if isinstance(info, Mapping) else info
        rows = zip(achieved_goal, desired_goal, infos, strict=True)
        return np.array([compute(*row) for row in rows], dtype=bool)


class VectorShiftReward(Shifting, VectorWrapper, RecordConstructorArgs):
    """Shifts the rewards of a vector environment, except in rows that are only being reset.

    With next-step autoreset the step after an episode's end only resets that row, so its
    reward, usually 0, is not shifted. ``infos["primal_reward"]`` holds the primal rewards of
    all rows, and ``infos["_primal_reward"]`` marks those of real steps. As with Gymnasium's
    other vector wrappers, the vector's ``spec`` does not record this one: wrap again after
    `gymnasium.make_vec`.

    Args:
        env: The vector environment to wrap.
        shift: As in `ShiftReward`. `"auto"` plays in a copy of the first environment.
        gamma: The agent's discount, for `"auto"`.
        warn: As in `ShiftReward`.

    >>> import gymnasium as gym
    >>> envs = VectorShiftReward(gym.make_vec("CartPole-v1", num_envs=2), -0.5)
    >>> _ = envs.reset(seed=1)
    >>> _, rewards, _, _, infos = envs.step(envs.action_space.sample())
    >>> rewards, infos["primal_reward"]
    (array([0.5, 0.5], dtype=float32), array([1., 1.], dtype=float32))
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, np.ndarray],
        shift: ShiftArgument,
        gamma: float | None = None,
        *,
        warn: bool = True,
    ) -> None:
        if not isinstance(env, VectorEnv):
            raise InputError(f"env must be a gymnasium.vector.VectorEnv, got {shown(env)}")
        VectorWrapper.__init__(self, env)
        refuse_second_shift(env, env.metadata.get(METADATA_KEY))
        given = self._begin(partial(_play_one_of, env), shift, gamma, warn)
        RecordConstructorArgs.__init__(self, **given)
        self.metadata = {**env.metadata, METADATA_KEY: self._shift}
        self._next_step_resets = autoreset_mode(env) == NEXT_STEP
        self._resetting = np.zeros(self.num_envs, dtype=bool)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Resets all rows, or those of ``options["reset_mask"]``."""
        # Read first: Gymnasium's vector environments take the mask out of the options.
        mask = (options or {}).get("reset_mask")
        result = self.env.reset(seed=seed, options=options)
        kept = False if mask is None else ~np.asarray(mask)
        self._resetting = self._resetting & kept
        return result

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Steps all rows and shifts the rewards of those that are not being reset."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        if self._watches:
            self._watch(rewards, terminations)
        shifted = self._shifted(rewards, terminations)
        if np.count_nonzero(self._resetting):
            shifted = where(self._resetting, rewards, shifted)
        infos["primal_reward"] = rewards
        infos["_primal_reward"] = ~self._resetting
        if self._next_step_resets:
            self._resetting = as_numpy(terminations | truncations).astype(bool, copy=False)
        return observations, shifted, terminations, truncations, infos


def _play_one_of(env: VectorEnv[Any, Any, np.ndarray]) -> Probe:
    """Random play in an environment like those of a vector."""
    while isinstance(env, PASSING):
        env = env.env
    if isinstance(env, SyncVectorEnv):
        return play_copy(env.envs[0])
    if isinstance(env, AsyncVectorEnv):
        with contextlib.closing(env.env_fns[0]()) as one:
            return play_copy(one)
    raise InputError(UNREACHABLE)


def layers(env: gym.Env[Any, Any]) -> Iterator[gym.Wrapper[Any, Any, Any, Any]]:
    """The wrappers around an environment, the outermost first."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env


def recorded_shift(spec: EnvSpec | None) -> Any:
    """The shift of the `ShiftReward` that an environment's spec names, or None.

    It compares names: a spec may come from a file, and nothing in it is imported.
    """
    for wrapper in (spec.additional_wrappers if spec is not None else None) or ():
        ours = wrapper.entry_point.partition(".")[0] == __name__.partition(".")[0]
        if ours and wrapper.name == ShiftReward.__name__:
            return (wrapper.kwargs or {}).get("shift", "a shift that it does not say")
    return None


def refuse_second_shift(env: object, already: Any) -> None:
    """Raises if an environment is shifted already; `already` is its mark, or None."""
    if already is not None:
        raise InputError(
            f"{env} is shifted already, by {already}: wrap it once, with the shift you mean"
        )


def autoreset_mode(env: VectorEnv[Any, Any, Any]) -> str:
    """The name of a vector environment's autoreset mode."""
    said = env.metadata.get("autoreset_mode")
    if said is None:
        gym.logger.warn(
            f"{env} does not say its autoreset mode in its metadata; taking"
            f" {NEXT_STEP}, so the step after an episode's end counts as its reset"
        )
        return NEXT_STEP
    mode = str(getattr(said, "value", said))
    if mode not in AUTORESET_MODES:
        raise InputError(f"{env} must have an autoreset mode of {AUTORESET_MODES}, got {said!r}")
    return mode
