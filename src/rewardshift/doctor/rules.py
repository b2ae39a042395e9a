"""The rules that turn the numbers of a diagnosis into sentences.

`benchmarks/doctor.py` measures them on agents made ill on purpose and on healthy ones. The docs say
which thresholds were checked on other seeds and tasks than those of their table.
"""

from typing import Literal, NamedTuple

from rewardshift.auto import Auto
from rewardshift.doctor.numbers import Belief, Ends, Numbers

# Shares of the possible range of values.
OVERESTIMATION = 0.33
UNDERESTIMATION = 0.3
PULL = 0.2
TERMINAL_VALUE = 0.25
# The share of estimates beyond every possible return.
BEYOND = 0.1
# Terminal values divided by others: suspicious, too much in two looks, and more than an end.
SUSPICIOUS, THROUGH_ENDS, DIVERGED = 0.3, 0.6, 1.5
# The fewest terminal transitions whose values say something.
FEW_ENDS = 5
# Terminal values that shrink by more than this share in a lifetime are being learned.
SHRINKING = 0.08
# The fewest transitions for the rule about ends: one of them should be terminal.
ENOUGH = 1000
# Above this share of the initial offset, an agent had no time to learn rare transitions.
LEARNING = 0.37
# The fewest terminal ends at a limit, and the fewest as a share of all terminal ends.
AT_LIMIT, SHARE_AT_LIMIT = 5, 0.1
# Of the agent's own episodes, the share that goes on where those in the data are said to end.
WENT_ON = 0.5
# What the discount leaves of the nearest reward: below this, a network cannot see it.
VISIBLE = 1e-3
# Rewards and values that a network with usual learning rates does not reach.
LARGE_REWARD, LARGE_VALUE = 500.0, 5_000.0
# The share of rewards in the data that the environment does not pay.
FOREIGN = 0.5

Illness = Literal[
    "no update",
    "no signal",
    "other rewards",
    "large rewards",
    "time limits",
    "ends",
    "normaliser",
    "horizon",
    "untried actions",
    "overestimation",
    "underestimation",
]


class Finding(NamedTuple):
    """An illness: its name, the numbers that show it, and what to do first."""

    name: Illness
    sentence: str
    advice: str

    def __str__(self) -> str:
        return f"{self.name.capitalize()}: {self.sentence} {self.advice}"


def findings_of(numbers: Numbers) -> tuple[Finding, ...]:
    """The illnesses, the most telling first."""
    of_data = (
        _no_update,
        _no_signal,
        _other_rewards,
        _large_rewards,
        _time_limits,
        _ends,
        _normaliser,
        _horizon,
    )
    of_values = (_untried, _overestimation, _underestimation)
    rules = of_data if numbers.start.updates == 0 else of_data + of_values
    return tuple(found for rule in rules if (found := rule(numbers)) is not None)


def sentences(numbers: Numbers) -> tuple[str, ...]:
    """The findings in words, and what cannot be told."""
    found = findings_of(numbers)
    said = [str(one) for one in found] + _untold(numbers, {one.name for one in found})
    start = numbers.start
    if not said:
        said.append("Nothing stands out: a shift is unlikely to help values like these.")
    if numbers.shift.bias and start.left is not None and start.left > 0.01:
        said.append(
            f"About {start.left:.0%} of the shift's offset should be left in the values of visited"
            " states: judge what the shift does to the end of training after five lifetimes."
        )
    return tuple(said)


def _untold(numbers: Numbers, named: set[Illness]) -> list[str]:
    """What looks like an illness and may be none, and what is missing to tell."""
    if "no update" in named:
        return []
    said, belief, ends = [], numbers.belief, numbers.ends
    if belief is None:
        said.append(
            "It cannot tell whether the values are too high or too low: that needs an environment,"
            " or data with the ends of episodes."
        )
    elif (
        belief.source == "episodes"
        and _far(belief.share or 0.0)
        and not named & {"overestimation", "underestimation", "other rewards"}
    ):
        kind = "optimistic" if belief.overestimation > 0 else "cautious"
        said.append(
            f"It expects {belief.estimate:.4g} where {belief.followed:.4g} follows, which its"
            f" {kind} start explains: train longer before judging its values."
        )
    if ends is not None and "ends" not in named and _suspicious(numbers, ends):
        cannot = "One look cannot" if ends.before is None else "It cannot"
        said.append(
            f"It expects {ends.excess:.4g} after terminal transitions. {cannot} tell whether it is"
            " still learning that episodes end there: look twice, far apart, during the training."
        )
    return said


def _no_update(numbers: Numbers) -> Finding | None:
    if numbers.start.updates != 0:
        return None
    return Finding(
        "no update",
        "It has had 0 updates, so its values are those of its first networks.",
        "Train longer: past its warm-up (`learning_starts`), and then ask again.",
    )


def _no_signal(numbers: Numbers) -> Finding | None:
    signal, shift = numbers.signal, numbers.shift
    if signal.informative:
        return None
    pays = signal.highest_reward
    sentence = (
        f"All {signal.transitions} transitions pay {pays:g} and nothing else tells policies apart:"
        " it has not seen a goal yet."
    )
    if shift.bias < 0:
        lifetime = numbers.start.lifetime
        fades = "" if lifetime is None else f", and fades in {lifetime:.4g} updates"
        advice = (
            f"Its shift of {shift.bias:.4g} makes a Q of zero stand for {shift.initial_value:.4g}"
            f" already{fades}: explore longer, or in another way."
        )
    elif pays < 0 and not shift.bias:
        advice = (
            "A Q that starts at zero is optimistic already, so a negative shift adds little:"
            " explore longer, or in another way."
        )
    else:
        tried = Auto().shift([pays], [False], numbers.gamma)
        instead = f" instead of {shift.bias:.4g}" if shift.bias else ""
        advice = (
            f"Try the shift of 'auto' first{instead}: a bias of {tried.bias:.4g} with"
            f" terminal={tried.terminal!r}, times what a goal pays if that is not 1."
        )
    return Finding("no signal", sentence, advice)


def _other_rewards(numbers: Numbers) -> Finding | None:
    foreign = numbers.signal.foreign
    if foreign is None or foreign <= FOREIGN:
        return None
    return Finding(
        "other rewards",
        f"{foreign:.0%} of the rewards that it learned from are none that the environment pays, so"
        " its values cannot be compared with returns.",
        "If a bonus such as curiosity, a scale or a shift was added, give the doctor an environment"
        " that pays the same, or the `shift`; a bonus that changes with time has no such returns.",
    )


def _large_rewards(numbers: Numbers) -> Finding | None:
    belief, largest = numbers.belief, numbers.signal.largest
    followed = 0.0 if belief is None else abs(belief.followed)
    if largest < LARGE_REWARD and followed < LARGE_VALUE:
        return None
    scale = numbers.shift.scale / max(largest, 1.0)
    return Finding(
        "large rewards",
        f"Rewards are as large as {largest:.4g}"
        + (f" and returns about {belief.followed:.4g}" if belief is not None else "")
        + ", which a network reaches slowly and with large errors.",
        f"Scale them down to about 1 in size, as with Shift({numbers.shift.bias:g},"
        f" scale={scale:.2g}); a bias does not repair it.",
    )


def _time_limits(numbers: Numbers) -> Finding | None:
    ends = numbers.ends
    if ends is None or ends.at_limit is None or not ends.stored or ends.went_on is None:
        return None
    enough = max(AT_LIMIT, SHARE_AT_LIMIT * ends.stored)
    if ends.at_limit < enough or ends.at_limit <= (ends.below_limit or 0):
        return None
    if ends.went_on <= WENT_ON:
        return None
    return Finding(
        "time limits",
        f"{ends.at_limit} of {ends.stored} terminal transitions in the data come after just"
        f" {ends.limit} steps, and {ends.went_on:.0%} of its own episodes went on there: a time"
        " limit is stored as terminal.",
        "Return `truncated` there, not `terminated`, and bootstrap (Stable-Baselines3:"
        " handle_timeout_termination=True); a shift would not help.",
    )


def _ends(numbers: Numbers) -> Finding | None:
    ends = numbers.ends
    if ends is None:
        return None
    # Episodes that were all cut at the same length may be those of a policy that did not end yet.
    unknown = ends.stored == 0 and ends.lived and ends.cut != 0
    if unknown and numbers.signal.transitions > ENOUGH:
        sentence = (
            f"{ends.lived} transitions of its episodes are terminal and none in the data is, so it"
            " bootstraps through the ends of episodes."
        )
    elif _valued_like_others(numbers, ends):
        sentence = (
            f"It expects {ends.excess:.4g} after terminal transitions, as if the episode went on:"
            f" {ends.share:.0%} of what it expects after others, and {ends.before:.0%} before."
        )
    else:
        return None
    advice = "Check the terminal flags in its data and targets; a shift would not help."
    return Finding("ends", sentence, advice)


def _valued_like_others(numbers: Numbers, ends: Ends) -> bool:
    """Whether terminal values are those of ordinary transitions, in two looks.

    One look cannot tell values that were never learned from those that are not learned yet.
    """
    if ends.before is None or ends.share is None or not _suspicious(numbers, ends):
        return False
    learning = ends.shrinking is not None and ends.shrinking > SHRINKING
    return min(ends.before, ends.share) >= THROUGH_ENDS and not learning


def _suspicious(numbers: Numbers, ends: Ends) -> bool:
    """Whether terminal transitions that it had the time to learn are valued much like others."""
    if ends.source != "data" or ends.share is None or ends.far is None:
        return False  # ends of its last policy, which it may not have learned at all
    late = (numbers.start.left or 0.0) <= LEARNING and ends.transitions >= FEW_ENDS
    # Values that diverge can be larger still; then an end that is not known is not the cause.
    like_others = SUSPICIOUS <= ends.share <= DIVERGED
    return late and like_others and abs(ends.far) >= TERMINAL_VALUE


def _normaliser(numbers: Numbers) -> Finding | None:
    if numbers.normaliser != "outside" or not numbers.shift.bias:
        return None
    return Finding(
        "normaliser",
        "The rewards are rescaled outside of the shift: the agent learns from"
        f" {numbers.shift.scale:.4g} r {numbers.shift.bias:+.4g} now, and from something else"
        " when the normaliser's scale has moved.",
        "Turn off the normalisation of rewards, or set the scale of the shift yourself.",
    )


def _horizon(numbers: Numbers) -> Finding | None:
    distance, weight = numbers.signal.distance, numbers.signal.weight
    if distance is None or weight is None or weight >= VISIBLE:
        return None
    wanted = 1 - 1 / distance
    return Finding(
        "horizon",
        f"The nearest that anything better was to the beginning of an episode is {distance} steps,"
        f" and the discount of {numbers.gamma:g} leaves {weight:.1g} of it there.",
        f"Use a larger discount, {wanted:.4g} or more; a shift would not help.",
    )


def _untried(numbers: Numbers) -> Finding | None:
    untried, signal, shift = numbers.untried, numbers.signal, numbers.shift
    if untried is None or untried.pull is None or untried.pull <= PULL:
        return None
    advice = "Collect data with the policy"
    if signal.low < signal.high:
        scale, gamma = shift.scale, numbers.gamma
        bias = -(1 - gamma) * scale * signal.low  # that of `Cautious`
        if bias > max(0.0, shift.bias):
            instead = f" instead of {shift.bias:.4g}" if shift.bias else ""
            advice += f", or offline try a positive shift first, {bias:.4g}{instead}"
        elif shift.bias < 0:
            advice += (
                f"; offline, train without the shift of {shift.bias:.4g}, which draws it there"
            )
        elif shift.bias > 0:
            advice += f"; its shift of {shift.bias:.4g} is below every return already"
        else:
            advice += "; a zero Q is below every return already, so a positive shift adds little"
    return Finding(
        "untried actions",
        f"It values its own actions at {untried.policy:.4g} and those in the data at"
        f" {untried.seen:.4g}: {_of_range(untried.pull)} more.",
        f"{advice}.",
    )


def _overestimation(numbers: Numbers) -> Finding | None:
    belief, shift = numbers.belief, numbers.shift
    if belief is None or belief.share is None or belief.overestimation <= 0:
        return None
    far = belief.source == "episodes" and _far(_unexplained(numbers, belief))
    if not (far or (belief.beyond or 0.0) > BEYOND) or _other_rewards(numbers) is not None:
        return None
    advice = "Use a slower target network, twin critics or a lower learning rate."
    if shift.bias < 0:
        advice += f" Offline, train without the shift of {shift.bias:.4g}; online, none repairs it."
    elif shift.bias > 0:
        advice += f" Its positive shift of {shift.bias:.4g} does not repair it."
    else:
        advice += (
            " Online, a shift does not repair it; offline, a positive one is the first to try."
        )
    return Finding(
        "overestimation",
        f"It expects {belief.estimate:.4g} where {belief.followed:.4g} follows:"
        f" {_of_range(belief.share)} too much, and {belief.beyond or 0:.0%} of"
        " its estimates are beyond every possible return.",
        advice,
    )


def _underestimation(numbers: Numbers) -> Finding | None:
    belief = numbers.belief
    if belief is None or belief.source != "episodes" or belief.overestimation >= 0:
        return None
    if belief.share is None or not _far(_unexplained(numbers, belief)):
        return None
    if _other_rewards(numbers) is not None:
        return None
    advice = "Check that time limits are bootstrapped and that rewards are not clipped."
    if numbers.shift.bias > 0:
        advice += f" Its shift of {numbers.shift.bias:.4g} lowers what it begins with, no more."
    return Finding(
        "underestimation",
        f"It expects {belief.estimate:.4g} where {belief.followed:.4g} follows:"
        f" {_of_range(-belief.share)} too little.",
        advice,
    )


def _far(share: float) -> bool:
    """Whether estimates are this far from the returns, in units of the possible range."""
    return share > OVERESTIMATION or share < -UNDERESTIMATION


def _unexplained(numbers: Numbers, belief: Belief) -> float:
    """The overestimation without what the start alone can have left where there is data."""
    start, over, width = numbers.start, belief.overestimation, numbers.signal.width
    explained = start.kept * (start.begun(numbers.shift) - belief.followed)
    if over > 0:
        return max(0.0, over - max(0.0, explained)) / width
    return min(0.0, over - min(0.0, explained)) / width


def _of_range(share: float) -> str:
    """A share of the possible range in words; without digits that say nothing."""
    if share < 10:
        return f"{share:.0%} of the possible range"
    return f"{share:.2g} times the possible range"
