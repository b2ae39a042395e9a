"""Intrinsic rewards, each with a shift of its own, for the slot that DQN has for one."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from rewardshift.checks import Count, Finite, Positive, check
from rewardshift.learners import Learner
from rewardshift.networks import MLPParameters, apply_mlp, init_mlp

Evaluated = Literal["fresh", "stored"]


@runtime_checkable
class Intrinsic(Protocol):
    """What DQN asks of an intrinsic reward."""

    @property
    def shift(self) -> float:
        """The shift of the intrinsic reward."""
        ...

    @property
    def evaluated(self) -> Evaluated:
        """Whether a bonus is computed for the sampled batch, or kept from the collection."""
        ...

    def init(self, key: PRNGKeyArray, features: int) -> Any:
        """What it starts with."""
        ...

    def bonus(self, state: Any, observation: Float[Array, "*batch features"]) -> Array:
        """How new the observations are, from 0 to 1."""
        ...

    def observe(self, state: Any, observation: Float[Array, " features"]) -> Any:
        """Takes note of an observation that is acted in."""
        ...

    def update(self, state: Any, observation: Float[Array, "batch features"]) -> Any:
        """Learns from a sampled batch."""
        ...


class RNDState(NamedTuple):
    """A fixed random network, and one that learns to predict it."""

    fixed: MLPParameters
    predictor: Learner


@dataclass(frozen=True)
class RND:
    """Random Network Distillation: `min(||phi_1(s) - phi_2(s)||^2, 1) + shift`.

    Args:
        shift: The shift of the intrinsic reward. 0 is the original; the paper's "RND -1.0" has
            -1, which makes the bonus negative everywhere and so optimistic.
        width: The width of the hidden layers and of the output.
        learning_rate: Adam's learning rate for the predictor.
        evaluated: `"fresh"`: by the present predictor, on the sampled batch. `"stored"`: when
            the transition was collected, as the authors' code does.
        clear_gradients: Whether each update forgets the gradients before it. False adds them all
            up, as the authors' code does by mistake; their bonus hardly fades then.
    """

    shift: Finite = 0.0
    width: Count = 512
    learning_rate: Positive = 1e-4
    evaluated: Evaluated = "fresh"
    clear_gradients: bool = True

    def __post_init__(self) -> None:
        check(self)

    def init(self, key: PRNGKeyArray, features: int) -> RNDState:
        """Two networks of three layers."""
        fixed_key, predictor_key = jax.random.split(key)
        sizes = (features, self.width, self.width, self.width)
        predictor = Learner.start(init_mlp(predictor_key, sizes), self._rule())
        return RNDState(init_mlp(fixed_key, sizes), predictor)

    def bonus(self, state: RNDState, observation: Array) -> Array:
        """The squared error of the prediction, at most 1."""
        return jnp.minimum(self._error(state.predictor.parameters, state.fixed, observation), 1.0)

    def observe(self, state: RNDState, observation: Array) -> RNDState:
        """Nothing: the predictor learns from the batches."""
        return state

    def update(self, state: RNDState, observation: Array) -> RNDState:
        """One step of the predictor."""

        def loss(predictor: MLPParameters) -> Array:
            return self._error(predictor, state.fixed, observation).mean()

        gradient = jax.grad(loss)(state.predictor.parameters)
        return state._replace(predictor=state.predictor.step(gradient, self._rule()))

    def _rule(self) -> optax.GradientTransformation:
        adam = optax.adam(self.learning_rate)
        return adam if self.clear_gradients else optax.chain(optax.trace(decay=1.0), adam)

    def _error(self, predictor: MLPParameters, fixed: MLPParameters, observation: Array) -> Array:
        goal = jax.lax.stop_gradient(apply_mlp(fixed, observation))
        return ((apply_mlp(predictor, observation) - goal) ** 2).sum(axis=-1)


class CountState(NamedTuple):
    """How often each bucket was acted in, and what assigns observations to buckets."""

    counts: Array
    multipliers: Array


@dataclass(frozen=True)
class CountBonus:
    """A count bonus `1 / (N(s) + 1) + shift`, on observations rounded and hashed to buckets.

    Args:
        shift: The shift of the intrinsic reward.
        resolution: Observations that agree when divided by it and rounded down are the same.
        buckets: How many; two observations may share one by chance.
        evaluated: As for `RND`.
    """

    shift: Finite = 0.0
    resolution: Positive = 1.0
    buckets: Count = 2**16
    evaluated: Evaluated = "fresh"

    def __post_init__(self) -> None:
        check(self)

    def init(self, key: PRNGKeyArray, features: int) -> CountState:
        """No visits, and random odd multipliers for the hash."""
        odd = 2 * jax.random.randint(key, (features,), 0, 2**30) + 1
        return CountState(jnp.zeros(self.buckets, jnp.int32), odd.astype(jnp.uint32))

    def _bucket(self, state: CountState, observation: Array) -> Array:
        cells = jnp.floor(observation / self.resolution).astype(jnp.int32).astype(jnp.uint32)
        mixed = (cells * state.multipliers).sum(axis=-1, dtype=jnp.uint32)
        return (mixed ^ (mixed >> 15)) % self.buckets

    def bonus(self, state: CountState, observation: Array) -> Array:
        """1 where nobody has been, less with every visit."""
        return 1 / (state.counts[self._bucket(state, observation)] + 1)

    def observe(self, state: CountState, observation: Array) -> CountState:
        """Counts."""
        bucket = self._bucket(state, observation)
        return state._replace(counts=state.counts.at[bucket].add(1))

    def update(self, state: CountState, observation: Array) -> CountState:
        """Nothing: counting is done when acting."""
        return state
