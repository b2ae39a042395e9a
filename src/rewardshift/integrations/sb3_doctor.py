"""The doctor for models of Stable-Baselines3, sb3-contrib and SBX: afterwards, or while they learn.

It reads the model, its replay and an environment of its own. It changes neither the model, nor its
replay, nor a random state, so training goes on with the same bits.
"""

import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import gymnasium as gym
import numpy as np

from rewardshift.checks import Count, checked
from rewardshift.doctor import (
    AgentView,
    Diagnosis,
    Earlier,
    History,
    Options,
    Target,
    Transitions,
    diagnose,
)
from rewardshift.doctor.agent_view import QFunction
from rewardshift.doctor.transitions import check_env
from rewardshift.errors import InputError, needs, one_line, shown
from rewardshift.integrations.sb3_critics import (
    READABLE,
    fresh_q_function,
    policy_actions,
    q_function,
)
from rewardshift.integrations.sb3_members import RandomRewardShift
from rewardshift.integrations.sb3_wrapper import KEPT, check, shifts_around
from rewardshift.probe import same_randomness
from rewardshift.shift import Shift, as_single_shift

with needs("sb3"):
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
    from stable_baselines3.common.type_aliases import TrainFrequencyUnit


def doctor(
    model: BaseAlgorithm,
    env: str | gym.Env[Any, Any],
    *,
    shift: float | Shift | None = None,
    earlier: Earlier | None = None,
    **options: Unpack[Options],
) -> Diagnosis:
    """A diagnosis of a trained model with a Q function and its replay.

    Args:
        model: The model. One that was loaded needs `model.load_replay_buffer(...)` first.
        env: An environment for episodes of the policy, or its registered name: not one that the
            model trains in. A shift around it is undone.
        shift: The shift that the model was trained with; by default that around its environments.
        earlier: The Q function of an earlier time, for terminal values that are still being
            learned; a `DoctorCallback` gives it.
        options: `episodes`, `steps`, `states` and `seed` of `diagnose`.

    >>> from stable_baselines3 import DQN
    >>> model = DQN("MlpPolicy", "CartPole-v1", learning_starts=50, seed=0).learn(200)
    >>> found = doctor(model, "CartPole-v1", episodes=1)
    >>> found.belief.source, found.signal.high
    ('episodes', 100.0)
    """
    agent = replace(agent_view(model, shift), earlier=earlier)
    data = _replay(model, _own_shift(model, shift))
    with same_randomness(), _opened(model, env) as made:
        return diagnose(agent, made, data, **options)


class DoctorCallback(BaseCallback):
    """Logs a diagnosis during `learn`, as `doctor/...` in the model's logger.

    With `tensorboard_log=` they are curves in TensorBoard. `history` keeps every diagnosis with its
    step, for a picture.

    Args:
        env: As in `doctor`.
        every: Environment steps between two diagnoses.
        episodes, states: See `diagnose`.

    >>> from stable_baselines3 import DQN
    >>> model = DQN("MlpPolicy", "CartPole-v1", learning_starts=50, seed=0)
    >>> callback = DoctorCallback("CartPole-v1", every=100, episodes=1)
    >>> _ = model.learn(200, callback=callback, log_interval=1000)
    >>> [step for step, _ in callback.history]
    [100, 200]
    """

    model: OffPolicyAlgorithm

    def __init__(
        self,
        env: str | gym.Env[Any, Any],
        every: int = 10_000,
        *,
        episodes: int = 5,
        states: int = 512,
    ) -> None:
        super().__init__()
        self._env, self._every = env, checked("every", Count, every)
        self._size: Options = {
            "episodes": checked("episodes", Count, episodes),
            "states": checked("states", Count, states),
        }
        self.history: list[tuple[int, Diagnosis]] = []
        self._before: tuple[QFunction, int] | None = None

    def _init_callback(self) -> None:
        check(self.model)
        with same_randomness(), _opened(self.model, self._env) as made:
            check_env(agent_view(self.model), made, seed=0)
        self._next = self.num_timesteps + self._every

    def _on_step(self) -> bool:
        # The last step is not stored yet; a replay without any comes with the first one.
        if self.num_timesteps >= self._next and _stored(self.model):
            self._next += self._every
            self._look()
        return True

    def _look(self) -> None:
        earlier, now = None, int(self.model._n_updates)
        if self._before is not None:
            before, then = self._before
            earlier = Earlier(before, now - then)
        found = doctor(self.model, self._env, earlier=earlier, **self._size)
        self._before = q_function(self.model, frozen=True), now
        self.history.append((self.num_timesteps, found))
        for name, value in found.scalars().items():
            self.logger.record(f"doctor/{name}", value)


def agent_view(model: BaseAlgorithm, shift: float | Shift | None = None) -> AgentView:
    """A model as the doctor sees it; actions are in the form of its replay buffer."""
    if not isinstance(model, BaseAlgorithm):
        raise InputError(f"expected a model of Stable-Baselines3 or SBX, got {shown(model)}")
    if not isinstance(model, OffPolicyAlgorithm):
        raise InputError(
            f"{type(model).__name__} learns on policy and has no Q function: the doctor takes"
            f" {READABLE}"
        )
    own, sigma = _own_shift(model, shift), _divisor(model)
    trained = Shift(own.bias / sigma, own.scale / sigma, model.gamma, own.terminal)
    outside = sigma != 1.0
    if isinstance(model, RandomRewardShift):  # which shifts what a normaliser has rescaled
        if shift is not None:
            raise InputError(f"the model's members have shifts of their own, got {shown(shift)}")
        own, outside = model.members[model.leader], False
        trained = replace(own, scale=own.scale / sigma)
    space: gym.Space[Any] = model.action_space
    continuous = isinstance(space, gym.spaces.Box)
    if isinstance(space, gym.spaces.Box) and space.is_bounded():
        space = gym.spaces.Box(-1.0, 1.0, space.shape, np.float32)  # as in a replay buffer
    return AgentView(
        value=q_function(model),
        act=partial(policy_actions, model),
        actions=space,
        gamma=model.gamma,
        shift=trained,
        fresh=fresh_q_function(model),
        target=_target(model),
        env_action=model.policy.unscale_action if continuous else int,
        normaliser="outside" if outside else "none",
    )


def _divisor(model: BaseAlgorithm) -> float:
    """What a `VecNormalize` divides rewards by; 1 without one."""
    outer = model.get_vec_normalize_env()
    if outer is None or not outer.norm_reward:
        return 1.0
    return float(np.sqrt(outer.ret_rms.var + outer.epsilon))


def _own_shift(model: BaseAlgorithm, given: float | Shift | None) -> Shift:
    """The shift of the rewards in the replay."""
    if given is not None:
        return as_single_shift(given)
    if kept := getattr(model, KEPT, None):  # what "auto" chose before it was saved
        return Shift(**kept)
    venv = model.get_env()
    return next(iter([] if venv is None else shifts_around(venv)), Shift(0.0))


def _target(model: Any) -> Target | None:
    """The rule of the target network; None while nobody knows how long an episode is."""
    steps = float(model.train_freq.frequency)
    if model.train_freq.unit == TrainFrequencyUnit.EPISODE:
        if not model._episode_num:
            return None
        steps *= model.num_timesteps / model._episode_num
    given, is_sbx = model.gradient_steps, hasattr(model.policy, "qf_state")
    each_round = max(1, given if given >= 0 else steps * model.n_envs)  # updates after the steps
    tau, interval = float(model.tau), int(getattr(model, "target_update_interval", 1))
    if isinstance(model.action_space, gym.spaces.Discrete):
        # It moves between the rounds. There the online network stays, so several moves add up.
        moves = steps / (interval if is_sbx else max(1, interval // model.n_envs))
        tau, every = 1 - (1 - tau) ** max(1.0, moves), each_round / min(1.0, moves)
    elif is_sbx:
        every = 1.0  # its `policy_delay` is the actor's alone
    elif hasattr(model, "policy_delay"):
        every = float(model.policy_delay)
    else:  # SAC counts anew in every round, and moves it in the first update
        every = max(1.0, each_round / math.ceil(each_round / interval))
    n_step = int(getattr(model.replay_buffer, "n_steps", 1))
    return Target(tau, every, int(model._n_updates), n_step)


def _stored(model: Any) -> int:
    """The number of rows in a replay buffer."""
    return 0 if model.replay_buffer is None else int(model.replay_buffer.size())


def _replay(model: Any, shift: Shift) -> Transitions:
    """The transitions of the replay buffer, with primal rewards; observations are not copied."""
    size, buffer = _stored(model), model.replay_buffer
    if size == 0:
        raise InputError(
            f"the {type(model).__name__} has no replay to look at: call learn, or"
            " load_replay_buffer, first"
        )

    def rows(array: Any, space: gym.Space[Any] | None = None) -> Any:
        if isinstance(array, dict):
            return {name: rows(part) for name, part in array.items()}
        flat = array[:size].reshape(-1, *array.shape[2:])
        # A replay holds discrete observations and actions in a column.
        return flat[:, 0] if isinstance(space, gym.spaces.Discrete) else flat

    observations = partial(rows, space=model.observation_space)
    dones = rows(buffer.dones) > 0
    terminated = dones & (rows(buffer.timeouts) == 0)
    reward = shift.to_primal_reward(rows(buffer.rewards).astype(np.float64), terminated)
    # From the oldest step to the newest: the buffer goes around.
    steps = np.roll(np.arange(size), -buffer.pos)
    in_order = (steps * buffer.n_envs + np.arange(buffer.n_envs)[:, None]).reshape(-1)
    ended = dones[in_order]
    ended[size - 1 :: size] = True  # one environment comes after the other
    older = np.zeros(size, bool)
    older[steps[: size // 2]] = True
    compact = getattr(buffer, "optimize_memory_usage", False)
    return Transitions(
        observation=observations(buffer.observations),
        action=rows(buffer.actions, model.action_space),
        reward=reward,
        terminated=terminated,
        next_observation=None if compact else observations(buffer.next_observations),
        whole=History(reward[in_order], terminated[in_order], ended),
        settled=np.repeat(older, buffer.n_envs),
    )


@contextlib.contextmanager
def _opened(model: BaseAlgorithm, env: Any) -> Iterator[gym.Env[Any, Any]]:
    """The environment for the episodes; one made here of a name is closed."""
    if isinstance(env, str):
        try:
            made = gym.make(env)
        except (gym.error.Error, ImportError) as error:
            raise InputError(f"no environment {env!r}: {one_line(error)}") from error
        with contextlib.closing(made):
            yield made
        return
    venv: Any = model.get_env()
    own = getattr(venv.unwrapped, "envs", []) if venv is not None else []
    if isinstance(env, gym.Env) and any(env.unwrapped is one.unwrapped for one in own):
        raise InputError(f"the model trains in {env}: give the doctor an environment of its own")
    yield env
