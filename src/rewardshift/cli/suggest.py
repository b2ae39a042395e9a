"""The command `suggest`."""

import math
from typing import Annotated

import tyro

from rewardshift.checks import Count, checked
from rewardshift.errors import InputError
from rewardshift.optimism import Goal, lifetime, suggest_shift
from rewardshift.shift import Shift


def suggest(
    *,
    goal: Goal,
    rewards: Annotated[tuple[float, float] | None, tyro.conf.arg(metavar="LOW HIGH")] = None,
    values: Annotated[tuple[float, float] | None, tyro.conf.arg(metavar="LOW HIGH")] = None,
    gamma: float = 0.99,
    scale: float = 1.0,
    bias: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = None,
    tau: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = None,
    every: int = 1,
    steps: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
) -> None:
    """Choose a constant from the range of the rewards or of the values.

    Args:
        goal: "explore" makes Q optimistic everywhere, "exploit" cautious everywhere.
        rewards: The lowest and the highest reward of a step, for episodes that never
            end. If the reward is sparse, give the values instead.
        values: The lowest and the highest discounted return of an episode.
        gamma: The discount.
        scale: The factor k on the rewards, if you use one.
        bias: Your own constant, to see its optimism.
        tau: The share by which the agent's target network moves towards the learned one; 1 for an
            agent that copies it. With it, the command says how long the shift lasts.
        every: Updates between two moves, or copies, of the target network.
        steps: The length of the training, which is then printed in lifetimes of the shift.
    """
    if tau is None and (every != 1 or steps is not None):
        raise InputError("--every and --steps are about a lifetime, which needs --tau")
    if steps is not None:
        checked("steps", Count, steps)
    if (rewards is None) == (values is None):
        raise InputError("give either --rewards LOW HIGH or --values LOW HIGH")
    try:
        if rewards is not None:
            unshifted = Shift(0.0, gamma=gamma)
            values = (rewards[0] / (1 - unshifted.gamma), rewards[1] / (1 - unshifted.gamma))
        assert values is not None
        low, high = values
        suggestion = suggest_shift(goal, low, high, gamma=gamma, scale=scale)
        own = None if bias is None else Shift(bias, scale, gamma)
        lasting = None if tau is None else lifetime(gamma, tau, every)
    except ValueError as error:
        raise InputError(str(error)) from error
    needed = "b <= -(1 - gamma) k V_high" if goal == "explore" else "b >= -(1 - gamma) k V_low"
    print(f"Values lie between V_low = {low:.6g} and V_high = {high:.6g}.")
    print("A Q that starts at zero stands for -b / ((1 - gamma) k) on the primal scale, so")
    print(f"{'optimism' if goal == 'explore' else 'caution'} everywhere needs {needed}.")
    print(f"suggested bias: {suggestion.bias:.6g}")
    for name, shift in (("suggested", suggestion), ("yours", own)):
        if shift is not None:
            print(
                f"{name}: b = {shift.bias:.6g} starts at {shift.initial_value:.6g},"
                f" optimism {shift.optimism(low, high):.3g}"
                " (0: fully cautious, 1: fully optimistic)"
            )
    print("Exact for tasks that never terminate, or with terminal='absorbing'.")
    if lasting is None:
        return
    print(f"A shift lasts {lasting:.6g} updates where there is data: 1/e of it is left after them.")
    if steps is not None:
        count = steps / lasting
        print(
            f"{steps} steps are {count:.3g} lifetimes; {100 * math.exp(-count):.3g}% is left then."
        )
