"""The policy of a trained agent: actions, values and evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from rewardshift.agents.base import Agent
from rewardshift.checks import Count, Natural, checked
from rewardshift.envs.observations import flat_rows, number_array
from rewardshift.envs.tasks import (
    MakeEnv,
    TaskSpec,
    env_maker,
    env_name,
    probe_spec,
    refuse_shifted,
    task_spec,
)
from rewardshift.errors import InputError, shown
from rewardshift.shift import Shift
from rewardshift.training.evaluation import Evaluation, Evaluator

MOST_AT_ONCE = 100  # environments that an evaluation makes


class Values(NamedTuple):
    """Values of actions, with their scales.

    `shifted` has a row for each member. `shifts` are the members' shifts: a value of 0 on the scale
    of `Shift(-0.5, gamma=0.99)` is a primal value of 50.
    """

    shifted: np.ndarray
    shifts: tuple[Shift, ...]

    @property
    def primal(self) -> np.ndarray:
        """The values on the primal scale; exact with `absorbing` or if the task never ends."""
        rows = zip(self.shifts, self.shifted, strict=True)
        return np.stack([shift.to_primal(values) for shift, values in rows])


@dataclass(frozen=True)
class Policy:
    """The greedy policy of one seed of a run.

    Args:
        agent: The agent's configuration.
        spec: The task of the training.
        state: The agent's state, without the parts that only learning needs.
        env: The name of the environment, or a function that makes it.
        seed: The seed of the training.
        step: The number of training steps.
    """

    agent: Agent
    spec: TaskSpec
    state: Any
    env: str | MakeEnv
    seed: int
    step: int

    def act(self, observation: Any) -> np.ndarray | np.integer:
        """The action for an observation, or the actions for a batch of them.

        Args:
            observation: The environment's observation, or a flat one. A batch is as of a vector
                environment: one more axis in every array.

        Returns:
            The action for the environment's `step`.
        """
        flat, single = self._flat(observation)
        action = self.spec.own_scale(np.asarray(self._greedy_of_many(flat)))
        return action[0] if single else action

    def greedy(self, observation: np.ndarray) -> np.ndarray | np.integer:
        """The action for one flat observation; a continuous one is in [-1, 1]."""
        return np.asarray(self._greedy(observation))[()]

    def value(self, observation: Any, action: Any) -> Values:
        """The values of actions, on the shifted scale of each member.

        Args:
            observation: As in `act`.
            action: An action for each observation, on the environment's own scale.
        """
        agent, size = self.agent, self.spec.action_size
        if not agent.defines("values"):
            raise InputError(f"{type(agent).__name__} has no values of actions to look at")
        flat, single = self._flat(observation)
        given = number_array(action)
        wanted = (() if single else (len(flat),)) + ((size,) if size else ())
        if given is None or given.shape != wanted:
            raise InputError(
                "there must be an action for each observation, here an array of the shape"
                f" {wanted}, got {shown(action)}"
            )
        taken: Any = given[None] if single else given
        if agent.continuous:
            taken = self.spec.unit_scale(taken).astype(np.float32)
        elif (
            taken.dtype.kind not in "iu"
            or not ((taken >= 0) & (taken < self.spec.num_actions)).all()
        ):
            raise InputError(
                f"actions must be whole numbers from 0 on, below {self.spec.num_actions}, got"
                f" {shown(action)}"
            )
        values = np.asarray(agent.values(self.state, jnp.asarray(flat), jnp.asarray(taken)))
        return Values(values[:, 0] if single else values, self.shifts)

    @property
    def shifts(self) -> tuple[Shift, ...]:
        """The shift of each member, with the discount; those that `"auto"` has chosen by now."""
        now = self.agent.shifts(self.state)
        if not now:
            raise InputError(f"{type(self.agent).__name__} has no shifts to look at")
        return tuple(replace(one, bias=float(one.bias), scale=float(one.scale)) for one in now)

    def evaluate(self, episodes: int = 10, *, env: Any = None, seed: int = 0) -> Evaluation:
        """Greedy episodes, with primal returns.

        Args:
            episodes: The number of episodes.
            env: The environment, if not the policy's own: a registered name, a function that makes
                it, or an environment, which is not closed. Up to 100 environments of a name or a
                function run side by side.
            seed: The seed of the episodes.
        """
        episodes, seed = checked("episodes", Count, episodes), checked("seed", Natural, seed)
        at_hand = isinstance(env, gym.Env)
        make = (lambda: env) if at_hand else self.env if env is None else env
        spec = task_spec(refuse_shifted(env_maker(make)())) if at_hand else probe_spec(make)
        same = ("features", "num_actions", "action_size", "goal_size")
        if any(getattr(spec, name) != getattr(self.spec, name) for name in same):
            raise InputError(
                f"the policy was trained on {env_name(self.env)}, with {self.spec}; this"
                f" environment has {spec}"
            )
        at_once = 1 if at_hand else min(episodes, MOST_AT_ONCE)
        evaluator = Evaluator(self.agent, make, (seed,), at_once, spec)
        state = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], self.state)
        try:
            runs = [evaluator(state, 0, skip=n).outcomes for n in range(0, episodes, at_once)]
        finally:
            if not at_hand:
                evaluator.close()
        columns = (np.concatenate(parts, axis=1) for parts in zip(*runs, strict=True))
        return Evaluation(*(column[0, :episodes] for column in columns))

    @cached_property
    def _greedy(self) -> Any:
        return jax.jit(partial(self.agent.greedy, self.state))

    @cached_property
    def _greedy_of_many(self) -> Any:
        return jax.jit(jax.vmap(partial(self.agent.greedy, self.state)))

    def _flat(self, observation: Any) -> tuple[np.ndarray, bool]:
        """A batch of flat observations, and whether the input was a single observation."""
        spec, given = self.spec, observation
        if spec.shape and isinstance(observation, Mapping):  # MiniGrid's
            given = observation.get("image")
        found = flat_rows(self._space, given)
        array = number_array(given)
        # Of a task that we flatten, whole numbers are its own observations and never flat ones.
        if found is None and array is not None and (array.dtype.kind == "f" or not spec.structure):
            found = flat_rows(gym.spaces.Box(-np.inf, np.inf, (spec.features,)), array)
        if found is None:
            raise InputError(
                f"a policy acts on an observation of {self._space}, or a flat one of"
                f" {spec.features} numbers, or a batch of either with one more axis in every array,"
                f" got {shown(observation)}"
            )
        rows, single = found
        with np.errstate(over="ignore"):  # a number that is too large becomes infinite
            flat = rows.astype(spec.dtype)
        if not (np.isfinite(rows).all() and np.isfinite(flat).all()):
            raise InputError(f"observations must be finite numbers, got {shown(observation)}")
        return flat, single

    @cached_property
    def _space(self) -> gym.Space[Any]:
        return self.spec.space
