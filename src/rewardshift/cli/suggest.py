"""The command `suggest`. It needs neither tyro nor JAX, so it runs where the plug-in alone is."""

import sys
from argparse import ArgumentDefaultsHelpFormatter, ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rewardshift.auto import Cautious
from rewardshift.checks import Discount, checked
from rewardshift.errors import needs
from rewardshift.optimism import lifetime, value_bounds
from rewardshift.probe import SECONDS, STEPS
from rewardshift.shift import Shift
from rewardshift.suggestion import code, suggest_shift


class Target(NamedTuple):
    """The rule of an agent's target network, by its default settings.

    Args:
        tau: The share by which it moves to the learned one.
        every: The steps of training between two such moves.
    """

    tau: float
    every: int


# A test compares these with the agents' own defaults. Offline a step is an update.
TARGETS = {
    "dqn": Target(0.005, 1),
    "td3": Target(0.005, 2),
    "sac": Target(0.005, 1),
    "bcq": Target(0.005, 1),
    "cql": Target(0.005, 1),
    "sb3-dqn": Target(1.0, 10_000),
    "sb3-qrdqn": Target(1.0, 10_000),
    "sb3-ddpg": Target(0.005, 1),
    "sb3-td3": Target(0.005, 2),
    "sb3-sac": Target(0.005, 1),
    "sb3-tqc": Target(0.005, 1),
}


def suggest(arguments: Sequence[str] = ()) -> None:
    """Say which shift fits an environment, or a data set, before any training."""
    given = _parser().parse_args(arguments)
    gamma = checked("gamma", Discount, given.gamma)
    found = _for_environment(given, gamma) if given.data is None else _for_data(given.data, gamma)
    if not found.bias:
        return
    if given.agent is None:
        print("\nHow long it lasts depends on the agent: name yours with --agent.")
        return
    lasting, usual = lifetime(gamma, *TARGETS[given.agent]), TARGETS["dqn"]
    print(
        f"\nWith its default target network the shift fades over {lasting:,.0f} steps of training:"
        " then 1/e of it is left."
    )
    faster = lifetime(gamma, *usual)
    if lasting > 10 * faster:
        print(
            f"If you train for less, use a faster target network: tau={usual.tau:g} with"
            f" target_update_interval={usual.every} makes it {faster:,.0f}."
        )


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="rewardshift suggest",
        description="Say which shift fits an environment, or a data set, before any training.",
        formatter_class=ArgumentDefaultsHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--env", metavar="NAME", help="a registered environment, to explore in")
    what.add_argument("--data", metavar="SOURCE", help="a data set to learn from, as in `train`")
    add = parser.add_argument
    add("--gamma", type=float, default=0.99, metavar="FLOAT", help="the agent's discount")
    add("--agent", choices=TARGETS, help="the agent that is meant; tells how long a shift lasts")
    add("--steps", type=int, default=STEPS, metavar="INT", help="random steps to play")
    add("--seed", type=int, default=0, metavar="INT", help="the seed of the random play")
    add("--seconds", type=float, default=SECONDS, metavar="FLOAT", help="the longest time for it")
    return parser


def _for_environment(given: Namespace, gamma: float) -> Shift:
    """Prints the suggestion for an environment, and returns its shift."""
    found = suggest_shift(
        given.env,
        gamma,
        steps=given.steps,
        seed=given.seed,
        seconds=given.seconds,
        on_step=_bar(given.steps),
    )
    print(found)
    if found.shift.bias:
        print(f"  Gymnasium:          env = ShiftReward(env, {code(found.shift)})")
        print(f"  Stable-Baselines3:  venv = VecShiftReward(venv, {code(found.shift)})")
        print(f'  our agents:         DQN(shift="auto", gamma={gamma:g}), or --shift auto')
    else:
        print("  Stable-Baselines3:  doctor(model, env), of rewardshift.integrations.sb3_doctor")
        print("  our agents:         rewardshift doctor RUN")
    return found.shift


def _for_data(source: str, gamma: float) -> Shift:
    """Prints the suggestion for a data set, and returns its shift."""
    with needs("agents"):
        from rewardshift.data.loading import load_dataset  # noqa: PLC0415  an extra
    data = load_dataset(source)
    shift = Cautious().shift(data.reward, data.terminated, gamma)
    bounds = value_bounds(data.reward.astype(float), data.terminated, gamma)
    print(
        f"{data.reward.size:,} transitions of {source}: such rewards add up to values from"
        f" {bounds.low:.4g} to {bounds.high:.4g}."
    )
    print("On a data set `auto` starts Q at the lowest of them, or at 0 if that is lower. So no")
    print("untried action looks good.")
    if not shift.bias:
        print("\nSuggestion: no shift. A Q that starts at 0 is cautious already.")
        return shift
    print(f"\nSuggestion: {code(shift)}")
    print(f"  d3rlpy:      to_d3rlpy({code(shift)})")
    print(f"  Minari:      shift_minari(dataset, {code(shift)})")
    print(f'  our agents:  BCQ(shift="auto", gamma={gamma:g}), or --shift auto')
    return shift


def _bar(steps: int) -> Callable[[int], None] | None:
    """A line that counts the steps, if somebody sees it."""
    if not sys.stderr.isatty():
        return None

    def on_step(step: int) -> None:
        if step % 100 == 0 or step == steps:
            end = "\r" if step < steps else "\n"
            print(f"random play: {step:,} of {steps:,} steps", end=end, file=sys.stderr, flush=True)

    return on_step
