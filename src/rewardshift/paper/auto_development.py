"""Shifts that choose themselves, beside none and the paper's constant (ours).

`auto-development` compares candidates on the tasks on which one of them was chosen: five units of
at least 1, the default of `Auto`. It is no evidence for it: the figure `auto` is, on tasks that had
no part in the choice.
"""

from dataclasses import dataclass, replace

from rewardshift.agents.dqn import DQN
from rewardshift.auto import Auto
from rewardshift.envs import deep_sea_id
from rewardshift.lab.curves import (
    SharedBudget,
    online_lifetimes,
    return_panels,
    run_online,
    with_terminal,
)
from rewardshift.lab.figure import Claim, Figure, Method, Preset, Style
from rewardshift.paper.curiosity import PAPER_DQN
from rewardshift.shift import Terminal
from rewardshift.training.online import OnlineBudget


@dataclass(frozen=True)
class ChoosingTask:
    """A task of the figures.

    Args:
        env: The registered environment.
        gamma: The discount of its agents.
        steps: Environment steps of each seed.
        tau: The share by which an update moves the target networks. With the paper's 0.05, DQN
            diverges on CartPole: `rewardshift train dqn --env CartPole-v1 --tau 0.05` shows it.
    """

    env: str
    gamma: float
    steps: int
    tau: float = 0.05


@dataclass(frozen=True)
class ChoosingBudget(SharedBudget):
    """The budget of the figure."""

    def configure(self, agent: DQN, task: ChoosingTask, terminal: Terminal) -> DQN:
        """See `OnlineFigureBudget`."""
        shift = with_terminal(agent, terminal)
        return replace(agent, shift=shift, gamma=task.gamma, tau=task.tau)

    def online(self, task: str) -> OnlineBudget:
        """See `OnlineFigureBudget`."""
        return self.of_steps(TASKS[task].steps)


TASKS = {
    "DeepSea-10": ChoosingTask(deep_sea_id(10), 0.99, 20_000),
    "Empty-Random": ChoosingTask("MiniGrid-Empty-Random-6x6-v0", 0.98, 40_000),
    "CartPole": ChoosingTask("CartPole-v1", 0.99, 40_000, tau=0.005),
}
FIRST, ONE, FIVE = Auto(1.0, least=0.0), Auto(1.0, least=1.0), Auto(5.0, least=1.0)
METHODS = (
    Method("none", "no shift", PAPER_DQN, Style("#525252", "--")),
    Method("paper", "-0.5", replace(PAPER_DQN, shift=-0.5), Style("#2171b5", "-")),
    Method("first", "first reward", replace(PAPER_DQN, shift=FIRST), Style("#fd8d3c", ":")),
    Method("one", "unit of at least 1", replace(PAPER_DQN, shift=ONE), Style("#a63603", "-.")),
    Method("five", "five such units", replace(PAPER_DQN, shift=FIVE), Style("#dd3497", "--")),
    Method(
        "none-normalised",
        "no shift, normalised",
        replace(PAPER_DQN, normalise=True),
        Style("#bdbdbd", "-"),
    ),
    Method(
        "one-normalised",
        "unit of at least 1, normalised",
        replace(PAPER_DQN, shift=ONE, normalise=True),
        Style("#00441b", "-"),
    ),
    Method(
        "five-normalised",
        "five such units, normalised",
        replace(PAPER_DQN, shift=FIVE, normalise=True),
        Style("#74c476", "-."),
    ),
)
SENTENCES = (
    ("one", "none", "A shift that chooses itself is better than none."),
    ("none", "one", "No shift is better than one that chooses itself."),
    ("one", "first", "A least unit helps where the first reward is small."),
    ("five", "one", "More optimism than one unit is better."),
    ("none-normalised", "none", "Normalised inputs help by themselves."),
    ("one-normalised", "one", "Normalised inputs help a shift that chooses itself."),
    ("five-normalised", "paper", "Five units with normalised inputs are better than -0.5."),
    ("paper", "five-normalised", "-0.5 is better than five units with normalised inputs."),
)


AUTO_DEVELOPMENT = Figure(
    name="auto-development",
    title="Shifts that choose themselves: the candidates",
    scenario="auto",
    tasks=TASKS,
    panels=return_panels(tuple(TASKS)),
    methods=METHODS,
    claims=tuple(
        Claim(f"{task}-{better}-above-{worse}", task, sentence, better, worse, source="ours")
        for task in TASKS
        for better, worse, sentence in SENTENCES
    ),
    presets={
        "smoke": Preset(
            seeds=2,
            budget=ChoosingBudget(0.01, evaluations=2, evaluation_episodes=1),
            seconds=60,
            note="a hundredth of the steps: shows that it runs, nothing else",
            decides=False,
        ),
        "quick": Preset(seeds=10, budget=ChoosingBudget(), seconds=1500),
        "paper": Preset(seeds=20, budget=ChoosingBudget(5.0, 50, 10), seconds=20_000),
    },
    x_label="environment steps",
    run=run_online,
    unit_spans=(),
    seeds_per_unit=10,
    lifetimes=online_lifetimes,
)
