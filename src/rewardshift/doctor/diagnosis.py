"""A diagnosis: its numbers as a table, as JSON and as scalars; its sentences are in `rules`."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewardshift.doctor.groups import Belief, Ends, Members, Motion, Signal, Start, Untried
from rewardshift.doctor.rules import Finding, findings_of, sentences
from rewardshift.doctor.view import Normaliser
from rewardshift.shift import Shift

FORMAT = 1


@dataclass(frozen=True)
class Diagnosis:
    """The numbers of a diagnosis; `print` shows them as a table, followed by sentences.

    Args:
        gamma: The agent's discount.
        shift: The scale that the agent was trained on.
        normaliser: See `View`.
        signal: What the rewards can teach.
        belief: Estimates against returns.
        untried: Seen against unseen actions; None without a replay or data.
        ends: Values of terminal transitions; None if none was seen.
        start: Where a fresh network begins.
        members: Disagreement; None for a single critic.
        motion: Movement; None without an earlier Q function.
    """

    gamma: float
    shift: Shift
    normaliser: Normaliser
    signal: Signal
    belief: Belief | None
    untried: Untried | None
    ends: Ends | None
    start: Start
    members: Members | None
    motion: Motion | None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The illnesses that the rules name; none for a healthy agent."""
        return findings_of(self)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The findings in words, with what to do first and when a shift will not help."""
        return sentences(self)

    def scalars(self) -> dict[str, float]:
        """Every known number by `group/name`, for a log."""
        groups = ((name, getattr(self, name)) for name in KINDS)
        return {
            f"{name}/{field.name}": float(value)
            for name, group in groups
            if group is not None
            for field in dataclasses.fields(group)
            if isinstance(value := getattr(group, field.name), int | float)
        }

    def to_json(self) -> dict[str, Any]:
        """Everything as plain JSON; unknown numbers are null."""
        groups = {
            name: None if group is None else dataclasses.asdict(group)
            for name in KINDS
            for group in [getattr(self, name)]
        }
        return {
            "format": FORMAT,
            "gamma": self.gamma,
            "shift": dataclasses.asdict(self.shift),
            "normaliser": self.normaliser,
            **groups,
            "findings": [finding._asdict() for finding in self.findings],
            "sentences": list(self.sentences),
        }

    def table(self) -> str:
        """The numbers, one per line, under the question that they answer."""
        lines = []
        for question, group, rows in QUESTIONS:
            found = getattr(self, group)
            lines.append(question)
            if found is None:
                lines.append(f"  {UNKNOWN[group]}")
                continue
            known = [(words, getattr(found, name)) for name, words in rows.items()]
            lines += [f"  {words:<{WIDTH}}{_number(value)}" for words, value in known]
        return "\n".join(lines)

    def __str__(self) -> str:
        return "\n".join((self.table(), "", *self.sentences))


KINDS: dict[str, type[Any]] = {
    "signal": Signal,
    "belief": Belief,
    "untried": Untried,
    "ends": Ends,
    "start": Start,
    "members": Members,
    "motion": Motion,
}
WIDTH = 52
QUESTIONS: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    (
        "What can the rewards teach?",
        "signal",
        {
            "transitions": "transitions",
            "informative": "terminal, or with an uncommon reward",
            "low": "lowest possible value",
            "high": "highest possible value",
        },
    ),
    (
        "Does it believe too much? (on the scale that it was trained on)",
        "belief",
        {
            "source": "returns from",
            "estimate": "mean estimate",
            "followed": "mean return that followed",
            "overestimation": "estimate minus return",
            "spread": "spread of this difference over states",
            "share": "difference in units of the possible range",
            "beyond": "share of estimates beyond every possible return",
        },
    ),
    (
        "Does it look at what it has not tried?",
        "untried",
        {
            "seen": "value of actions in the data",
            "unseen": "value of others in the same states",
            "nearby": "value of actions nearby, if continuous",
            "policy": "value of the policy's actions",
            "advantage": "others minus data, in units of the range",
            "pull": "policy minus data, in units of the range",
        },
    ),
    (
        "Does it know where episodes end?",
        "ends",
        {
            "stored": "terminal transitions in the data",
            "lived": "terminal transitions in the episodes",
            "source": "values from",
            "excess": "terminal: value minus reward, 0 if learned",
            "ordinary": "others: value minus reward",
            "share": "terminal divided by others",
            "shrinking": "share of terminal that goes away in a lifetime",
        },
    ),
    (
        "Where did it begin, and what is left?",
        "start",
        {
            "initial": "value of a fresh network, on the primal scale",
            "spread": "spread of its values over states and actions",
            "optimism": "optimism (0 cautious, 1 optimistic everywhere)",
            "lifetime": "lifetime of an offset, in updates",
            "left": "share of the offset that should be left",
        },
    ),
    (
        "Do its members agree? (on the primal scale)",
        "members",
        {
            "count": "members",
            "seen": "disagreement about actions in the data",
            "unseen": "disagreement about random actions",
        },
    ),
    (
        "Is it moving?",
        "motion",
        {
            "per_1000": "change of values in 1,000 updates",
            "allowed": "what the target rule allows",
        },
    ),
)
UNKNOWN = {
    "belief": "unknown: it needs an environment, or data with the ends of episodes",
    "untried": "unknown: it needs a replay or data",
    "ends": "no terminal transition was seen",
    "members": "there is one critic, or its critics cannot be read one by one",
    "motion": "unknown: it needs an earlier Q function",
}


def numbers_known() -> tuple[str, ...]:
    """The names of all numbers, as `Diagnosis.scalars` has them."""
    return tuple(
        f"{group}/{field.name}"
        for group, kind in KINDS.items()
        for field in dataclasses.fields(kind)
        if field.name not in ("source", "points")
    )


def _number(value: Any) -> str:
    if value is None:
        return "unknown"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
