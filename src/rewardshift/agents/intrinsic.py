"""Intrinsic rewards for DQN, each with its own shift.

Random Network Distillation is https://arxiv.org/abs/1810.12894. As in the code of the
reward-shifting paper, the error is the sum over the outputs, at most 1, and not normalised.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from rewardshift.agents.networks import MLP, Learner, MLPParameters
from rewardshift.checks import Count, Finite, Positive, Settings
from rewardshift.envs.tasks import TaskSpec

Evaluated = Literal["fresh", "stored"]


@runtime_checkable
class Intrinsic(Protocol):
    """The contract of an intrinsic reward."""

    @property
    def shift(self) -> float:
        """The shift of the intrinsic reward."""
        ...

    @property
    def evaluated(self) -> Evaluated:
        """Whether a bonus is computed with the sampled batch or when a transition is stored."""
        ...

    def init(self, key: PRNGKeyArray, features: int) -> Any:
        """The initial state."""
        ...

    def bonus(self, state: Any, observation: Float[Array, "*batch features"]) -> Array:
        """The novelty of the observations, from 0 to 1."""
        ...

    def observe(self, state: Any, observation: Float[Array, " features"]) -> Any:
        """The state after recording an observation that the agent acts on."""
        ...

    def update(self, state: Any, observation: Float[Array, "batch features"]) -> Any:
        """The state after learning from a sampled batch."""
        ...


class RNDState(NamedTuple):
    """A fixed random network, and one that learns to predict it."""

    fixed: MLPParameters
    predictor: Learner


@dataclass(frozen=True)
class RND(Settings):
    """Random Network Distillation: `min(||phi_1(s) - phi_2(s)||^2, 1) + shift`.

    Args:
        shift: The shift of the intrinsic reward. 0 is the original; the paper's "RND -1.0" uses
            -1, which makes the bonus negative everywhere and the agent optimistic.
        width: The width of the hidden layers and of the output.
        learning_rate: Adam's learning rate for the predictor.
        evaluated: When the bonus is computed. `"fresh"`: on the sampled batch, by the present
            predictor. `"stored"`: when the transition is collected, as in the authors' code.
        clear_gradients: Whether each update starts from a zero gradient. False accumulates all
            gradients, as the authors' code does by mistake; the bonus then hardly fades.
    """

    shift: Finite = 0.0
    width: Count = 512
    learning_rate: Positive = 1e-4
    evaluated: Evaluated = "fresh"
    clear_gradients: bool = True

    def init(self, key: PRNGKeyArray, features: int) -> RNDState:
        """Two networks of three layers."""
        spec = TaskSpec(features, "float32")
        fixed, predictor = (
            self._network.init(key, spec, 0, self.width, "random") for key in jax.random.split(key)
        )
        return RNDState(fixed, Learner.start(predictor, self._optimiser()))

    def bonus(self, state: RNDState, observation: Array) -> Array:
        """The squared error of the prediction, at most 1."""
        return jnp.minimum(self._error(state.predictor.parameters, state.fixed, observation), 1.0)

    def observe(self, state: RNDState, observation: Array) -> RNDState:
        """Returns the state unchanged: the predictor learns from batches."""
        return state

    def update(self, state: RNDState, observation: Array) -> RNDState:
        """One step of the predictor."""

        def loss(predictor: MLPParameters) -> Array:
            return self._error(predictor, state.fixed, observation).mean()

        gradient = jax.grad(loss)(state.predictor.parameters)
        return state._replace(predictor=state.predictor.step(gradient, self._optimiser()))

    @property
    def _network(self) -> MLP:
        return MLP((self.width, self.width))

    def _optimiser(self) -> optax.GradientTransformation:
        adam = optax.adam(self.learning_rate)
        return adam if self.clear_gradients else optax.chain(optax.trace(decay=1.0), adam)

    def _error(self, predictor: MLPParameters, fixed: MLPParameters, observation: Array) -> Array:
        goal = jax.lax.stop_gradient(self._network.apply(fixed, observation))
        return ((self._network.apply(predictor, observation) - goal) ** 2).sum(axis=-1)
