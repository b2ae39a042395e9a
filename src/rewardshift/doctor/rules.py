"""The rules that turn the numbers of a diagnosis into sentences.

`benchmarks/doctor.py` measures them on agents made ill on purpose and on healthy ones. The docs say
which thresholds were checked on other seeds and tasks than those of their table.
"""

from typing import TYPE_CHECKING, Literal, NamedTuple

from rewardshift.doctor.numbers import Belief, Ends
from rewardshift.optimism import suggest_shift

if TYPE_CHECKING:
    from rewardshift.doctor.diagnosis import Diagnosis

# Shares of the possible range of values.
OVERESTIMATION = 0.2
UNDERESTIMATION = 0.3
PULL = 0.2
TERMINAL_VALUE = 0.25
# The share of estimates beyond every possible return, and terminal values divided by others.
BEYOND = 0.1
THROUGH_ENDS = 0.3
# Terminal values that shrink by more than this share in a lifetime are being learned.
SHRINKING = 0.08
# The fewest transitions for the rule about ends: one of them should be terminal.
ENOUGH = 1000
# Above this share of the initial offset, an agent had no time to learn rare transitions.
LEARNING = 0.37

Illness = Literal[
    "no signal", "overestimation", "underestimation", "untried actions", "ends", "normaliser"
]
PAGES: dict[Illness, str] = {
    "no signal": "should-i-shift.md",
    "overestimation": "doctor.md#overestimation",
    "underestimation": "doctor.md#underestimation",
    "untried actions": "doctor.md#untried-actions",
    "ends": "pitfalls.md#termination",
    "normaliser": "pitfalls.md#normalisers",
}


class Finding(NamedTuple):
    """An illness: its name, the numbers that show it, what to do first, and a page of the docs."""

    name: Illness
    sentence: str
    advice: str
    page: str


def findings_of(diagnosis: "Diagnosis") -> tuple[Finding, ...]:
    """The illnesses, the most telling first."""
    rules = (_no_signal, _ends, _normaliser, _untried, _overestimation, _underestimation)
    return tuple(found for rule in rules if (found := rule(diagnosis)) is not None)


def sentences(diagnosis: "Diagnosis") -> tuple[str, ...]:
    """The findings in words."""
    found = findings_of(diagnosis)
    said = [f"{one.sentence} {one.advice} See {one.page}." for one in found]
    start, belief = diagnosis.start, diagnosis.belief
    named = {one.name for one in found} & {"overestimation", "underestimation"}
    if belief is not None and not named and _far(belief.share or 0.0):
        kind = "optimistic" if belief.overestimation > 0 else "cautious"
        said.append(
            f"It expects {belief.estimate:.4g} where {belief.followed:.4g} follows, which its"
            f" {kind} start explains: train longer before judging its values."
        )
    if not said:
        said.append("Nothing stands out: a shift is unlikely to help values like these.")
    if diagnosis.shift.bias and start.left is not None and start.left > 0.01:
        said.append(
            f"About {start.left:.0%} of the shift's offset should be left in the values of visited"
            " states: judge what the shift does to the end of training after five lifetimes."
        )
    return tuple(said)


def _finding(name: Illness, sentence: str, advice: str) -> Finding:
    return Finding(name, sentence, advice, PAGES[name])


def _no_signal(diagnosis: "Diagnosis") -> Finding | None:
    signal = diagnosis.signal
    if signal.informative:
        return None
    pays = signal.highest_reward
    sentence = (
        f"All {signal.transitions} transitions pay {pays:g} and nothing else tells policies apart:"
        " it has not seen a goal yet."
    )
    if pays < 0:
        advice = (
            "A Q that starts at zero is optimistic already, so a negative shift adds little:"
            " explore longer, or in another way."
        )
    else:
        bias = suggest_shift("explore", 0.0, 1.0, gamma=diagnosis.gamma).bias
        advice = (
            f"Try a negative shift first: {bias:.4g} times the return of a success"
            " (rewardshift suggest --goal explore)."
        )
    return _finding("no signal", sentence, advice)


def _overestimation(diagnosis: "Diagnosis") -> Finding | None:
    belief = diagnosis.belief
    if belief is None or belief.share is None or belief.overestimation <= 0:
        return None
    far = belief.source == "episodes" and _far(_unexplained(diagnosis, belief))
    if not (far or (belief.beyond or 0.0) > BEYOND):
        return None
    return _finding(
        "overestimation",
        f"It expects {belief.estimate:.4g} where {belief.followed:.4g} follows:"
        f" {belief.share:.0%} of the possible range too much, and {belief.beyond or 0:.0%} of"
        " its estimates are beyond every possible return.",
        "Use a slower target network, twin critics or a lower learning rate. Online, a shift does"
        " not repair it; offline, a positive one is the first to try.",
    )


def _underestimation(diagnosis: "Diagnosis") -> Finding | None:
    belief = diagnosis.belief
    if belief is None or belief.source != "episodes" or belief.overestimation >= 0:
        return None
    if belief.share is None or not _far(_unexplained(diagnosis, belief)):
        return None
    return _finding(
        "underestimation",
        f"It expects {belief.estimate:.4g} where {belief.followed:.4g} follows.",
        "Check that time limits are bootstrapped and that rewards are not clipped.",
    )


def _far(share: float) -> bool:
    """Whether estimates are this far from the returns, in units of the possible range."""
    return share > OVERESTIMATION or share < -UNDERESTIMATION


def _unexplained(diagnosis: "Diagnosis", belief: Belief) -> float:
    """The overestimation without what the start alone would leave where there is data."""
    start, over, width = diagnosis.start, belief.overestimation, diagnosis.signal.width
    explained = 0.0
    if start.initial is not None and start.left is not None:
        begun = float(diagnosis.shift.from_primal(start.initial))
        explained = start.left * (begun - belief.followed)
    if over > 0:
        return max(0.0, over - max(0.0, explained)) / width
    return min(0.0, over - min(0.0, explained)) / width


def _untried(diagnosis: "Diagnosis") -> Finding | None:
    untried, signal = diagnosis.untried, diagnosis.signal
    if untried is None or untried.pull is None or untried.pull <= PULL:
        return None
    advice = "Collect data with the policy"
    if signal.low < signal.high:
        bias = suggest_shift("exploit", signal.low, signal.high, gamma=diagnosis.gamma).bias
        if bias > 0:
            advice += f", or offline try a positive shift first, {bias:.4g}"
        else:
            advice += "; a zero Q is below every return already, so a positive shift adds little"
    return _finding(
        "untried actions",
        f"It values its own actions at {untried.policy:.4g} and those in the data at"
        f" {untried.seen:.4g}: {untried.pull:.0%} of the possible range more.",
        f"{advice}.",
    )


def _ends(diagnosis: "Diagnosis") -> Finding | None:
    ends = diagnosis.ends
    if ends is None:
        return None
    advice = "Check the terminal flags in its data and targets; a shift would not help."
    if ends.stored == 0 and ends.lived and diagnosis.signal.transitions > ENOUGH:
        return _finding(
            "ends",
            f"{ends.lived} transitions of its episodes are terminal and none in the data is, so it"
            " bootstraps through the ends of episodes.",
            advice,
        )
    return _valued_ends(diagnosis, advice)


def _valued_ends(diagnosis: "Diagnosis", advice: str) -> Finding | None:
    """Ends whose values are those of ordinary states, of an agent that had the time to learn."""
    ends, belief, left = diagnosis.ends, diagnosis.belief, diagnosis.start.left
    if ends is None or ends.share is None or ends.far is None or (left or 0.0) > LEARNING:
        return None
    if ends.share < THROUGH_ENDS or abs(ends.far) < TERMINAL_VALUE or _learning_ends(ends):
        return None
    if belief is not None and (belief.beyond or 0.0) > BEYOND:
        return None  # without ends, values would still be possible: something else is wrong
    return _finding(
        "ends",
        f"It expects {ends.excess:.4g} after terminal transitions, as if the episode went on:"
        f" {ends.share:.0%} of what it expects after others.",
        advice,
    )


def _learning_ends(ends: Ends) -> bool:
    """Whether a healthy agent can have such values, because it is still learning where ends are."""
    if ends.source != "data":
        return True  # ends of its last policy, which it may not have learned at all
    return ends.shrinking is not None and ends.shrinking > SHRINKING


def _normaliser(diagnosis: "Diagnosis") -> Finding | None:
    if diagnosis.normaliser != "outside" or not diagnosis.shift.bias:
        return None
    return _finding(
        "normaliser",
        "The rewards are rescaled outside of the shift: the agent learns from"
        f" {diagnosis.shift.scale:.4g} r {diagnosis.shift.bias:+.4g} now, and from something else"
        " when the normaliser's scale has moved.",
        "Turn off the normalisation of rewards, or set the scale of the shift yourself.",
    )
