"""The values of a run's networks before the first update, which `start.json` keeps."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from rewardshift.doctor.measure import spread_rows
from rewardshift.envs.tasks import TaskSpec
from rewardshift.files import DAMAGE, read_json, write_atomic
from rewardshift.optimism import value_bounds
from rewardshift.training.config import RunConfig
from rewardshift.training.evaluation import acting_state, policy_state
from rewardshift.training.policy import Policy, Values
from rewardshift.training.trainer import Trainer

START = "start.json"
STATES = 256  # of each seed


def write_initial_values(
    folder: Path, config: RunConfig, trainer: Trainer, untrained: dict[str, Any]
) -> None:
    """Writes `start.json` after the first evaluation.

    On the primal scale, `initial` is the mean value of the untrained networks and `spread` the
    standard deviation, over seeds, states that the run has seen by `step`, and random actions; each
    has a number for each member. `possible` are the lowest and the highest value that the rewards
    by then can add up to, and `optimism` is the place of each `initial` between them.

    There is no such file if the agent does not tell its values, if they contain an intrinsic
    reward, or without a discount, where rewards add up to anything. A whole file that an earlier
    start of the run has written stays.

    Args:
        folder: The run's folder.
        config: The run's configuration.
        trainer: The trainer now. It stays as it is.
        untrained: The networks of all seeds before the first update.
    """
    agent = config.agent
    known = agent.tells_values and getattr(agent, "intrinsic", None) is None and agent.gamma < 1
    if config.biases or not known or read_initial_values(folder) is not None:
        return
    data = [trainer.transitions(row) for row in range(len(config.seeds))]
    seen = [np.asarray(one.observation) for one in data]
    states = np.stack([one[spread_rows(len(one), STATES)] for one in seen])
    # An agent that normalises observations has seen none at first: their scale is that by now.
    now = policy_state(agent, trainer.state)
    networks = untrained | {name: part for name, part in now.items() if name == "normaliser"}
    actions = _random_actions(config.spec, states.shape[1])
    shifted = _values(agent, acting_state(trainer.state, networks), states, actions)
    primal = []
    for row, own in enumerate(np.asarray(shifted, np.float64)):
        state = jax.tree.map(lambda leaf, row=row: leaf[row], trainer.state)
        # By the shifts that a rule has chosen by now.
        policy = Policy(agent, config.spec, state, config.env, config.seeds[row], 0)
        primal.append(Values(own, policy.shifts).primal)
    values = np.concatenate(primal, axis=1)
    reward = np.concatenate([np.asarray(one.reward, np.float64) for one in data])
    terminated = np.concatenate([np.asarray(one.terminated, bool) for one in data])
    possible, initial = value_bounds(reward, terminated, agent.gamma), values.mean(axis=1).tolist()
    body = {
        "step": trainer.step,
        "initial": initial,
        "spread": values.std(axis=1).tolist(),
        "possible": possible,
        "optimism": list(map(possible.optimism, initial)),
    }
    write_atomic(folder / START, json.dumps(body, indent=2) + "\n")


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


def read_initial_values(folder: Path) -> str | None:
    """The contents of `start.json` in words; None if there is no such file, or if it is damaged."""
    try:
        body = read_json(folder / START)
        pairs = zip(body["initial"], body["spread"], strict=True)
        begun = " and ".join(f"{initial:.3g} (spread {spread:.2g})" for initial, spread in pairs)
        begun = f"The networks begin at {begun}. With the rewards so far,"
        low, high = body["possible"]
        if None in body["optimism"]:
            return f"{begun} every value is {low:.3g}."
        places = " and ".join(f"{optimism:.3g}" for optimism in body["optimism"])
        return f"{begun} values can lie between {low:.3g} and {high:.3g}: optimism {places}."
    except (*DAMAGE, TypeError, OverflowError):
        return None
