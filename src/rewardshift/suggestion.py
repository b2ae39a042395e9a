"""The shift for an environment, from a few thousand random steps, and the reasons for it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rewardshift.auto import RULE, Auto
from rewardshift.checks import Count, Discount, Natural, Positive, checked
from rewardshift.envs.tasks import MakeEnv, env_name, plain_env
from rewardshift.optimism import value_bounds
from rewardshift.probe import SECONDS, STEPS, Probe, play
from rewardshift.shift import Shift


@dataclass(frozen=True)
class Suggestion:
    """A shift for an environment, with what random play has shown. Its text tells all of it.

    Args:
        env: The name of the environment.
        gamma: The discount of the agent that is meant.
        probe: The steps of random play.
    """

    env: str
    gamma: float
    probe: Probe

    @property
    def shift(self) -> Shift:
        """The shift that `"auto"` stands for; its bias is 0 if there is to be none."""
        return Auto().shift(self.probe.reward, self.probe.terminated, self.gamma)

    @property
    def optimism(self) -> float | None:
        """Where Q starts, in the range that such rewards add up to; None without a range."""
        bounds = value_bounds(self.probe.reward, self.probe.terminated, self.gamma)
        return bounds.optimism(self.shift.initial_value)

    def __str__(self) -> str:
        return "\n".join((*self._seen(), "", RULE, "", *self._here(), "", *self._chosen()))

    def _seen(self) -> tuple[str, ...]:
        probe = self.probe
        terminal, cut = probe.terminated.sum(), (probe.ended & ~probe.terminated).sum()
        return (
            f"{probe.reward.size:,} random steps in {self.env}: {terminal} ends in a terminal"
            f" state, {cut} at a time limit.",
            f"  steps that go on: {_rewards(probe.reward[~probe.terminated])}",
            f"  terminal steps:   {_rewards(probe.reward[probe.terminated])}",
        )

    @property
    def _first(self) -> int | None:
        """The index of the first positive reward."""
        positive = self.probe.reward > 0
        return int(positive.argmax()) if positive.any() else None

    @property
    def _often(self) -> bool:
        """Whether the first positive reward did not end its episode."""
        return self._first is not None and not self.probe.terminated[self._first]

    @property
    def _dense(self) -> bool:
        """Whether it is one of many: most steps that go on pay or cost something."""
        return self._often and bool((self.probe.reward[~self.probe.terminated] != 0).mean() > 0.5)

    def _here(self) -> Iterator[str]:
        """What kind of task this is, and what would make the answer wrong."""
        first, least = self._first, Auto().least
        if first is not None:
            paid, ended = self.probe.reward[first], "did not end" if self._often else "ended"
            yield (
                f"Here the first positive reward, {paid:.4g} at step {first + 1:,}, {ended} its"
                " episode."
            )
            yield from self._every_step() if self._often else self._goal(paid < least)
        elif self.shift.bias:
            yield f"Here nothing has paid yet, so the rule expects one goal that pays {least:g}."
            yield (
                "This guess is wrong if the goal pays far more or less: then multiply the bias by"
                " what it pays."
            )
            yield f"If the episode goes on there, give {self._half()} for a reward of r."
        else:
            yield "Here every step costs something."
            yield "This guess is wrong if a goal that random play misses pays far more than 0."

    def _goal(self, small: bool) -> Iterator[str]:
        """What would make the answer wrong where a reward ends the episode."""
        if small:
            yield (
                f"It counts as {Auto().least:g}, because a goal that is found late may pay less. If"
                " all your rewards are far below 1, give Auto(least=...)."
            )
        yield (
            "This guess is wrong if ends that pay more than 0 are failures, such as a fall: then"
            " say terminal='absorbing'."
        )

    def _every_step(self) -> Iterator[str]:
        """What would make the answer wrong where a step pays and the episode goes on."""
        going, last = (self.probe.reward[self.probe.terminated == end] for end in (False, True))
        if self._dense:
            yield "Most steps already pay something. If your agent learns, keep it as it is."
            yield "If you try a shift, compare it with none in a sweep."
        else:
            yield (
                "This guess is wrong if steps can pay far more: then give the largest, r, as"
                f" {self._half()}."
            )
        if last.size and 0 < last.max() <= going.max():
            yield (
                "Ends pay here like other steps: if they are failures, such as a fall, say"
                " terminal='absorbing'."
            )

    def _half(self) -> str:
        """The code for half of a reward r, as the rule treats a step that pays it."""
        return code(self.shift, f"{-self.shift.scale / 2:g} * r")

    def _chosen(self) -> tuple[str, ...]:
        shift, optimism = self.shift, self.optimism
        if not shift.bias:
            return (
                "Suggestion: no shift. If your agent does not learn, ask the doctor what is wrong"
                " with its values.",
            )
        told = ""
        if not self._often:
            told = f", {Auto().optimism:g} times a goal of {1 / shift.scale:.4g}"
        elif optimism is not None:
            told = f", an optimism of {optimism:.3g} (0: cautious, 1: optimistic)"
        return (
            f"Suggestion{', if your agent does not learn' if self._dense else ''}: {code(shift)}",
            f"  Q starts at {shift.initial_value:.4g} in your rewards{told}.",
        )


def suggest_shift(
    env: str | MakeEnv,
    gamma: float = 0.99,
    *,
    steps: int = STEPS,
    seed: int = 0,
    seconds: float = SECONDS,
    on_step: Callable[[int], None] | None = None,
) -> Suggestion:
    """A shift for an environment, before any training.

    It plays random actions in an environment of its own and looks at the rewards; see `Auto` for
    the rule.

    Args:
        env: A registered name, or a function that makes the environment.
        gamma: The discount of the agent that is meant.
        steps: The number of random steps.
        seed: The seed of the environment and of the actions.
        seconds: The time after which it decides by fewer steps.
        on_step: Called with the number of each step.

    >>> suggestion = suggest_shift("FrozenLake-v1", gamma=0.75)
    >>> suggestion.shift.bias, suggestion.shift.terminal
    (-1.25, 'goal')
    """
    checked("gamma", Discount, gamma)
    sizes = checked("steps", Count, steps), checked("seed", Natural, seed)
    checked("seconds", Positive, seconds)
    probe = play(plain_env(env), sizes[0], seed=sizes[1], seconds=seconds, on_step=on_step)
    return Suggestion(env_name(env), gamma, probe)


def code(shift: Shift, bias: str | None = None) -> str:
    """A shift as a line of Python, without numbers that are the usual ones.

    Args:
        shift: The shift.
        bias: Words in the place of its bias.
    """
    parts = [f"{shift.bias:.6g}" if bias is None else bias]
    if shift.scale != 1:
        parts.append(f"scale={shift.scale:.6g}")
    if shift.gamma is not None:
        parts.append(f"gamma={shift.gamma:g}")
    if shift.credits_ends:
        parts.append(f"terminal={shift.terminal!r}")
    return f"Shift({', '.join(parts)})"


def _rewards(reward: np.ndarray) -> str:
    """The rewards of some steps in words."""
    if not reward.size:
        return "none"
    if (reward == reward[0]).all():
        return f"all pay {reward[0]:.4g}"
    groups = [("more than 0", reward[reward > 0]), ("less than 0", reward[reward < 0])]
    parts = [
        f"{some.size:,} of {reward.size:,} pay {words}, from {some.min():.4g} to {some.max():.4g}"
        for words, some in groups
        if some.size
    ]
    return "; ".join(parts)
