"""Where the networks of a run begin: their values before the first update."""

import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from rewardshift.agents.contract import Agent, Estimating, Valuing
from rewardshift.envs.tasks import TaskSpec
from rewardshift.files import DAMAGE, read_own, write_atomic
from rewardshift.optimism import Bounds, value_bounds
from rewardshift.rollout.policy import Policy, Values
from rewardshift.training.config import RunConfig
from rewardshift.training.trainer import Trainer

START = "start.json"
STATES = 256  # of each seed


class Start(NamedTuple):
    """Where the networks of a run begin, on the primal scale.

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

    def to_json(self) -> dict[str, Any]:
        """Everything as plain JSON."""
        low, high = self.possible
        return {**self._asdict(), "possible": [low, high], "optimism": self.optimism}

    def __str__(self) -> str:
        low, high = self.possible
        begun = " and ".join(
            f"{initial:.3g} (spread {spread:.2g})"
            for initial, spread in zip(self.initial, self.spread, strict=True)
        )
        if None in self.optimism:
            return f"The networks begin at {begun}; no reward has differed from {low:.3g} yet."
        places = " and ".join(f"{optimism:.3g}" for optimism in self.optimism)
        return (
            f"The networks begin at {begun}; values from {low:.3g} to {high:.3g} are possible by"
            f" the rewards so far: optimism {places}."
        )


def start_of(config: RunConfig, trainer: Trainer) -> Start | None:
    """Where the networks began, among the values that the rewards so far can add up to.

    None if the agent does not tell its values, or if they contain an intrinsic reward.
    """
    agent, rows = config.agent, range(len(config.seeds))
    if not isinstance(agent, Valuing | Estimating) or getattr(agent, "intrinsic", None) is not None:
        return None
    seen = [trainer.seen(row) for row in rows]
    values = np.concatenate(
        [_values(config, trainer.state, row, seen[row].observation) for row in rows], axis=1
    )
    reward = np.concatenate([np.asarray(one.reward, np.float64) for one in seen])
    terminated = np.concatenate([np.asarray(one.terminated, bool) for one in seen])
    return Start(
        step=trainer.step,
        initial=tuple(values.mean(axis=1).tolist()),
        spread=tuple(values.std(axis=1).tolist()),
        possible=value_bounds(reward, terminated, agent.gamma),
    )


def _values(config: RunConfig, states: Any, row: int, observations: Any) -> np.ndarray:
    """The primal values of a seed's untrained networks, `[member, pair]`."""
    agent, spec, seed = config.agent, config.spec, config.seeds[row]
    now = jax.tree.map(lambda leaf: leaf[row], states)
    some = np.linspace(0, len(observations) - 1, min(STATES, len(observations)), dtype=np.int64)
    rng = np.random.default_rng(0)
    actions = (
        spec.own_scale(rng.uniform(-1, 1, (len(some), spec.action_size)).astype(np.float32))
        if spec.action_size
        else rng.integers(spec.num_actions, size=len(some))
    )
    fresh = scaled_as(untrained(agent, spec, seed), now)
    before, after = (Policy(agent, spec, state, config.env, seed, 0) for state in (fresh, now))
    shifted = before.value(np.asarray(observations[some]), actions).shifted.astype(np.float64)
    return Values(shifted, after.shifts).primal  # a rule may have chosen them since


# The agent is static and the seed is not, so that seeds share what is compiled.
@partial(jax.jit, static_argnums=(0, 1))
def untrained(agent: Agent[Any], spec: TaskSpec, seed: Any) -> Any:
    """The agent's state before its first update, as a training of this seed begins."""
    return agent.init(jax.random.split(jax.random.key(seed))[0], spec)


def scaled_as(fresh: Any, now: Any) -> Any:
    """An untrained state with the scale of observations by now: at first it has seen none."""
    return fresh._replace(normaliser=now.normaliser) if hasattr(fresh, "normaliser") else fresh


def write_start(folder: Path, start: Start) -> None:
    """Writes `start.json`."""
    write_atomic(folder / START, json.dumps(start.to_json(), indent=2) + "\n")


def read_start(folder: Path) -> Start | None:
    """What `start.json` holds; None if there is none, or if it is damaged."""
    try:
        body = json.loads(read_own(folder / START))
        step, initial, spread = (body[name] for name in Start._fields[:3])
        return Start(int(step), tuple(initial), tuple(spread), Bounds(*body["possible"]))
    except DAMAGE:
        return None
