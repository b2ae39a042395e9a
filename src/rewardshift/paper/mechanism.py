"""The paper's offline argument without a constraint: only the initial value of Q differs.

BCQ and CQL keep a policy near its data by themselves. Plain DQN and TD3 do not, so with them only
an initial value below all others could keep a policy from actions that the data lacks. Does it?
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from rewardshift.agents.dqn import DQN
from rewardshift.agents.networks import MLP
from rewardshift.agents.td3 import TD3
from rewardshift.lab.curves import curves_of, return_panels
from rewardshift.lab.figure import (
    Claim,
    Curve,
    Figure,
    Method,
    Panel,
    Preset,
    Style,
    Unit,
)
from rewardshift.paper.behaviour import Behaviour
from rewardshift.shift import Shift, Terminal
from rewardshift.training.offline import OfflineBudget
from rewardshift.training.runs import train_offline

GAMMA = 0.95


@dataclass(frozen=True)
class MechanismTask:
    """A data set, and the agent that learns from it.

    Args:
        behaviour: The policy that collects the data, separately for every seed.
        agent: The agent.
        reward_range: The range of the rewards, which determines that of the values.
        terminal: As in `Shift`.
    """

    behaviour: Behaviour
    agent: DQN | TD3
    reward_range: tuple[float, float]
    terminal: Terminal

    first_seed: ClassVar[int] = 0  # see `run_mechanism`

    def configure(self, optimism: float) -> DQN | TD3:
        """The agent with the shift that gives Q this optimism at first."""
        low, high = self.reward_range
        bias = -(low + optimism * (high - low))
        return replace(self.agent, shift=Shift(bias, terminal=self.terminal))


@dataclass(frozen=True)
class MechanismBudget:
    """The budget of the figure.

    Args:
        lifetimes: Updates, in lifetimes of the agent's shift.
        transitions: Size of a data set.
        evaluations: Points of a curve.
        evaluation_episodes: Episodes per point.
    """

    lifetimes: int = 10
    transitions: int = 5000
    evaluations: int = 20
    evaluation_episodes: int = 5

    def offline(self, agent: DQN | TD3) -> OfflineBudget:
        """The budget for the training loop."""
        updates = round(self.lifetimes * agent.lifetime)
        return OfflineBudget(
            updates=updates,
            evaluate_every=updates // self.evaluations,
            evaluation_episodes=self.evaluation_episodes,
        )


def run_mechanism(figure: Figure, unit: Unit, folder: Path) -> list[Curve]:
    """One method on one task, one seed after the other, because each has its own data.

    A seed of the figure counts from the first seed of its task.
    """
    (name,), (method,) = unit.tasks, unit.methods
    (setting,) = [m.agent for m in figure.methods if m.name == method]
    task, budget = figure.tasks[name], unit.budget
    agent = task.configure(setting)
    curves = []
    for seed in unit.seeds:
        own = task.first_seed + seed
        result = train_offline(
            agent,
            task.behaviour.record(budget.transitions, own),
            seeds=(own,),
            budget=budget.offline(agent),
            folder=folder / str(seed),
        )
        found = curves_of(figure, unit._replace(seeds=(own,)), result)
        curves += [curve._replace(seed=seed) for curve in found]
    return curves


_DQN = DQN(gamma=GAMMA, tau=0.05, network=MLP((64, 64)))
_SCALED = replace(_DQN, network=MLP((64, 64), input_range=((-1.2, 0.6), (-0.07, 0.07))))
_TD3 = TD3(
    gamma=GAMMA,
    tau=0.05,
    network=MLP((64, 64)),
    learning_rate=1e-3,
    batch_size=64,
    warm_up=0,
)
# The task, its environment and agent, the range of its rewards, and the shares of random actions
# that make its controller poor, middling and good.
SETTINGS = (
    ("CartPole", "CartPole-v1", _DQN, (0.0, 1.0), (1.0, 0.5, 0.1)),
    ("MountainCar", "MountainCar-v0", _SCALED, (-1.0, 0.0), (0.5, 0.3, 0.1)),
    ("Pendulum", "Pendulum-v1", _TD3, (-16.2736044, 0.0), (1.0, 0.5, 0.1)),
)


def _tasks() -> dict[str, MechanismTask]:
    tasks = {}
    for name, env, agent, reward_range, shares in SETTINGS:
        for quality, share in zip(("poor", "middling", "good"), shares, strict=True):
            task = MechanismTask(Behaviour(env, share), agent, reward_range, "zero")
            tasks[f"{name}-{quality}"] = task
            if env != "Pendulum-v1":  # Pendulum never terminates
                tasks[f"{name}-{quality}-absorbing"] = replace(task, terminal="absorbing")
    return tasks


TASKS = _tasks()
OPTIMISM = (-5.0, -2.0, -1.0, 0.0, 1.0, 2.0)
STYLES = (
    Style("#00441b", "-"),
    Style("#238b45", "-."),
    Style("#74c476", "--"),
    Style("#525252", ":"),
    Style("#2171b5", "--"),
    Style("#6a51a3", "-"),
)


def _name(optimism: float) -> str:
    return f"optimism{optimism:+g}"


def _claims(task: str) -> tuple[Claim, ...]:
    """The claims that a lower initial value ends better."""
    return tuple(
        Claim(
            f"{task}-{_name(x)}-above-{_name(y)}",
            task,
            statement,
            _name(x),
            _name(y),
            metric="final",
            source="ours",
            end=0.5,
        )
        for x, y, statement in (
            (0.0, 1.0, "A cautious start ends better than an optimistic one."),
            (-2.0, 0.0, "More caution than the lowest value ends better still."),
            (1.0, 2.0, "More optimism than the highest value ends worse still."),
        )
    )


def _lifetimes(figure: Figure, task: str, preset: str) -> float:
    """See `Figure`."""
    agent = figure.tasks[task].agent
    return figure.presets[preset].budget.offline(agent).updates / agent.lifetime


def panels_of(tasks: Iterable[str]) -> tuple[Panel, ...]:
    """A panel of evaluation returns for each task, with the parts of its name as the title."""
    return tuple(replace(p, title=p.name.replace("-", ", ")) for p in return_panels(tuple(tasks)))


OFFLINE_MECHANISM = Figure(
    name="offline-mechanism",
    title="Offline, without a constraint: does a cautious start keep a policy with its data?",
    scenario="S1 offline",
    tasks=TASKS,
    panels=panels_of(TASKS),
    methods=tuple(
        Method(_name(optimism), f"optimism {optimism:g}", optimism, style)
        for optimism, style in zip(OPTIMISM, STYLES, strict=True)
    ),
    # With `zero` the shift of an optimism of 0 or 1 makes every reward of CartPole and MountainCar
    # 0, so there a comparison says nothing about the initial value.
    claims=tuple(
        claim for name in TASKS if f"{name}-absorbing" not in TASKS for claim in _claims(name)
    ),
    presets={
        "smoke": Preset(
            seeds=2,
            budget=MechanismBudget(1, 50, evaluations=2, evaluation_episodes=1),
            seconds=400,
            note="one lifetime on 50 transitions: shows that it runs, nothing else",
            decides=False,
        ),
        "quick": Preset(seeds=20, budget=MechanismBudget(), seconds=5000),
        "paper": Preset(
            seeds=20, budget=MechanismBudget(50, evaluation_episodes=20), seconds=25_000
        ),
    },
    takes_terminal=False,
    x_label="updates",
    run=run_mechanism,
    unit_spans=(),
    seeds_per_unit=10,
    lifetimes=_lifetimes,
)
