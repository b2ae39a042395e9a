"""Gradient descent: parameters together with their optimiser's state."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

# A megabyte, which fits into a core's cache beside its gradient.
CACHED = 2**18


class Learner(NamedTuple):
    """Parameters that an optimiser changes, and the state of the optimiser."""

    parameters: Any
    optimiser: optax.OptState

    @classmethod
    def start(cls, parameters: Any, method: optax.GradientTransformation) -> "Learner":
        """A learner before its first step.

        Args:
            parameters: The parameters to learn.
            method: The optimiser, usually Adam.
        """
        return cls(parameters, method.init(parameters))

    def step(self, gradient: Any, method: optax.GradientTransformation) -> "Learner":
        """The learner after a step, given the gradient of a loss."""
        updates, optimiser = method.update(gradient, self.optimiser)
        return Learner(optax.apply_updates(self.parameters, updates), optimiser)


def mean_and_grad(
    loss: Callable[[Any, Any], tuple[Array, Any]], parameters: Any, batch: Any, *, size: int
) -> tuple[tuple[Array, Any], Any]:
    """`jax.value_and_grad(loss, has_aux=True)`, for losses and aux that are means over a batch.

    A large batch is processed in equal parts, one after the other: a layer's outputs are then
    still in the cache when the gradient needs them.

    Args:
        loss: Takes the parameters and a batch, or a part of one.
        parameters: The parameters to differentiate by.
        batch: Arrays whose first axis is the batch.
        size: The largest number of outputs of a layer, for the whole batch.
    """
    wanted = 2 ** max(0, math.ceil(math.log2(size / CACHED)))
    parts = math.gcd(len(jax.tree.leaves(batch)[0]), wanted)
    split = jax.tree.map(lambda leaf: leaf.reshape(parts, -1, *leaf.shape[1:]), batch)
    of_part = partial(jax.value_and_grad(loss, has_aux=True), parameters)

    def add(total: Any, part: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, of_part(part)), None

    shapes = jax.eval_shape(of_part, jax.tree.map(lambda leaf: leaf[0], split))
    nothing = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)
    total, _ = jax.lax.scan(add, nothing, split)
    return jax.tree.map(lambda leaf: leaf / parts, total)
