"""Curiosity: Random Network Distillation helps a DQN once its bonus is negative (S3).

Variants of the figure have other constants, a stored bonus, and the authors' own bonus.
"""

from dataclasses import replace

from rewardshift.agents.dqn import DQN
from rewardshift.agents.intrinsic import RND
from rewardshift.agents.networks import MLP, InputRange
from rewardshift.envs import four_rooms_id
from rewardshift.lab import (
    Budget,
    Figure,
    Method,
    Panel,
    Preset,
    Style,
    Task,
    budgets,
    orderings,
    smoke_preset,
)

SCALED = ("dqn-scaled", "dqn-0.5-scaled")  # ours, with inputs in [0, 1]; the paper's are raw


def _task(env: str, gamma: float, input_range: InputRange) -> Task:
    scaled = {"network": MLP((64,), input_range=input_range)}
    return Task(env, settings={"gamma": gamma}, methods=dict.fromkeys(SCALED, scaled))


def _minigrid(env: str) -> Task:
    """A MiniGrid task. Its observations are object kinds, up to 10, colours and states."""
    return _task(env, 0.98, ((0.0, 10.0),))


TASKS = {
    "MountainCar": _task("MountainCar-v0", 0.95, ((-1.2, 0.6), (-0.07, 0.07))),
    "Empty-Random": _minigrid("MiniGrid-Empty-Random-6x6-v0"),
    "MultiRoom": _minigrid("MiniGrid-MultiRoom-N2-S4-v0"),
    "FourRooms-7": _minigrid(four_rooms_id(7)),
    "FourRooms-9": _minigrid(four_rooms_id(9)),
}


QUICK_STEPS = dict.fromkeys(TASKS, 40_000) | {"MountainCar": 200_000}
PAPER_STEPS = dict.fromkeys(TASKS, 200_000) | {"FourRooms-7": 500_000, "FourRooms-9": 500_000}
WIDE = {"intrinsic.width": 512}
SMOKE = smoke_preset(
    Budget(400, evaluations=2, evaluation_episodes=1, settings={"intrinsic.width": 16}), 120
)
QUICK = Preset(
    seeds=10,
    budget=budgets(QUICK_STEPS, settings={"intrinsic.width": 128}),
    seconds=9000,
    note="40,000 of 200,000 to 500,000 steps on MiniGrid, RND 128 instead of 512 wide",
)
PAPER = Preset(
    seeds=10,
    budget=budgets(PAPER_STEPS, evaluations=50, evaluation_episodes=10, settings=WIDE),
    seconds=450_000,
)


def _return_panels(task: str) -> tuple[Panel, Panel]:
    """The greedy return, and the training return, which the paper plots."""
    y_range = None if task == "MountainCar" else (0.0, 1.0)
    title = f"{task}, while training"
    return (
        Panel(task, task, "greedy return", task, "evaluation_return", y_range=y_range),
        Panel(
            f"{task}-training", title, "training return", task, "training_return", y_range=y_range
        ),
    )


# The discount is that of the task.
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


def _rnd(bias: float) -> Method:
    """RND with its reward shifted; 0 is the original."""
    name = f"rnd{bias:g}" if bias else "rnd"
    label = f"RND {bias:g}" if bias else "RND"
    agent = replace(PAPER_DQN, intrinsic=RND(bias))
    return Method(name, label, agent, RND_STYLES[bias], constant=bias)


OURS = {"source": "ours"}
ORDER = (
    ("dqn-0.5", "dqn", "A negative shift helps DQN explore."),
    ("dqn", "rnd", "The original RND, whose bonus is positive, is worse than none."),
    ("rnd-1", "dqn", "RND made negative is better than none."),
    ("rnd-1.5", "dqn-0.5", "RND adds to what a shift of its mean size does."),
    ("rnd-1.5", "rnd-1", "A more negative RND is better."),
    ("dqn-scaled", "dqn", "Inputs scaled to [0, 1] help DQN by themselves.", OURS),
    ("dqn-0.5-scaled", "dqn-scaled", "A negative shift helps with scaled inputs, too.", OURS),
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
        " (also shown). The number of steps is our choice, because the paper names none. Random"
        " actions become fewer over the first fifth of the steps, not of the episodes. As in the"
        " authors' code, Q has one hidden layer, and RND's networks see states alone and have no"
        " softmax; the paper says two or three layers, actions and a softmax. Unlike in that code,"
        " RND's gradients are cleared, its bonus is that of the present network, and time limits"
        " bootstrap"
    ),
    tasks=TASKS,
    panels=tuple(panel for task in TASKS for panel in _return_panels(task)),
    columns=2,
    methods=(
        UNSHIFTED,
        _rnd(0.0),
        HALF,
        _rnd(-1.0),
        _rnd(-1.5),
        Method("dqn-scaled", "DQN, scaled inputs", PAPER_DQN, Style("#cc5f9e", ":")),
        Method("dqn-0.5-scaled", "DQN -0.5, scaled inputs", HALF.agent, Style("#6baed6", "--")),
    ),
    claims=orderings(TASKS, ORDER),
    presets={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    seeds_per_unit=10,
    revision=4,
)

ABLATION = (-0.05, -0.15, -1.0, -1.5, -2.0, -2.5, -5.0, -10.0)
MODERATE = (-1.0, -1.5, -2.0, -2.5)

HELPS = [(f"rnd{b:g}", "rnd", f"A moderate negative shift, {b:g}, improves RND.") for b in MODERATE]
BELOW = {"ids": "{panel}-{worse}-below-{better}"}
TOO_MUCH = [
    (f"rnd{b:g}", "rnd-10", f"A shift of -10 is too much curiosity: worse than {b:g}.", BELOW)
    for b in MODERATE
]

LEFT_OUT = {"MountainCar": 3.2, "Empty-Random": 0.8, "FourRooms-7": 0.8, "FourRooms-9": 0.8}

CURIOSITY_ABLATION = replace(
    CURIOSITY,
    name="curiosity-ablation",
    title="Curiosity: how negative should RND be?",
    wording=(
        "using a moderate reward shifting constant like {-1.0, -1.5, -2.0, -2.5} remarkably"
        " improves the learning efficiency. On the other hand, a too aggressive reward shifting"
        " will lead to too much curiosity exploration and hinder the learning efficiency"
    ),
    methods=(_rnd(0.0), *(_rnd(bias) for bias in ABLATION)),
    claims=orderings(TASKS, (*HELPS, *TOO_MUCH)),
    presets={
        "smoke": replace(SMOKE, seconds=156),
        "quick": replace(
            QUICK, seconds=1500, note=f"{QUICK.note}, one of five tasks", left_out=LEFT_OUT
        ),
        "paper": replace(PAPER, seconds=585_000),
    },
    form="constants",
    constants="shift of RND's bonus",
)

STORED_RND = replace(PAPER_DQN, intrinsic=RND(-1.0, evaluated="stored"))
STORED = Method("rnd-1-stored", "RND -1, stored", STORED_RND, Style("#ae017e", "--"))
NO_MATTER = ("rnd-1", "rnd-1-stored", "It makes no difference when the bonus is evaluated.")

CURIOSITY_STORED = replace(
    CURIOSITY,
    name="curiosity-stored",
    title="Curiosity: the bonus of now, or that of when it was collected",
    wording="",
    tasks={"MultiRoom": TASKS["MultiRoom"]},
    panels=_return_panels("MultiRoom"),
    methods=(_rnd(-1.0), STORED),
    claims=orderings(["MultiRoom"], [NO_MATTER], "fresh-like-stored", source="ours", alike=0.1),
    presets={
        "smoke": SMOKE,
        "quick": replace(QUICK, seconds=500),
        "paper": replace(PAPER, seconds=20_000),
    },
)


def _piled(bias: float, style: Style) -> Method:
    """RND as in the authors' code, whose predictor accumulates all gradients."""
    clean = _rnd(bias)
    agent = replace(PAPER_DQN, intrinsic=RND(bias, clear_gradients=False))
    return Method(f"{clean.name}-piled", f"{clean.label}, gradients pile up", agent, style)


PILED = (
    _piled(0.0, Style("#fd8d3c", "-")),
    _piled(-1.0, Style("#74c476", "--")),
    _piled(-1.5, Style("#005a32", "-")),
)
PLUS_ONE = Method("dqn+1", "DQN +1", replace(PAPER_DQN, shift=1.0), Style("#cb181d", ":"))
CONSTANTS = (PLUS_ONE, UNSHIFTED, HALF)
SAME = [
    (piled.name, constant.name, f"{piled.label}, is like {constant.label}.")
    for piled, constant in zip(PILED, CONSTANTS, strict=True)
]

BONUS = Panel(
    "MultiRoom-bonus",
    "MultiRoom, bonus",
    "mean bonus",
    "MultiRoom",
    "bonus",
    y_range=(0.0, 1.0),
    methods=("rnd", *(method.name for method in PILED)),
)

CURIOSITY_EXPLAINED = replace(
    CURIOSITY_STORED,
    name="curiosity-explained",
    title="Curiosity: is RND a constant when gradients pile up?",
    panels=(*_return_panels("MultiRoom"), BONUS),
    methods=(_rnd(0.0), *PILED, *CONSTANTS),
    claims=orderings(["MultiRoom"], SAME, "{better}-like-{worse}", source="ours", alike=0.1),
    presets={
        "smoke": replace(SMOKE, seconds=40),
        "quick": replace(
            QUICK,
            budget=budgets(QUICK_STEPS, settings=WIDE),
            seconds=4300,
            note="40,000 of 200,000 steps",
        ),
        "paper": replace(PAPER, seconds=40_000),
    },
    seeds_per_unit=1,  # a quarter cheaper than ten: `benchmarks/seeds.py`
    columns=3,
)
