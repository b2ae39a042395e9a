"""Shifts that choose themselves, beside none and the paper's constant (ours).

`auto-development` compares the candidates on the tasks that they were developed on. `auto` is the
evidence: the candidate that was fixed there, on tasks that had no part in the choice.
"""

from dataclasses import dataclass, replace

from rewardshift.agents.dqn import DQN
from rewardshift.auto import Auto
from rewardshift.envs import deep_sea_id, four_rooms_id
from rewardshift.experiments.curves import (
    online_lifetimes,
    return_panels,
    run_online,
    with_terminal,
)
from rewardshift.experiments.figure import Claim, Figure, Method, Preset, Style
from rewardshift.shift import Terminal
from rewardshift.training.online import OnlineBudget


@dataclass(frozen=True)
class ChoosingTask:
    """A task of the figures.

    Args:
        env: The registered environment.
        gamma: The discount of its agents.
        steps: Environment steps of each seed.
    """

    env: str
    gamma: float
    steps: int


@dataclass(frozen=True)
class ChoosingBudget:
    """The budget of the figures.

    Args:
        share: The share of each task's steps.
        evaluations: Points of a curve.
        evaluation_episodes: Greedy episodes per point.
    """

    share: float = 1.0
    evaluations: int = 25
    evaluation_episodes: int = 5

    def configure(self, agent: DQN, task: ChoosingTask, terminal: Terminal) -> DQN:
        """See `OnlineFigureBudget`."""
        rule = isinstance(agent.shift, Auto)  # which has its own treatment of terminal states
        shift = agent.shift if rule else with_terminal(agent.members, terminal)
        return replace(agent, shift=shift, gamma=task.gamma)

    def online(self, task: str) -> OnlineBudget:
        """See `OnlineFigureBudget`."""
        steps = round(self.share * TASKS[task].steps)
        return OnlineBudget(
            steps=steps,
            evaluate_every=steps // self.evaluations,
            evaluation_episodes=self.evaluation_episodes,
        )


DEVELOPMENT = {
    "DeepSea-10": ChoosingTask(deep_sea_id(10), 0.99, 20_000),
    "Empty-Random": ChoosingTask("MiniGrid-Empty-Random-6x6-v0", 0.98, 40_000),
    "CartPole": ChoosingTask("CartPole-v1", 0.99, 40_000),
}
REPORTED = {
    "DeepSea-20": ChoosingTask(deep_sea_id(20), 0.99, 40_000),
    "MultiRoom": ChoosingTask("MiniGrid-MultiRoom-N2-S4-v0", 0.98, 40_000),
    "FourRooms-7": ChoosingTask(four_rooms_id(7), 0.98, 40_000),
    "FourRooms-9": ChoosingTask(four_rooms_id(9), 0.98, 40_000),
    "MountainCar": ChoosingTask("MountainCar-v0", 0.95, 100_000),
    "Acrobot": ChoosingTask("Acrobot-v1", 0.99, 40_000),
}
TASKS = {**DEVELOPMENT, **REPORTED}

FIRST, LEAST = Auto(), Auto(least=1.0)
METHODS = (
    Method("none", "no shift", DQN(), Style("#525252", "--")),
    Method("paper", "-0.5", DQN(shift=-0.5), Style("#2171b5", "-")),
    Method("first", "first reward", DQN(shift=FIRST), Style("#fd8d3c", ":")),
    Method("least", "first reward, at least 1", DQN(shift=LEAST), Style("#a63603", "-.")),
    Method("none-normalised", "no shift, normalised", DQN(normalise=True), Style("#bdbdbd", "-")),
    Method(
        "least-normalised",
        "at least 1, normalised",
        DQN(shift=LEAST, normalise=True),
        Style("#00441b", "-"),
    ),
)


def _figure(name: str, title: str, tasks: dict[str, ChoosingTask]) -> Figure:
    sentences = (
        ("least", "none", "A shift that chooses itself explores better than none."),
        ("none", "least", "No shift is better than one that chooses itself."),
        ("least", "first", "A least unit helps where the first reward is small."),
        ("least", "paper", "A shift that chooses itself is better than -0.5."),
        ("paper", "least", "-0.5 is better than a shift that chooses itself."),
        ("least-normalised", "none-normalised", "It helps with normalised inputs, too."),
        ("least-normalised", "least", "Normalised inputs help it."),
        ("least-normalised", "paper", "With normalised inputs it is better than -0.5."),
    )
    return Figure(
        name=name,
        title=title,
        scenario="theory",
        tasks=tasks,
        panels=return_panels(tuple(tasks)),
        methods=METHODS,
        claims=tuple(
            Claim(f"{task}-{better}-above-{worse}", task, sentence, better, worse, source="ours")
            for task in tasks
            for better, worse, sentence in sentences
        ),
        presets={
            "smoke": Preset(
                seeds=2,
                budget=ChoosingBudget(0.01, evaluations=2, evaluation_episodes=1),
                seconds=60,
                note="a hundredth of the steps: shows that it runs, nothing else",
                decides=False,
            ),
            "quick": Preset(seeds=10, budget=ChoosingBudget(), seconds=900.0 * len(tasks)),
            "paper": Preset(
                seeds=20, budget=ChoosingBudget(5.0, 50, 10), seconds=10_000.0 * len(tasks)
            ),
        },
        x_label="environment steps",
        run=run_online,
        unit_spans=(),
        seeds_per_unit=10,
        lifetimes=online_lifetimes,
    )


AUTO_DEVELOPMENT = _figure(
    "auto-development", "Shifts that choose themselves: the candidates", DEVELOPMENT
)
