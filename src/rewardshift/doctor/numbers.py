"""The numbers of a diagnosis, in a group for each question; what is unknown is None.

The text in an annotation is the number's line in the table.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, get_type_hints

from rewardshift.doctor.agent_view import Normaliser
from rewardshift.shift import Shift

SLOWER = 3.0


@dataclass(frozen=True)
class Group:
    """A group of numbers: the question that they answer, and what is said if there are none."""

    question: ClassVar[str]
    unknown: ClassVar[str] = ""

    @classmethod
    def labels(cls) -> dict[str, str]:
        """The words for each number in the table, by field."""
        hints = get_type_hints(cls, include_extras=True).items()
        return {name: hint.__metadata__[0] for name, hint in hints if hasattr(hint, "__metadata__")}


@dataclass(frozen=True)
class Signal(Group):
    """What the rewards can teach.

    `low` and `high` bound the primal values that rewards like these add up to. `informative` is
    the number of transitions that terminate or pay another reward than the most common one:
    without any, all policies look alike. `distance` is the fewest steps from the beginning of an
    episode to something better than the common reward, and `weight` what the discount leaves of it
    there; None if there was no such episode, or if one cannot be told. `largest` is the size of the
    largest reward in the training, without the shift's bias. `foreign` is the share of rewards in
    the data that the environment does not pay; None if it pays too many kinds. `width` is the
    width of the bounds on the scale that the agent was trained on, the unit of every share here; 0
    if nothing is informative.
    """

    question = "What can the rewards teach?"

    transitions: Annotated[int, "transitions"]
    highest_reward: float
    informative: Annotated[int, "terminal, or with an uncommon reward"]
    low: Annotated[float, "lowest possible value"]
    high: Annotated[float, "highest possible value"]
    distance: Annotated[int | None, "fewest steps to something better"]
    weight: Annotated[float | None, "what the discount leaves of it at the start"]
    largest: Annotated[float, "largest reward in the training, by size"]
    foreign: Annotated[float | None, "share that the environment does not pay"]
    width: float


@dataclass(frozen=True)
class Belief(Group):
    """Estimates of the policy's actions minus the returns that followed, on the trained scale.

    `source` is "episodes" of the policy, or "data": there the returns are those of whoever
    collected it. `share` is the mean difference in units of the signal's width, `beyond` the share
    of estimates further out than a tenth of that width from every possible return, and from what
    the start should have left. `points` holds
    the estimate and the return of some states.
    """

    question = "Does it believe too much? (on the scale that it was trained on)"
    unknown = "unknown: it needs an environment, or data with the ends of episodes"

    source: Annotated[str, "returns from"]
    estimate: Annotated[float, "mean estimate"]
    followed: Annotated[float, "mean return that followed"]
    overestimation: Annotated[float, "estimate minus return"]
    spread: Annotated[float, "spread of this difference over states"]
    share: Annotated[float | None, "difference in units of the possible range"]
    beyond: Annotated[float | None, "share of estimates beyond every possible return"]
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Untried(Group):
    """Values of the actions in the data and of others in the same states, on the trained scale.

    `policy` is the value of the policy's own actions. `advantage` is `unseen - seen` and `pull` is
    `policy - seen`, both in units of the signal's width. For `pull` the unit is the width plus the
    distance of `seen` from the possible range.
    """

    question = "Does it look at what it has not tried?"
    unknown = "unknown: it needs a replay or data"

    seen: Annotated[float, "value of actions in the data"]
    unseen: Annotated[float | None, "value of others in the same states"]
    policy: Annotated[float, "value of the policy's actions"]
    advantage: Annotated[float | None, "others minus data, in units of the range"]
    pull: Annotated[float | None, "policy minus data, in units of the range"]


@dataclass(frozen=True)
class Ends(Group):
    """The values of terminal transitions.

    `stored` counts all terminal transitions in the data, `lived` those in the episodes. `source`
    says whose transitions are valued: of the "data", where only settled ones count, or without any
    there, of "episodes", which the agent may never have learned. `transitions` counts the terminal
    ones among them; without one, the values are unknown. `excess` is the mean of `Q(s, a) - r`,
    which should be 0, and `ordinary` the same for other transitions: the value of what follows
    them. `share` is the one divided by the other, about 1 for an agent that bootstraps through the
    end, `before` the same by the earlier Q function, and `far` is `excess` in units of the signal's
    width. `shrinking` is the share of `excess` that goes away in a lifetime, at the rate since the
    earlier Q function.

    `limit` is the length of the longest episode in the data that ended in a terminal state,
    `at_limit` the number of such episodes with just this length, `below_limit` the number of those
    up to five steps shorter, and `went_on` the share of its own episodes of that length that did
    not terminate there. `cut` counts the episodes in the data that ended otherwise, earlier than
    the longest one. They are None where the data do not say where episodes end.
    """

    question = "Does it know where episodes end?"
    unknown = "no terminal transition was seen"

    stored: Annotated[int | None, "terminal transitions in the data"]
    lived: Annotated[int | None, "terminal transitions in the episodes"]
    source: Annotated[str, "values from"]
    transitions: int
    excess: Annotated[float | None, "terminal: value minus reward, 0 if learned"]
    ordinary: Annotated[float | None, "others: value minus reward"]
    share: Annotated[float | None, "terminal divided by others"]
    before: Annotated[float | None, "the same, some updates ago"]
    far: float | None
    shrinking: Annotated[float | None, "share of terminal that goes away in a lifetime"]
    limit: Annotated[int | None, "longest episode with a terminal end, in the data"]
    at_limit: Annotated[int | None, "terminal ends after just so many steps"]
    below_limit: int | None
    went_on: Annotated[float | None, "share of its own episodes that went on there"]
    cut: int | None


@dataclass(frozen=True)
class InitialValues(Group):
    """Where a fresh network begins, and what is left of that.

    `initial` is the mean value of a fresh network at the first states, on the primal scale, and
    `spread` the standard deviation of its values there, over states and actions.
    `optimism` is its place between the lowest and the highest possible value. `lifetime` is that of
    the offset in updates, and `left` the share that should be left after the `updates` so far.
    """

    question = "Where did it begin, and what is left?"

    initial: Annotated[float | None, "value of a fresh network, on the primal scale"]
    spread: Annotated[float | None, "spread of its values over states and actions"]
    optimism: Annotated[float | None, "optimism (0 cautious, 1 optimistic everywhere)"]
    updates: Annotated[int | None, "updates so far"]
    lifetime: Annotated[float | None, "lifetime of an offset, in updates"]
    left: Annotated[float | None, "share of the offset that should be left"]

    def begun(self, shift: Shift) -> float:
        """The value where it began, on the trained scale; about 0 without a fresh network."""
        return 0.0 if self.initial is None else float(shift.from_primal(self.initial))

    @property
    def kept(self) -> float:
        """The largest share of the start that can be left; 0 if its lifetime is unknown.

        A network forgets its start more slowly than a table, by this factor in our trials.
        """
        return min(1.0, SLOWER * (self.left or 0.0))


@dataclass(frozen=True)
class Numbers:
    """All numbers of a diagnosis; `Diagnosis` explains the fields."""

    gamma: float
    shift: Shift
    normaliser: Normaliser
    signal: Signal
    belief: Belief | None
    untried: Untried | None
    ends: Ends | None
    start: InitialValues


# The group in each field, in the order of the table.
QUESTIONS: dict[str, type[Group]] = {
    "signal": Signal,
    "belief": Belief,
    "untried": Untried,
    "ends": Ends,
    "start": InitialValues,
}
