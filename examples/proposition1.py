"""How far Proposition 1 carries: mixing two shifted estimates against one shift in between.

Two estimates are trained with biases of +1 and -1 and mixed with beta = 1/2; a third is
trained with the bias that Proposition 1 says is the same, 0. All see the same experience,
in the same order, from the same initial values. What is printed is the largest difference
between the mix and the third, over all values and all of training, as a share of the
distance between the two initial values that the biases stand for.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rewardshift import Shift, equivalent_bias, optimistic_value

GAMMA, STATES, ACTIONS, WIDTH = 0.9, 8, 2, 32
STEPS, LEARNING_RATE = 10_000, 0.004
B_PLUS, B_MINUS, BETA = 1.0, -1.0, 0.5

rng = np.random.default_rng(0)
STATE, ACTION = rng.integers(STATES, size=STEPS), rng.integers(ACTIONS, size=STEPS)
NEXT_STATE = rng.integers(STATES, size=(STATES, ACTIONS))
REWARD = rng.normal(size=(STATES, ACTIONS))
FEATURES = rng.normal(size=(STATES, 4))

Parameters = Any
Values = Callable[[Parameters], jax.Array]


def optimal_values() -> jax.Array:
    """The primal optimum, as the fixed targets of Monte-Carlo estimation would have it."""
    q = np.zeros((STATES, ACTIONS))
    for _ in range(500):
        q = REWARD + GAMMA * q.max(axis=1)[NEXT_STATE]
    return jnp.asarray(q)


def learn(values: Values, initial: Parameters, bias: float, *, bootstrap: bool) -> jax.Array:
    """Primal values after every step of gradient descent on one state and action at a time."""
    shift = Shift(bias, gamma=GAMMA)
    fixed = shift.from_primal(optimal_values())

    def step(parameters: Parameters, index: Any) -> tuple[Parameters, jax.Array]:
        s, a = jnp.asarray(STATE)[index], jnp.asarray(ACTION)[index]
        following = values(parameters)[jnp.asarray(NEXT_STATE)[s, a]].max()
        target = shift.reward(jnp.asarray(REWARD)[s, a]) + GAMMA * following
        target = jax.lax.stop_gradient(target if bootstrap else fixed[s, a])
        slope = jax.grad(lambda p: (values(p)[s, a] - target) ** 2)(parameters)
        parameters = jax.tree.map(lambda p, g: p - LEARNING_RATE * g, parameters, slope)
        return parameters, shift.to_primal(values(parameters))

    return jax.lax.scan(step, initial, jnp.arange(STEPS))[1]


def gap(values: Values, initial: Parameters, *, bootstrap: bool) -> float:
    """The largest difference between the mix and its single equivalent, as a share."""
    lower = learn(values, initial, B_PLUS, bootstrap=bootstrap)
    upper = learn(values, initial, B_MINUS, bootstrap=bootstrap)
    single = learn(values, initial, equivalent_bias(B_PLUS, B_MINUS, BETA), bootstrap=bootstrap)
    difference = jnp.abs(optimistic_value(lower, upper, BETA) - single).max()
    return float(difference * (1 - GAMMA) / (B_PLUS - B_MINUS))


def table(parameters: Parameters) -> jax.Array:
    return parameters


def linear(parameters: Parameters) -> jax.Array:
    return jnp.asarray(FEATURES) @ parameters


def network(parameters: Parameters) -> jax.Array:
    first, second = parameters
    return jnp.tanh(jnp.asarray(FEATURES) @ first) @ second


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    start = jnp.asarray(rng.normal(size=(4, ACTIONS)))
    weights = (
        jnp.asarray(rng.normal(size=(4, WIDTH))),
        jnp.asarray(rng.normal(size=(WIDTH, ACTIONS)) / WIDTH),
    )
    for name, values, initial in (
        ("table", table, jnp.zeros((STATES, ACTIONS))),
        ("linear", linear, start),
        ("network", network, weights),
    ):
        for bootstrap in (False, True):
            share = gap(values, initial, bootstrap=bootstrap)
            targets = "bootstrapped" if bootstrap else "fixed"
            print(f"{name:8} {targets:13} {share:6.1%}")
