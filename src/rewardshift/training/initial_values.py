"""The values of a run's networks before the first update, which `start.json` keeps."""

import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from rewardshift.checks import Finite, Natural, checked
from rewardshift.doctor.measure import spread_rows
from rewardshift.envs.tasks import TaskSpec
from rewardshift.files import DAMAGE, read_json, write_atomic
from rewardshift.optimism import Bounds, value_bounds
from rewardshift.training.config import RunConfig
from rewardshift.training.evaluation import acting_state, policy_state
from rewardshift.training.policy import Policy, Values
from rewardshift.training.trainer import Trainer

Members = tuple[Finite, ...]
START = "start.json"
STATES = 256  # of each seed


class InitialValues(NamedTuple):
    """The values of a run's untrained networks, on the primal scale.

    `initial` is the mean value of the untrained networks and `spread` the standard deviation, over
    seeds, states that the run has seen by `step`, and random actions; each has a number for each
    member. `possible` are the values that the rewards by then can add up to.
    """

    step: int
    initial: tuple[float, ...]
    spread: tuple[float, ...]
    possible: Bounds

    @property
    def optimism(self) -> tuple[float | None, ...]:
        """The place of each member's `initial` among the possible values: 0 low, 1 high."""
        return tuple(map(self.possible.optimism, self.initial))

    def __str__(self) -> str:
        low, high = self.possible
        begun = " and ".join(
            f"{initial:.3g} (spread {spread:.2g})"
            for initial, spread in zip(self.initial, self.spread, strict=True)
        )
        if None in self.optimism:
            return (
                f"The networks begin at {begun}. With the rewards so far, every value is {low:.3g}."
            )
        places = " and ".join(f"{optimism:.3g}" for optimism in self.optimism)
        return (
            f"The networks begin at {begun}. With the rewards so far, values can lie between"
            f" {low:.3g} and {high:.3g}: optimism {places}."
        )


def initial_values(
    config: RunConfig, trainer: Trainer, untrained: dict[str, Any]
) -> InitialValues | None:
    """The values of the untrained networks, and those that the rewards so far can add up to.

    None if the agent does not tell its values, if they contain an intrinsic reward, or without a
    discount, where rewards add up to anything.

    Args:
        config: The run's configuration.
        trainer: The trainer now. It stays as it is.
        untrained: The networks of all seeds before the first update.
    """
    agent = config.agent
    known = getattr(agent, "intrinsic", None) is None and agent.gamma < 1
    if not (known and agent.tells_values) or config.biases:
        return None
    data = [trainer.transitions(row) for row in range(len(config.seeds))]
    # An agent that normalises observations has seen none at first: their scale is that by now.
    now = policy_state(agent, trainer.state)
    scale = {name: part for name, part in now.items() if name == "normaliser"}
    seen = [np.asarray(one.observation) for one in data]
    states = np.stack([one[spread_rows(len(one), STATES)] for one in seen])
    actions = _random_actions(config.spec, states.shape[1])
    shifted = _values(agent, acting_state(trainer.state, untrained | scale), states, actions)
    primal = []
    for row, own in enumerate(np.asarray(shifted, np.float64)):
        state = jax.tree.map(lambda leaf, row=row: leaf[row], trainer.state)
        # By the shifts that a rule has chosen by now.
        policy = Policy(agent, config.spec, state, config.env, config.seeds[row], 0)
        primal.append(Values(own, policy.shifts).primal)
    values = np.concatenate(primal, axis=1)
    reward = np.concatenate([np.asarray(one.reward, np.float64) for one in data])
    terminated = np.concatenate([np.asarray(one.terminated, bool) for one in data])
    return InitialValues(
        step=trainer.step,
        initial=tuple(values.mean(axis=1).tolist()),
        spread=tuple(values.std(axis=1).tolist()),
        possible=value_bounds(reward, terminated, agent.gamma),
    )


def _random_actions(spec: TaskSpec, count: int) -> np.ndarray:
    """Actions as an agent takes them: continuous ones are in [-1, 1]."""
    rng = np.random.default_rng(0)
    if spec.action_size:
        return rng.uniform(-1, 1, (count, spec.action_size)).astype(np.float32)
    return rng.integers(spec.num_actions, size=count)


@partial(jax.jit, static_argnums=0)
def _values(agent: Any, states: Any, observations: Any, actions: Any) -> Any:
    """The values of all seeds, `[seed, member, pair]`, each on its member's scale."""
    return jax.vmap(lambda state, seen: agent.values(state, seen, actions))(states, observations)


def write_initial_values(
    folder: Path, config: RunConfig, trainer: Trainer, untrained: dict[str, Any]
) -> None:
    """Writes `start.json` after the first evaluation, if the values are known.

    See `initial_values`. A file that an earlier start of the run has written stays.
    """
    if not (folder / START).exists():
        values = initial_values(config, trainer, untrained)
        if values is not None:
            body = {**values._asdict(), "optimism": values.optimism}
            write_atomic(folder / START, json.dumps(body, indent=2) + "\n")


def read_initial_values(folder: Path) -> InitialValues | None:
    """The contents of `start.json`; None if there is no such file, or if it is damaged."""
    try:
        body = read_json(folder / START)
        return InitialValues(
            step=checked("step", Natural, body["step"]),
            initial=checked("initial", Members, body["initial"]),
            spread=checked("spread", Members, body["spread"]),
            possible=Bounds(*checked("possible", tuple[Finite, Finite], body["possible"])),
        )
    except DAMAGE:
        return None
