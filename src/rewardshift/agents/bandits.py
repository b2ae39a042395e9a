"""Selections that learn which member should lead, from the returns of the episodes they led.

Both forget, because the members learn too. Returns may have any scale: each rule divides them by
the spread that it has seen.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rewardshift.checks import Count, NonNegative, Positive, Rate, Share, check


class Forecast(NamedTuple):
    """The memory of `ExponentialWeights`.

    `last_return` is NaN until an episode has ended. `improvements` are those of the last episodes,
    newest first; NaN stands for none.
    """

    log_weights: Float[Array, " member"]
    last_return: Float[Array, ""]
    improvements: Float[Array, " window"]


@dataclass(frozen=True)
class ExponentialWeights:
    """Lets members lead more often whose episodes improved the return.

    Exponential weights as in Tactical Optimism and Pessimism (Moskovitz et al., 2021). The feedback
    is the return of an episode minus that of the episode before, whoever led it, standardised over
    the last `window` episodes. It is divided by the leader's probability. Every log-weight decays,
    also those of members that do not lead, and a random member leads now and then, so that none is
    given up for good.

    Args:
        rate: The change of the leader's log-weight by a feedback of one standard deviation.
        decay: The share of a log-weight that an episode leaves.
        window: The number of episodes that give the feedback its mean and its deviation.
        epsilon: The probability of a random member. It also bounds the division above.
    """

    rate: Positive = 0.1
    decay: Share = 0.9
    window: Count = 5
    epsilon: Rate = 0.1

    def __post_init__(self) -> None:
        check(self)

    def start(self, members: int) -> Forecast:
        """See `Learning`."""
        none = jnp.asarray(jnp.nan)
        return Forecast(jnp.zeros(members), none, jnp.full(self.window, none))

    def learn(self, memory: Forecast, leader: Int[Array, ""], total: Float[Array, ""]) -> Forecast:
        """See `Learning`."""
        improvements = _push(memory.improvements, total - memory.last_return)
        distance = improvements[0] - jnp.nanmean(improvements)
        feedback = jnp.nan_to_num(_in_units(distance, jnp.nanstd(improvements)))
        step = self.rate * feedback / self.chances(memory)[leader]
        log_weights = (self.decay * memory.log_weights).at[leader].add(step)
        return Forecast(log_weights, total, improvements)

    def chances(self, memory: Forecast) -> Float[Array, " member"]:
        """The probability of each member."""
        weighted = jax.nn.softmax(memory.log_weights)
        return (1 - self.epsilon) * weighted + self.epsilon / weighted.shape[0]

    def choose(self, memory: Forecast, draw: Float[Array, ""]) -> Int[Array, ""]:
        """See `Learning`."""
        return pick(self.chances(memory), draw)


class Recent(NamedTuple):
    """The memory of `SlidingUCB`: who led the last episodes, newest first, and their returns.

    No member led an episode that has not been yet.
    """

    led: Bool[Array, "window member"]
    returns: Float[Array, " window"]


@dataclass(frozen=True)
class SlidingUCB:
    """Lets the member with the highest upper confidence bound on its returns lead.

    Sliding-window UCB (Garivier and Moulines, 2011). The bound is a member's mean return over its
    episodes among the last ones, in standard deviations of all their returns, plus
    `width sqrt(log(all episodes) / its episodes)`. A member without such an episode comes first;
    the random number decides between equals.

    Args:
        width: The width of the confidence bound, in standard deviations of the returns.
        window: The number of the last episodes that count; at least one for each member.
    """

    width: NonNegative = 1.0
    window: Count = 50

    def __post_init__(self) -> None:
        check(self)

    def start(self, members: int) -> Recent:
        """See `Learning`."""
        window = max(self.window, members)  # a shorter one would forget who was tried
        return Recent(jnp.zeros((window, members), bool), jnp.zeros(window))

    def learn(self, memory: Recent, leader: Int[Array, ""], total: Float[Array, ""]) -> Recent:
        """See `Learning`."""
        members = jnp.arange(memory.led.shape[1])
        return Recent(_push(memory.led, members == leader), _push(memory.returns, total))

    def bounds(self, memory: Recent) -> Float[Array, " member"]:
        """The upper confidence bound of each member, above the newest return."""
        episodes, own = memory.led.sum(), memory.led.sum(axis=0)
        distance = memory.returns - memory.returns[0]  # exactly 0 where all returns are the same
        spread = distance.std(where=memory.led.any(axis=1))
        mean = _in_units(distance, spread) @ memory.led / own
        bound = mean + self.width * jnp.sqrt(jnp.log(episodes) / own)
        return jnp.where(own == 0, jnp.inf, bound)

    def choose(self, memory: Recent, draw: Float[Array, ""]) -> Int[Array, ""]:
        """See `Learning`."""
        bounds = self.bounds(memory)
        best = bounds == bounds.max()
        place = (draw * best.sum()).astype(jnp.int32)
        return jnp.argmax(jnp.cumsum(best) > place).astype(jnp.int32)


def pick(chances: Float[Array, " member"], draw: Float[Array, ""]) -> Int[Array, ""]:
    """The member that a random number in [0, 1) stands for.

    Args:
        chances: The probability of each member.
        draw: The random number.
    """
    return (draw >= jnp.cumsum(chances)[:-1]).sum().astype(jnp.int32)


def _push(values: Array, newest: Any) -> Array:
    """The values with a newest one in front, and without the last one."""
    return jnp.roll(values, 1, axis=0).at[0].set(newest)


def _in_units(values: Array, spread: Float[Array, ""]) -> Array:
    """The values in units of a spread; 0 if there is none."""
    return jnp.where(spread > 0, values / spread, 0.0)
