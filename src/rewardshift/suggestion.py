"""The shift for an environment, from a few thousand random steps, and the reasons for it."""

from collections.abc import Callable
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
        return "\n".join((*self._seen(), "", RULE, "", self._here(), *self._chosen()))

    def _seen(self) -> tuple[str, ...]:
        probe = self.probe
        terminal, cut = probe.terminated.sum(), (probe.ended & ~probe.terminated).sum()
        return (
            f"{probe.reward.size:,} random steps in {self.env}: {terminal} ends in a terminal"
            f" state, {cut} at a time limit.",
            f"  steps that go on: {_rewards(probe.reward[~probe.terminated])}",
            f"  terminal steps:   {_rewards(probe.reward[probe.terminated])}",
        )

    def _here(self) -> str:
        """What kind of task this is, and what would make the answer wrong."""
        reward, ended = self.probe.reward, self.probe.terminated
        if (reward > 0).any():
            first = int((reward > 0).argmax())
            paid = f"the first positive reward, {reward[first]:.4g} at step {first + 1:,},"
            if ended[first]:
                return (
                    f"Here {paid} ended its episode.\nIt is wrong if ends that pay more than 0 are"
                    " failures, such as a fall: terminal='goal' does not credit them."
                )
            return (
                f"Here {paid} did not end its episode.\nIt is wrong if steps can pay far more than"
                " that: then give the largest, r, as Shift(-r / 2)."
            )
        if self.shift.bias:
            return (
                "Here nothing has paid yet, so the rule expects a goal that pays 1, once.\nIt is"
                " wrong if the goal pays far more or less: multiply the bias by what it pays. If"
                " the episode goes on there, give Shift(-r / 2) for a reward of r."
            )
        return (
            "Here every step costs something.\nIt is wrong if a goal that random play does not find"
            " pays far more than 0."
        )

    def _chosen(self) -> tuple[str, ...]:
        shift, place = self.shift, self.optimism
        if not shift.bias:
            return ("", "Suggestion: no shift.")
        told = "" if place is None else f", an optimism of {place:.3g} (0: cautious, 1: optimistic)"
        start = f"Q starts at {shift.initial_value:.4g} in your rewards{told}."
        return ("", f"Suggestion: {code(shift)}", f"  {start}")


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


def code(shift: Shift) -> str:
    """A shift as a line of Python, without numbers that are the usual ones."""
    parts = [f"{shift.bias:.6g}"]
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
