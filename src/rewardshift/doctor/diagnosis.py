"""A diagnosis: its numbers as a table, as JSON and as scalars; its sentences are in `rules`."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from rewardshift.doctor.numbers import QUESTIONS, Numbers
from rewardshift.doctor.rules import Finding, findings_of, sentences

FORMAT = 2
WIDTH = 52  # of a line's words in the table


@dataclass(frozen=True)
class Diagnosis(Numbers):
    """The numbers of a diagnosis; `print` shows them as a table, followed by sentences.

    Args:
        gamma: The agent's discount.
        shift: The scale that the agent was trained on.
        normaliser: See `AgentView`.
        signal: What the rewards can teach.
        belief: Estimates against returns.
        untried: Seen against unseen actions; None without a replay or data.
        ends: Values of terminal transitions; None if none was seen.
        start: Where a fresh network begins.
    """

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
        return {
            f"{name}/{field.name}": float(value)
            for name, kind in QUESTIONS.items()
            if (numbers := getattr(self, name)) is not None
            for field in dataclasses.fields(kind)
            if isinstance(value := getattr(numbers, field.name), int | float)
        }

    def to_json(self) -> dict[str, Any]:
        """Everything as plain JSON; unknown numbers are null."""
        return {
            "format": FORMAT,
            **dataclasses.asdict(self),
            "findings": [finding._asdict() for finding in self.findings],
            "sentences": list(self.sentences),
        }

    def table(self) -> str:
        """The numbers, one per line, under the question that they answer."""
        lines = []
        for name, kind in QUESTIONS.items():
            numbers = getattr(self, name)
            lines.append(kind.question)
            if numbers is None:
                lines.append(f"  {kind.unknown}")
                continue
            known = ((words, getattr(numbers, field)) for field, words in kind.labels().items())
            lines += [f"  {words:<{WIDTH}}{_shown(value)}" for words, value in known]
        return "\n".join(lines)

    def __str__(self) -> str:
        return "\n".join((self.table(), "", *self.sentences))


def scalar_names() -> tuple[str, ...]:
    """The names of all numbers, as `Diagnosis.scalars` has them."""
    return tuple(
        f"{name}/{field.name}"
        for name, kind in QUESTIONS.items()
        for field in dataclasses.fields(kind)
        if field.name not in ("source", "points")
    )


def _shown(value: Any) -> str:
    if value is None:
        return "unknown"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
