"""Variants of the curiosity figure: other constants, a stored bonus, the authors' own bonus."""

from dataclasses import replace

from rewardshift.agents.intrinsic import RND
from rewardshift.lab.figure import Claim, Method, Panel, Style
from rewardshift.paper.curiosity import (
    ALIKE,
    CURIOSITY,
    HALF,
    PAPER_DQN,
    TASKS,
    UNSHIFTED,
    rnd_method,
    task_panels,
)

ABLATION = (-0.05, -0.15, -1.0, -1.5, -2.0, -2.5, -5.0, -10.0)
MODERATE = (-1.0, -1.5, -2.0, -2.5)


def _ablation_claims(task: str) -> list[Claim]:
    helps = [
        Claim(
            f"{task}-rnd{bias:g}-above-rnd",
            task,
            f"A moderate negative shift, {bias:g}, improves RND.",
            better=f"rnd{bias:g}",
            worse="rnd",
        )
        for bias in MODERATE
    ]
    too_much = [
        Claim(
            f"{task}-rnd-10-below-rnd{bias:g}",
            task,
            f"A shift of -10 is too much curiosity: worse than {bias:g}.",
            better=f"rnd{bias:g}",
            worse="rnd-10",
        )
        for bias in MODERATE
    ]
    return helps + too_much


CURIOSITY_ABLATION = replace(
    CURIOSITY,
    name="curiosity-ablation",
    title="Curiosity: how negative should RND be?",
    wording=(
        "using a moderate reward shifting constant like {-1.0, -1.5, -2.0, -2.5} remarkably"
        " improves the learning efficiency. On the other hand, a too aggressive reward shifting"
        " will lead to too much curiosity exploration and hinder the learning efficiency"
    ),
    methods=(rnd_method(0.0), *(rnd_method(bias) for bias in ABLATION)),
    claims=tuple(claim for task in TASKS for claim in _ablation_claims(task)),
    presets={
        **{
            name: replace(preset, seconds=1.3 * preset.seconds)  # nine methods instead of seven
            for name, preset in CURIOSITY.presets.items()
        },
        "quick": replace(
            CURIOSITY.presets["quick"],
            seconds=1500,
            note=f"{CURIOSITY.presets['quick'].note}, one of five tasks",
            left_out={
                "MountainCar": 3.2,
                "Empty-Random": 0.8,
                "FourRooms-7": 0.8,
                "FourRooms-9": 0.8,
            },
        ),
    },
)

STORED = Method(
    "rnd-1-stored",
    "RND -1, stored",
    replace(PAPER_DQN, intrinsic=RND(-1.0, evaluated="stored")),
    Style("#ae017e", "--"),
)

CURIOSITY_STORED = replace(
    CURIOSITY,
    name="curiosity-stored",
    title="Curiosity: the bonus of now, or that of when it was collected",
    wording="",
    tasks={"MultiRoom": TASKS["MultiRoom"]},
    panels=task_panels("MultiRoom"),
    methods=(rnd_method(-1.0), STORED),
    claims=(
        Claim(
            "fresh-like-stored",
            "MultiRoom",
            "It makes no difference when the bonus is evaluated.",
            better="rnd-1",
            worse="rnd-1-stored",
            source="ours",
            alike=ALIKE,
        ),
    ),
    presets={
        **CURIOSITY.presets,
        "quick": replace(CURIOSITY.presets["quick"], seconds=500),
        "paper": replace(CURIOSITY.presets["paper"], seconds=20_000),
    },
)


def _piled(bias: float, style: Style) -> Method:
    """RND as in the authors' code, whose predictor accumulates all gradients."""
    clean = rnd_method(bias)
    agent = replace(PAPER_DQN, intrinsic=RND(bias, clear_gradients=False))
    return Method(f"{clean.name}-piled", f"{clean.label}, gradients pile up", agent, style)


PILED = (
    _piled(0.0, Style("#fd8d3c", "-")),
    _piled(-1.0, Style("#74c476", "--")),
    _piled(-1.5, Style("#005a32", "-")),
)
PLUS_ONE = Method("dqn+1", "DQN +1", replace(PAPER_DQN, shift=1.0), Style("#cb181d", ":"))
CONSTANTS = (PLUS_ONE, UNSHIFTED, HALF)

CURIOSITY_EXPLAINED = replace(
    CURIOSITY_STORED,
    name="curiosity-explained",
    title="Curiosity: with gradients that pile up, RND is a constant",
    wording="",
    panels=(
        *task_panels("MultiRoom"),
        Panel(
            "MultiRoom-bonus",
            "MultiRoom",
            "mean bonus",
            "MultiRoom",
            "bonus",
            y_range=(0.0, 1.0),
            methods=("rnd", *(method.name for method in PILED)),
        ),
    ),
    methods=(rnd_method(0.0), *PILED, *CONSTANTS),
    claims=tuple(
        Claim(
            f"{piled.name}-like-{constant.name}",
            "MultiRoom",
            f"{piled.label}, is like {constant.label}.",
            better=piled.name,
            worse=constant.name,
            source="ours",
            alike=ALIKE,
        )
        for piled, constant in zip(PILED, CONSTANTS, strict=True)
    ),
    presets={
        "smoke": replace(CURIOSITY.presets["smoke"], seconds=40),
        "quick": replace(
            CURIOSITY.presets["quick"],
            budget=replace(CURIOSITY.presets["quick"].budget, rnd_width=512),
            seconds=4300,
            note="40,000 of 200,000 steps",
        ),
        "paper": replace(CURIOSITY.presets["paper"], seconds=40_000),
    },
    seeds_per_unit=1,  # a quarter cheaper than ten: `benchmarks/seeds.py`
)
