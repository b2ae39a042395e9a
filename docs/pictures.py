"""The interactive picture of how-it-works.md: one task, one network, a slider for the shift.

It shows what Figures 2 and 3 of the paper sketch, computed: the values of the actions of a single
state are learned from data in the middle, from shifted rewards, by networks that start near zero.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from rewardshift import MLP, Shift
from rewardshift.envs.tasks import TaskSpec

GAMMA = 0.9
BIASES = [round(0.05 * i, 2) for i in range(-4, 5)]
UPDATES = [0, 3, 6, 10, 15, 22, 32, 48, 75, 120, 200, 400]  # when the networks are looked at
ACTIONS = np.linspace(-1, 1, 61)
SEEN = np.linspace(-0.36, 0.3, 23)
BUMPS = np.linspace(-1.2, 1.2, 31)
NETWORK = MLP((64, 64))

Values = Callable[[Any, jax.Array], jax.Array]


def truth(action: np.ndarray) -> np.ndarray:
    """The primal values: the best action is on the right, where there are no data."""
    return 0.9 * np.sin(2.6 * action + 1.3) * (1 - action) / 2 + np.exp(
        -(((action - 0.7) / 0.25) ** 2)
    )


def local(weights: jax.Array, action: jax.Array) -> jax.Array:
    """Bumps side by side, much like a table: what is learned stays where it was learned."""
    return jnp.exp(-(((action[:, None] - BUMPS) / 0.07) ** 2)) @ weights


def plain(parameters: Any, action: jax.Array) -> jax.Array:
    """Sees an action as a number, and carries what it learns beyond the data."""
    return NETWORK.apply(parameters, 3 * action[:, None])[:, 0]


def learn(
    values: Values, parameters: Any, optimiser: optax.GradientTransformation, bias: jax.Array
) -> jax.Array:
    """What is thought of every action after each of `UPDATES`, on the shifted scale."""
    target = Shift(bias, gamma=GAMMA).from_primal(jnp.asarray(truth(SEEN)))

    def loss(parameters: Any) -> jax.Array:
        return jnp.mean((values(parameters, jnp.asarray(SEEN)) - target) ** 2)

    def step(carry: tuple[Any, Any], _: None) -> tuple[tuple, jax.Array]:
        parameters, state = carry
        changes, state = optimiser.update(jax.grad(loss)(parameters), state)
        shown = values(parameters, jnp.asarray(ACTIONS))
        return (optax.apply_updates(parameters, changes), state), shown

    _, shown = jax.lax.scan(step, (parameters, optimiser.init(parameters)), length=UPDATES[-1] + 1)
    return shown[np.array(UPDATES)]


def numbers() -> dict[str, object]:
    """All that the picture shows."""
    key = jax.random.key(0)
    first = NETWORK.init(key, TaskSpec(1, "float32"), 0, 1, "random")
    learners = {
        "local": (
            local,
            jax.random.uniform(key, (len(BUMPS),), minval=-0.1, maxval=0.1),
            optax.sgd(0.7),
        ),
        "plain": (plain, first, optax.adam(3e-3)),
    }
    values = {
        name: jax.jit(jax.vmap(partial(learn, *parts)))(jnp.asarray(BIASES))
        for name, parts in learners.items()
    }
    return {
        "gamma": GAMMA,
        "biases": BIASES,
        "updates": UPDATES,
        "actions": ACTIONS.round(3).tolist(),
        "seen": [SEEN[0], SEEN[-1]],
        "truth": truth(ACTIONS).round(3).tolist(),
        "values": {
            name: np.asarray(array, float).round(3).tolist() for name, array in values.items()
        },
    }


def picture() -> str:
    """The picture as HTML that needs nothing beside itself."""
    page = Path(__file__).with_suffix(".html").read_text()
    return page.replace("NUMBERS", json.dumps(numbers(), separators=(",", ":")))
