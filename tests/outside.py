"""Parts of somebody's own, made of public names alone."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp

from rewardshift import Agent, Shift


class TableState(NamedTuple):
    weights: jax.Array


@dataclass(frozen=True, kw_only=True)
class Linear(Agent):
    """Q-learning with linear values: the least that an agent can be."""

    shift: float = 0.0
    gamma: float = 0.9
    rate: float = 0.1
    batch_size: int = 8

    networks: ClassVar[tuple[str, ...]] = ("weights",)

    def init(self, key: Any, spec: Any) -> TableState:
        return TableState(jnp.zeros((spec.num_actions, spec.features)))

    def greedy(self, state: TableState, observation: Any) -> Any:
        return jnp.argmax(state.weights @ observation.astype(jnp.float32)).astype(jnp.int32)

    def exploration(self, step: int, steps: int) -> float:
        return 0.2

    def draws(self, spec: Any) -> int:
        return 2

    def act(self, state: TableState, observation: Any, draws: Any, explore: Any) -> Any:
        anyone = (draws[1] * state.weights.shape[0]).astype(jnp.int32)
        return jnp.where(draws[0] < explore, anyone, self.greedy(state, observation))

    def update(self, state: TableState, batch: Any, key: Any, turn: int) -> Any:
        shift = Shift(self.shift, gamma=self.gamma)
        following = (batch.next_observation @ state.weights.T).max(axis=1)
        going_on = jnp.where(batch.terminated, 0.0, following)
        target = shift.reward(batch.reward, batch.terminated) + self.gamma * going_on

        def loss(weights: Any) -> Any:
            values = (batch.observation * weights[batch.action]).sum(axis=1)
            return ((values - target) ** 2).mean()

        error, gradient = jax.value_and_grad(loss)(state.weights)
        return TableState(state.weights - self.rate * gradient), {"surprise": error}


@dataclass(frozen=True)
class Alternating:
    """A selection: the member whose turn it is by the number that is drawn, the last one twice."""

    def draw(self, progress: Any, draw: Any) -> Any:
        count = progress.shape[0]
        return jnp.minimum((draw * (count + 1)).astype(jnp.int32), count - 1)


class Seen(NamedTuple):
    total: jax.Array


@dataclass(frozen=True)
class Fading:
    """An intrinsic bonus that is the same everywhere and fades with every batch."""

    shift: float = 0.0
    speed: float = 0.01
    evaluated: ClassVar[Literal["fresh", "stored"]] = "fresh"

    def init(self, key: Any, features: int) -> Seen:
        return Seen(jnp.zeros(()))

    def bonus(self, state: Seen, observation: Any) -> Any:
        return jnp.exp(-self.speed * state.total) * jnp.ones(observation.shape[:-1])

    def observe(self, state: Seen, observation: Any) -> Seen:
        return state

    def update(self, state: Seen, observation: Any) -> Seen:
        return Seen(state.total + 1)


class Mean(NamedTuple):
    seen: Any
    mean: Any


@dataclass(frozen=True)
class Centred:
    """A rule for the shift: rewards minus their mean so far. It never stops moving."""

    terminal: ClassVar[Literal["absorbing"]] = "absorbing"

    def start(self) -> Mean:
        return Mean(0.0, 0.0)

    def observe(self, state: Mean, reward: Any, terminated: Any, gamma: float) -> Mean:
        seen = state.seen + 1
        return Mean(seen, state.mean + (reward - state.mean) / seen)

    def shift_at(self, state: Mean, gamma: float) -> Shift:
        return Shift(-state.mean, 1.0, gamma, self.terminal)

    def metrics(self, state: Mean) -> dict[str, Any]:
        return {"mean_reward": state.mean}


class Frequencies(NamedTuple):
    angles: jax.Array
    output: jax.Array


@dataclass(frozen=True)
class Fourier:
    """A network: learned weights of fixed random waves."""

    waves: int = 8

    def init(self, key: Any, spec: Any, others: int, outputs: int, initial: str) -> Frequencies:
        angles = jax.random.normal(key, (self.waves, spec.features + others))
        output = jax.random.normal(key, (outputs, self.waves)) / self.waves
        return Frequencies(angles, 0 * output if initial == "zero" else output)

    def apply(self, parameters: Frequencies, observation: Any, others: Any = None) -> Any:
        inputs = observation
        if others is not None:
            if others.ndim > inputs.ndim:  # several candidates for each observation
                shape = (*others.shape[:-1], inputs.shape[-1])
                inputs = jnp.broadcast_to(inputs[..., None, :], shape)
            inputs = jnp.concatenate([inputs, others], axis=-1)
        angles = jax.lax.stop_gradient(parameters.angles)
        return jnp.cos(inputs @ angles.T) @ parameters.output.T
