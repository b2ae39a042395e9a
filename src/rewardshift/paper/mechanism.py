"""The paper's offline argument without a constraint: only the initial value of Q differs.

BCQ and CQL keep a policy near its data by themselves. Plain DQN and TD3 do not, so with them only
an initial value below all others could keep a policy from actions that the data lacks. Does it?
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rewardshift.agents.dqn import DQN
from rewardshift.agents.networks import MLP
from rewardshift.agents.td3 import TD3
from rewardshift.lab import (
    Figure,
    Method,
    Panel,
    Preset,
    Style,
    Task,
    budgets,
    orderings,
    smoke_preset,
    task_panels,
)
from rewardshift.paper.behaviour import Behaviour
from rewardshift.shift import Shift, Terminal

GAMMA = 0.95
SMALL: dict[str, Any] = {"gamma": GAMMA, "tau": 0.05, "network": MLP((64, 64))}
_DQN = DQN(**SMALL)
_SCALED = replace(_DQN, network=MLP((64, 64), input_range=((-1.2, 0.6), (-0.07, 0.07))))
_TD3 = TD3(learning_rate=1e-3, batch_size=64, warm_up=0, **SMALL)
# The task, its environment and agent, the range of its rewards, and the shares of random actions
# that make its controller poor, middling and good.
SETTINGS = (
    ("CartPole", "CartPole-v1", _DQN, (0.0, 1.0), (1.0, 0.5, 0.1)),
    ("MountainCar", "MountainCar-v0", _SCALED, (-1.0, 0.0), (0.5, 0.3, 0.1)),
    ("Pendulum", "Pendulum-v1", _TD3, (-16.2736044, 0.0), (1.0, 0.5, 0.1)),
)


OPTIMISM = (-5.0, -2.0, -1.0, 0.0, 1.0, 2.0)
TREATMENTS: dict[str, Terminal] = {"": "zero", "-absorbing": "absorbing"}


def _shifts(reward_range: tuple[float, float], terminal: Terminal) -> dict[str, dict[str, Shift]]:
    """The shift of every method: that which gives Q its optimism at first."""
    low, high = reward_range
    biases = {_name(optimism): -(low + optimism * (high - low)) for optimism in OPTIMISM}
    return {name: {"shift": Shift(bias, terminal=terminal)} for name, bias in biases.items()}


def _name(optimism: float) -> str:
    return f"optimism{optimism:+g}"


TASKS = {
    f"{name}-{quality}{suffix}": Task(
        data=Behaviour(env, share), agent=agent, methods=_shifts(reward_range, terminal)
    )
    for name, env, agent, reward_range, shares in SETTINGS
    for quality, share in zip(("poor", "middling", "good"), shares, strict=True)
    for suffix, terminal in TREATMENTS.items()
    if terminal == "zero" or env != "Pendulum-v1"  # Pendulum never terminates
}
STYLES = (
    Style("#00441b", "-"),
    Style("#238b45", "-."),
    Style("#74c476", "--"),
    Style("#525252", ":"),
    Style("#2171b5", "--"),
    Style("#6a51a3", "-"),
)


SENTENCES = (
    ("optimism+0", "optimism+1", "A cautious start ends better than an optimistic one."),
    ("optimism-2", "optimism+0", "More caution than the lowest value ends better still."),
    ("optimism+1", "optimism+2", "More optimism than the highest value ends worse still."),
)


def lasting(lifetimes: int, tasks: Mapping[str, Task]) -> dict[str, int]:
    """The updates of each task in so many lifetimes of its agent's shift."""
    agents: dict[str, Any] = {name: task.agent for name, task in tasks.items()}
    return {name: round(lifetimes * agent.lifetime) for name, agent in agents.items()}


def titled(task: str) -> str:
    """The name of a task as a title."""
    return task.replace("-", ", ")


def _beside(panel: Panel) -> Panel:
    """The panel, in one plot with that of the other treatment of terminal states."""
    title = panel.title.removesuffix(", absorbing")
    treatment = "zero" if title == panel.title else "absorbing"
    unshifted = 0 if title.startswith("CartPole") else 1
    plot = f"{title} (no\N{NO-BREAK SPACE}shift:\N{NO-BREAK SPACE}{unshifted})"
    return replace(panel, plot=plot, line=f"terminal {treatment}")


OFFLINE_MECHANISM = Figure(
    name="offline-mechanism",
    title="Offline, without a constraint: does a cautious start keep a policy with its data?",
    scenario="S1 offline",
    tasks=TASKS,
    panels=tuple(map(_beside, task_panels(TASKS, title=titled))),
    form="constants",
    constants="optimism",
    methods=tuple(
        Method(_name(optimism), f"optimism {optimism:g}", style=style, constant=optimism)
        for optimism, style in zip(OPTIMISM, STYLES, strict=True)
    ),
    # With `zero` the shift of an optimism of 0 or 1 makes every reward of CartPole and MountainCar
    # 0, so there a comparison says nothing about the initial value.
    claims=orderings(
        [name for name in TASKS if f"{name}-absorbing" not in TASKS],
        SENTENCES,
        metric="final",
        source="ours",
        end=0.5,
    ),
    presets={
        "smoke": smoke_preset(
            budgets(lasting(1, TASKS), evaluations=2, evaluation_episodes=1, transitions=50), 400
        ),
        "quick": Preset(seeds=20, budget=budgets(lasting(10, TASKS), evaluations=20), seconds=5000),
        "paper": Preset(
            seeds=20,
            budget=budgets(lasting(50, TASKS), evaluations=20, evaluation_episodes=20),
            seconds=25_000,
        ),
    },
    takes_terminal=False,
    x_label="updates",
    seeds_per_unit=10,
)
