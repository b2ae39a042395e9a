"""The groups of numbers in a diagnosis, one for each question; what is unknown is None."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Signal:
    """What the rewards can teach.

    `low` and `high` bound the primal values that rewards like these add up to. `informative` is
    the number of transitions that terminate or pay another reward than the most common one:
    without any, all policies look alike. `width` is the width of the bounds on the scale that the
    agent was trained on, the unit of every share here; 0 if nothing is informative.
    """

    transitions: int
    lowest_reward: float
    highest_reward: float
    terminations: int
    informative: int
    low: float
    high: float
    width: float


@dataclass(frozen=True)
class Belief:
    """Estimates of the policy's actions minus the returns that followed, on the trained scale.

    `source` is "episodes" of the policy, or "data": there the returns are those of whoever
    collected it. `share` is the mean difference in units of the signal's width, `beyond` the share
    of estimates further out than a tenth of that width from every possible return. `points` holds
    the estimate and the return of some states.
    """

    source: str
    states: int
    estimate: float
    followed: float
    overestimation: float
    spread: float
    share: float | None
    beyond: float | None
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Untried:
    """Values of the actions in the data and of others in the same states, on the trained scale.

    `nearby` actions are seen ones with a little noise, for continuous actions only. `policy` is the
    value of the policy's own actions. `advantage` is `unseen - seen` and `pull` is `policy - seen`,
    both in units of the signal's width. For `pull` the unit is the width plus the distance of
    `seen` from the possible range.
    """

    states: int
    seen: float
    unseen: float | None
    nearby: float | None
    policy: float
    advantage: float | None
    pull: float | None


@dataclass(frozen=True)
class Ends:
    """The values of terminal transitions.

    `excess` is the mean of `Q(s, a) - r`, which should be 0, and `ordinary` the same for other
    transitions: the value of what follows them. `share` is the one divided by the other, about 1
    for an agent that bootstraps through the end, and `far` is `excess` in units of the signal's
    width. `shrinking` is the share of `excess` that goes away in a lifetime, at the rate since
    the earlier Q function. `source` says whose transitions these are: of the "data", where only
    settled ones count, or without any there, of "episodes", which the agent may never have learned.
    `transitions` counts the terminal ones among them; without one, the values are unknown. `stored`
    counts all terminal transitions in the data, `lived` those in the episodes.
    """

    source: str
    transitions: int
    stored: int | None
    lived: int | None
    excess: float | None
    shrinking: float | None
    ordinary: float | None
    share: float | None
    far: float | None


@dataclass(frozen=True)
class Start:
    """Where a fresh network begins, and what is left of that.

    `initial` is the mean value of a fresh network at the first states, on the primal scale, and
    `spread` the standard deviation of its values there, over states and actions.
    `optimism` is its place between the lowest and the highest possible value. `lifetime` is that of
    the offset in updates, and `left` the share that should be left after the updates so far.
    """

    initial: float | None
    spread: float | None
    optimism: float | None
    lifetime: float | None
    left: float | None


@dataclass(frozen=True)
class Members:
    """The standard deviation between critics or members, on the primal scale.

    `seen` is that for actions in the data, `unseen` that for random ones.
    """

    count: int
    seen: float
    unseen: float
    share: float | None


@dataclass(frozen=True)
class Motion:
    """The mean change of values in 1,000 updates, and what the target rule allows.

    A whole move of the target network passes rewards on by one step, so it moves a value by the
    largest reward at most. `allowed` is that times the moves in 1,000 updates.
    """

    per_1000: float
    allowed: float | None
    share: float | None
