"""Curiosity: Random Network Distillation helps a DQN once it is made negative (S3)."""

from dataclasses import dataclass, replace
from typing import Any

from rewardshift.agents.dqn import DQN
from rewardshift.agents.intrinsic import RND
from rewardshift.envs.minigrid import four_rooms_id
from rewardshift.experiments.figure import Claim, Figure, Method, Preset
from rewardshift.experiments.online import return_panels, run_online
from rewardshift.shift import Terminal
from rewardshift.training.online import OnlineBudget


@dataclass(frozen=True)
class Task:
    """A task of the figure.

    Args:
        env: The registered environment.
        gamma: The discount that it is trained with.
    """

    env: str
    gamma: float


@dataclass(frozen=True)
class CuriosityBudget:
    """How much of the figure to run.

    Args:
        steps: Environment steps of each seed; FourRooms, the hardest, may have its own number.
        four_rooms_steps: That number.
        rnd_width: Of the networks of Random Network Distillation.
        evaluations: Points of a curve.
        evaluation_episodes: Greedy episodes behind each point.
    """

    steps: int
    four_rooms_steps: int
    rnd_width: int = 512
    evaluations: int = 50
    evaluation_episodes: int = 10

    def configure(self, agent: DQN, task: Task, terminal: Terminal) -> DQN:
        """See `OnlineFigureBudget`."""
        intrinsic: Any = agent.intrinsic
        if intrinsic is not None:
            intrinsic = replace(intrinsic, width=self.rnd_width)
        return replace(agent, gamma=task.gamma, terminal=terminal, intrinsic=intrinsic)

    def online(self, task: str) -> OnlineBudget:
        """See `OnlineFigureBudget`."""
        steps = self.four_rooms_steps if task.startswith("FourRooms") else self.steps
        return OnlineBudget(
            steps=steps,
            evaluate_every=steps // self.evaluations,
            evaluation_episodes=self.evaluation_episodes,
        )


TASKS = {
    "MountainCar": Task("MountainCar-v0", 0.95),
    "Empty-Random": Task("MiniGrid-Empty-Random-6x6-v0", 0.98),
    "MultiRoom": Task("MiniGrid-MultiRoom-N2-S4-v0", 0.98),
    "FourRooms-7": Task(four_rooms_id(7), 0.98),
    "FourRooms-9": Task(four_rooms_id(9), 0.98),
}


def rnd_method(bias: float) -> Method:
    """RND with its reward shifted; 0 is the original."""
    name = f"rnd{bias:g}" if bias else "rnd"
    return Method(name, f"RND {bias:g}" if bias else "RND", DQN(intrinsic=RND(bias)))


# The paper's orderings: the first of each is above the second.
ORDERINGS = (
    ("dqn-0.5", "dqn", "A negative shift helps DQN explore."),
    ("dqn", "rnd", "The original RND, whose bonus is positive, is worse than none."),
    ("rnd-1", "dqn", "RND made negative is better than none."),
    ("rnd-1.5", "dqn-0.5", "RND adds to what a shift of its mean size does."),
    ("rnd-1.5", "rnd-1", "A more negative RND is better."),
)

ABLATION = (-0.05, -0.15, -1.0, -1.5, -2.0, -2.5, -5.0, -10.0)
MODERATE = (-1.0, -1.5, -2.0, -2.5)


def _ablation_claims(task: str) -> list[Claim]:
    helps = [
        Claim(
            f"{task}-rnd{bias:g}-above-rnd",
            task,
            "A moderate negative shift improves RND.",
            better=f"rnd{bias:g}",
            worse="rnd",
        )
        for bias in MODERATE
    ]
    too_much = [
        Claim(
            f"{task}-rnd-10-below-rnd{bias:g}",
            task,
            "A shift of -10 is too much curiosity.",
            better=f"rnd{bias:g}",
            worse="rnd-10",
        )
        for bias in MODERATE
    ]
    return helps + too_much


CURIOSITY = Figure(
    name="curiosity",
    title="Curiosity: RND as it is, and made negative",
    tasks=TASKS,
    panels=return_panels(tuple(TASKS)),
    methods=(
        Method("dqn", "DQN", DQN()),
        rnd_method(0.0),
        Method("dqn-0.5", "DQN -0.5", DQN(shifts=(-0.5,))),
        rnd_method(-1.0),
        rnd_method(-1.5),
    ),
    claims=tuple(
        Claim(f"{task}-{better}-above-{worse}", task, statement, better=better, worse=worse)
        for task in TASKS
        for better, worse, statement in ORDERINGS
    ),
    presets={
        "smoke": Preset(
            seeds=2,
            budget=CuriosityBudget(400, 400, rnd_width=16, evaluations=2, evaluation_episodes=1),
            seconds=120,
            note="400 steps and RND 16 wide: shows that it runs, nothing else",
            decides=False,
        ),
        "quick": Preset(
            seeds=10,
            budget=CuriosityBudget(
                40_000, 40_000, rnd_width=128, evaluations=25, evaluation_episodes=5
            ),
            seconds=3800,
            note="40,000 of 200,000 to 500,000 steps, RND 128 instead of 512 wide",
        ),
        "paper": Preset(seeds=10, budget=CuriosityBudget(200_000, 500_000), seconds=400_000),
    },
    x_label="environment steps",
    run=run_online,
    unit_spans=(),
    seeds_per_unit=10,
    revision=2,
)

CURIOSITY_ABLATION = replace(
    CURIOSITY,
    name="curiosity-ablation",
    title="Curiosity: how negative should RND be?",
    methods=(rnd_method(0.0), *(rnd_method(bias) for bias in ABLATION)),
    claims=tuple(claim for task in TASKS for claim in _ablation_claims(task)),
    presets={
        name: replace(preset, seconds=preset.seconds * (len(ABLATION) + 1) / len(CURIOSITY.methods))
        for name, preset in CURIOSITY.presets.items()
    },
)

STORED = Method("rnd-1-stored", "RND -1, stored", DQN(intrinsic=RND(-1.0, evaluated="stored")))

CURIOSITY_STORED = replace(
    CURIOSITY,
    name="curiosity-stored",
    title="Curiosity: the bonus of now, or that of when it was collected",
    tasks={"MultiRoom": TASKS["MultiRoom"]},
    panels=return_panels(("MultiRoom",)),
    methods=(rnd_method(-1.0), STORED),
    claims=(
        Claim(
            "fresh-like-stored",
            "MultiRoom",
            "It makes no difference when the bonus is evaluated.",
            better="rnd-1",
            worse="rnd-1-stored",
            margin=0.1,
        ),
    ),
    presets={
        **CURIOSITY.presets,
        "quick": replace(CURIOSITY.presets["quick"], seconds=500),
        "paper": replace(CURIOSITY.presets["paper"], seconds=20_000),
    },
)
