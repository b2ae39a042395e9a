"""Curiosity: Random Network Distillation helps a DQN once its bonus is negative (S3)."""

from dataclasses import dataclass, replace
from typing import Any

from rewardshift.agents.dqn import DQN
from rewardshift.agents.intrinsic import RND
from rewardshift.agents.networks import MLP, InputRange
from rewardshift.envs import four_rooms_id
from rewardshift.lab.curves import online_lifetimes, run_online, with_terminal
from rewardshift.lab.figure import (
    Claim,
    Figure,
    Method,
    Panel,
    Preset,
    Source,
    Style,
)
from rewardshift.shift import Terminal
from rewardshift.training.online import OnlineBudget


@dataclass(frozen=True)
class CuriosityTask:
    """A task of the figure.

    Args:
        env: The registered environment.
        gamma: The discount of its agents.
        input_range: As in `MLP`, for methods whose inputs are scaled.
    """

    env: str
    gamma: float
    input_range: InputRange


@dataclass(frozen=True)
class Scaled:
    """A method of ours whose inputs are scaled to [0, 1]; the paper's inputs are raw.

    Args:
        agent: The agent.
    """

    agent: DQN


@dataclass(frozen=True)
class CuriosityBudget:
    """The budget of the figure.

    Args:
        steps: Environment steps of each seed on Empty-Random and MultiRoom.
        four_rooms_steps, mountain_car_steps: The same for the other tasks.
        rnd_width: The width of the networks of Random Network Distillation.
        evaluations: Points of a curve.
        evaluation_episodes: Greedy episodes per point.
    """

    steps: int
    four_rooms_steps: int
    mountain_car_steps: int
    rnd_width: int = 512
    evaluations: int = 50
    evaluation_episodes: int = 10

    def configure(self, agent: DQN | Scaled, task: CuriosityTask, terminal: Terminal) -> DQN:
        """See `OnlineFigureBudget`."""
        if isinstance(agent, Scaled):
            agent = replace(agent.agent, network=MLP((64,), input_range=task.input_range))
        intrinsic: Any = agent.intrinsic
        if intrinsic is not None:
            intrinsic = replace(intrinsic, width=self.rnd_width)
        shift = with_terminal(agent, terminal)
        return replace(agent, shift=shift, gamma=task.gamma, intrinsic=intrinsic)

    def online(self, task: str) -> OnlineBudget:
        """See `OnlineFigureBudget`."""
        own = {"FourRooms": self.four_rooms_steps, "MountainCar": self.mountain_car_steps}
        steps = own.get(task.split("-", maxsplit=1)[0], self.steps)
        return OnlineBudget(
            steps=steps,
            evaluate_every=steps // self.evaluations,
            evaluation_episodes=self.evaluation_episodes,
        )


def _minigrid(env: str) -> CuriosityTask:
    """A MiniGrid task. Its observations are object kinds, up to 10, colours and states."""
    return CuriosityTask(env, 0.98, input_range=((0.0, 10.0),))


TASKS = {
    "MountainCar": CuriosityTask("MountainCar-v0", 0.95, input_range=((-1.2, 0.6), (-0.07, 0.07))),
    "Empty-Random": _minigrid("MiniGrid-Empty-Random-6x6-v0"),
    "MultiRoom": _minigrid("MiniGrid-MultiRoom-N2-S4-v0"),
    "FourRooms-7": _minigrid(four_rooms_id(7)),
    "FourRooms-9": _minigrid(four_rooms_id(9)),
}


def task_panels(task: str) -> tuple[Panel, Panel]:
    """The greedy return, and the training return, which the paper plots."""
    y_range = None if task == "MountainCar" else (0.0, 1.0)
    return (
        Panel(task, task, "greedy return", task, "evaluation_return", y_range=y_range),
        Panel(
            f"{task}-training", task, "training return", task, "training_return", y_range=y_range
        ),
    )


# The share of their range below which a difference of returns counts as alike.
ALIKE = 0.1

# The discount is that of the task, see `CuriosityBudget`.
PAPER_DQN = DQN(gamma=0.95, tau=0.05)
UNSHIFTED = Method("dqn", "DQN", PAPER_DQN, Style("#525252", "--"))
HALF = Method("dqn-0.5", "DQN -0.5", replace(PAPER_DQN, shift=-0.5), Style("#2171b5", "-"))


RND_STYLES = {
    0.0: Style("#d94801", "-."),
    -0.05: Style("#fdae6b", "--"),
    -0.15: Style("#c7a76c", "-."),
    -1.0: Style("#74c476", "-."),
    -1.5: Style("#005a32", "-"),
    -2.0: Style("#41ab9d", "--"),
    -2.5: Style("#1d6996", ":"),
    -5.0: Style("#807dba", "-"),
    -10.0: Style("#3f007d", ":"),
}


def rnd_method(bias: float) -> Method:
    """RND with its reward shifted; 0 is the original."""
    name = f"rnd{bias:g}" if bias else "rnd"
    label = f"RND {bias:g}" if bias else "RND"
    return Method(name, label, replace(PAPER_DQN, intrinsic=RND(bias)), RND_STYLES[bias])


# The claim of each: the first method is above the second.
ORDERINGS: tuple[tuple[str, str, str, Source], ...] = (
    ("dqn-0.5", "dqn", "A negative shift helps DQN explore.", "paper"),
    ("dqn", "rnd", "The original RND, whose bonus is positive, is worse than none.", "paper"),
    ("rnd-1", "dqn", "RND made negative is better than none.", "paper"),
    ("rnd-1.5", "dqn-0.5", "RND adds to what a shift of its mean size does.", "paper"),
    ("rnd-1.5", "rnd-1", "A more negative RND is better.", "paper"),
    ("dqn-scaled", "dqn", "Inputs scaled to [0, 1] help DQN by themselves.", "ours"),
    ("dqn-0.5-scaled", "dqn-scaled", "A negative shift helps with scaled inputs, too.", "ours"),
)


CURIOSITY = Figure(
    name="curiosity",
    title="Curiosity: RND as it is, and made negative",
    scenario="S3 curiosity",
    wording=(
        "vanilla RND with positive intrinsic reward is always worse than DQN [...] RND is"
        " effective for exploration (i.e., improve over DQN) as long as the intrinsic reward"
        " bonus is always negative"
    ),
    differs=(
        "greedy evaluations decide the claims, where the paper plots the return while training"
        " (also shown); the number of steps is our choice, because the paper names none; unlike in"
        " the authors' code, RND's gradients are cleared, its bonus is that of the present network,"
        " and time limits bootstrap"
    ),
    tasks=TASKS,
    panels=tuple(panel for task in TASKS for panel in task_panels(task)),
    methods=(
        UNSHIFTED,
        rnd_method(0.0),
        HALF,
        rnd_method(-1.0),
        rnd_method(-1.5),
        Method("dqn-scaled", "DQN, scaled inputs", Scaled(PAPER_DQN), Style("#969696", ":")),
        Method(
            "dqn-0.5-scaled", "DQN -0.5, scaled inputs", Scaled(HALF.agent), Style("#6baed6", "--")
        ),
    ),
    claims=tuple(
        Claim(f"{task}-{better}-above-{worse}", task, statement, better, worse, source=source)
        for task in TASKS
        for better, worse, statement, source in ORDERINGS
    ),
    presets={
        "smoke": Preset(
            seeds=2,
            budget=CuriosityBudget(
                400, 400, 400, rnd_width=16, evaluations=2, evaluation_episodes=1
            ),
            seconds=120,
            note="400 steps and RND 16 wide: shows that it runs, nothing else",
            decides=False,
        ),
        "quick": Preset(
            seeds=10,
            budget=CuriosityBudget(
                40_000, 40_000, 200_000, rnd_width=128, evaluations=25, evaluation_episodes=5
            ),
            seconds=9000,
            note="40,000 of 200,000 to 500,000 steps on MiniGrid, RND 128 instead of 512 wide",
        ),
        "paper": Preset(
            seeds=10, budget=CuriosityBudget(200_000, 500_000, 200_000), seconds=450_000
        ),
    },
    x_label="environment steps",
    run=run_online,
    unit_spans=(),
    seeds_per_unit=10,
    revision=4,
    lifetimes=online_lifetimes,
)
