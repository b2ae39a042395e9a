"""Continuous control: Random Reward Shift on TD3, and single shifts (S2)."""

from dataclasses import replace

from rewardshift.agents.td3 import TD3
from rewardshift.envs import SPARSE_CHEETAH
from rewardshift.lab import (
    Budget,
    Figure,
    Method,
    Panel,
    Preset,
    Style,
    Task,
    orderings,
    smoke_preset,
    task_panels,
)

TASKS = {
    name: Task(f"{name}-v5") for name in ("Hopper", "Walker2d", "HalfCheetah", "Ant", "Humanoid")
}
TINY = {"network.hidden": (16, 16), "batch_size": 16, "warm_up": 200}
SMOKE = smoke_preset(
    Budget(600, evaluations=2, evaluation_episodes=1, settings=TINY, capacity=600, diagnose=True),
    150,
)
# The settings of results/td3-check, which learn faster than the defaults.
FASTER = {"batch_size": 100, "warm_up": 5000, "learning_rate": 1e-3}
AS_CHECKED = Budget(100_000, evaluations=50, settings=FASTER)
QUICK = Preset(
    seeds=8,
    budget=replace(AS_CHECKED, diagnose=True),
    seconds=15_700,
    note="100,000 of 1,000,000 steps, batches of 100 instead of 256, a learning rate of 1e-3"
    " instead of 3e-4, 5,000 instead of 25,000 random steps, two of five tasks",
    left_out={"Walker2d": 4.4, "Ant": 5.2, "Humanoid": 6.1},
)
MILLION = Budget(
    1_000_000, evaluations=200, evaluation_episodes=10, capacity=1_000_000, diagnose=True
)
PAPER = Preset(seeds=10, budget=MILLION, seconds=5_000_000)

# Random Reward Shift with three and with seven members, and with twice their range.
RRS_3 = TD3(shift=(-0.5, 0.0, 0.5))
RRS_3_WIDE = TD3(shift=(-1.0, 0.0, 1.0))
RRS_7 = TD3(shift=(-0.5, -0.33, -0.17, 0.0, 0.17, 0.33, 0.5))
RRS_7_WIDE = TD3(shift=(-1.0, -0.67, -0.33, 0.0, 0.33, 0.67, 1.0))
ENSEMBLE = TD3(shift=(0.0,) * 3)
BOOTSTRAPPED = replace(ENSEMBLE, own_actors=True, lead_steps=0)
EVERY_STEP = replace(RRS_3, lead_episodes=0, lead_steps=0)
TEN_EPISODES = replace(RRS_3, lead_episodes=10)

# Over the whole training: a claim about its end would need more than the quick preset.
ABOVE = (
    ("rrs-3", "td3", "Random Reward Shift is above TD3."),
    ("rrs-3", "ensemble-td3", "Random Reward Shift is above Ensemble TD3."),
    ("rrs-3", "bootstrapped-td3", "Random Reward Shift is above Bootstrapped TD3."),
)
SAME = (
    ("rrs-3", "rrs-3-1.0", "Twice the range makes no difference."),
    ("rrs-3", "rrs-7", "Seven members are like three."),
    ("rrs-3", "rrs-7-1.0", "Seven members with twice the range are like three."),
    ("rrs-3", "rrs-3-step", "A member drawn at every step does as well."),
    ("rrs-3", "rrs-3-ten", "A member drawn every ten episodes does as well."),
)
DISAGREE = (("rrs-3", "ensemble-td3", "Shifted members are further apart about random actions."),)

MEMBERS = ("ensemble-td3", "bootstrapped-td3", "rrs-3")


def _panels(task: str) -> tuple[Panel, ...]:
    """The return, and how far the members are apart: what the paper explains its gains by."""

    def apart(name: str, actions: str, measure: str) -> Panel:
        title = f"{task}, {actions}"
        return Panel(f"{task}-{name}", title, "disagreement", task, measure, methods=MEMBERS)

    return (
        *task_panels([task]),
        apart("replay", "actions in the replay", "disagreement_visited"),
        apart("random-actions", "random actions", "disagreement_unvisited"),
    )


CONTROL = Figure(
    name="control",
    title="Continuous control: Random Reward Shift and other ensembles of TD3",
    scenario="S2 control",
    wording=(
        "RRS outperforms the vanilla TD3 in all five environments and outperforms all baseline"
        " methods in most tasks"
    ),
    differs=(
        "Gymnasium's v5 tasks, where the paper has older versions; every member is a pair of"
        " networks and discounts, as in the authors' code, where Algorithm 1 of the paper has"
        " neither"
    ),
    tasks=TASKS,
    panels=tuple(panel for task in TASKS for panel in _panels(task)),
    methods=(
        Method("td3", "TD3", TD3(), Style("#525252", "--")),
        Method("ensemble-td3", "Ensemble TD3", ENSEMBLE, Style("#e69f00", "-.")),
        Method("bootstrapped-td3", "Bootstrapped TD3", BOOTSTRAPPED, Style("#cc5f9e", ":")),
        Method("rrs-3", "RRS-3", RRS_3, Style("#08519c", "-")),
    ),
    claims=(
        *orderings(TASKS, ABOVE),
        *orderings([f"{task}-random-actions" for task in TASKS], DISAGREE, source="ours"),
    ),
    presets={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    seeds_per_unit=1,
)


CONTROL_ABLATION = replace(
    CONTROL,
    name="control-ablation",
    title="Random Reward Shift: how many members, how far apart, how often drawn",
    wording=(
        "RRS is not sensitive to hyper-parameters, showing the robustness of the proposed method"
    ),
    panels=task_panels(TASKS),
    methods=(
        Method("rrs-3", "RRS-3 0.5", RRS_3, Style("#08519c", "-")),
        Method("rrs-3-1.0", "RRS-3 1.0", RRS_3_WIDE, Style("#6baed6", "--")),
        Method("rrs-7", "RRS-7 0.5", RRS_7, Style("#005a32", "-.")),
        Method("rrs-7-1.0", "RRS-7 1.0", RRS_7_WIDE, Style("#74c476", ":")),
        Method("rrs-3-step", "RRS-3 0.5, every step", EVERY_STEP, Style("#d94801", "--")),
        Method("rrs-3-ten", "RRS-3 0.5, every ten episodes", TEN_EPISODES, Style("#807dba", "-.")),
    ),
    claims=orderings(TASKS, SAME, "{panel}-{worse}-like-{better}", alike=0.1),
    presets={
        "smoke": SMOKE,
        "quick": replace(
            QUICK,
            budget=AS_CHECKED,
            seconds=37_000,
            left_out={"Hopper": 20, "Walker2d": 20, "Ant": 24, "Humanoid": 28},
            note=QUICK.note.replace("two of five", "one of five"),
        ),
        "paper": replace(PAPER, seconds=12_000_000),
    },
)


def _single_shifts(size: float) -> tuple[Method, ...]:
    return (
        Method(f"td3-{size:g}", f"TD3 -{size:g}", TD3(shift=-size), Style("#2171b5", "-")),
        Method("td3", "TD3", TD3(), Style("#525252", "--")),
        Method(f"td3+{size:g}", f"TD3 +{size:g}", TD3(shift=size), Style("#d94801", "-.")),
    )


def _sentences(size: float, better: str, worse: str) -> tuple[tuple[str, str, str], ...]:
    """That -size is above 0, 0 above +size, and -size above +size, with the verbs of each."""
    low, high = f"td3-{size:g}", f"td3+{size:g}"
    return (
        (low, "td3", f"A negative shift {better}."),
        ("td3", high, f"A positive shift {worse}."),
        (low, high, f"A negative shift {better} than a positive one."),
    )


PAIR = "{better}-above-{worse}"  # the id of a claim of a figure with one task
EXPLORES = _sentences(0.5, "explores better", "explores worse")
ENDS = _sentences(5.0, "ends higher", "ends lower")
# The first rule of `auto`; that of today chooses -0.5 here.
FIVE_UNITS = (
    ("auto", "td3", "Five units of optimism are better than none."),
    ("auto", "td3-0.5", "Five units of optimism are better than -0.5."),
)
SPARSE = "SparseHalfCheetah"
SPARSE_STEPS = 100_000  # the steps in which the paper's curves differ

SPARSE_CHEETAH_FIGURE = Figure(
    name="sparse-cheetah",
    title="Sparse HalfCheetah: optimism finds the reward sooner",
    scenario="S2 control",
    wording=(
        "a negative reward shift lead to more explorative behavior and improves the learning"
        " efficiency while a positive reward shift hinders the learning efficiency"
    ),
    differs=(
        "Gymnasium's v5 HalfCheetah, where the paper has an older version; a reward of 1 for a step"
        " that moves forward by more than 0.05, as in the authors' code, where the paper says 5"
    ),
    tasks={SPARSE: Task(SPARSE_CHEETAH)},
    panels=task_panels([SPARSE]),
    methods=(
        *_single_shifts(0.5),
        Method("auto", "TD3 five units", TD3(shift=5 * (TD3().gamma - 1)), Style("#dd3497", ":")),
    ),
    claims=(
        *orderings([SPARSE], EXPLORES, PAIR, until=SPARSE_STEPS),
        *orderings([SPARSE], FIVE_UNITS, PAIR, source="ours", until=SPARSE_STEPS),
    ),
    presets={
        "smoke": replace(SMOKE, seconds=40),
        "quick": Preset(
            seeds=8,
            budget=Budget(SPARSE_STEPS, evaluations=50, evaluation_episodes=10),
            seconds=7_700,
            note="100,000 of 200,000 steps",
        ),
        "paper": Preset(
            seeds=8,
            budget=Budget(200_000, evaluations=100, evaluation_episodes=10, capacity=200_000),
            seconds=16_000,
        ),
    },
    seeds_per_unit=1,
)

HUMANOID = replace(
    SPARSE_CHEETAH_FIGURE,
    name="humanoid",
    title="Humanoid: a negative and a positive shift of 5",
    wording=(
        "using a reward shift can drastically improve the asymptotic performance by ~+60%,"
        " while learning with a positive reward shift retard the learning and converge to a"
        " lower performance"
    ),
    differs="Gymnasium's v5 task, where the paper has an older version",
    tasks={"Humanoid": TASKS["Humanoid"]},
    panels=task_panels(["Humanoid"]),
    methods=_single_shifts(5.0),
    claims=orderings(["Humanoid"], ENDS, PAIR, metric="final"),
    presets={
        "smoke": replace(SMOKE, seconds=60),
        "quick": replace(
            QUICK,
            budget=replace(AS_CHECKED, steps=350_000, capacity=350_000),
            seconds=20_500,
            left_out={},
            note="350,000 of 1,000,000 steps, batches of 100 instead of 256, a learning rate of"
            " 1e-3 instead of 3e-4, 5,000 instead of 25,000 random steps",
        ),
        "paper": replace(PAPER, seeds=8, seconds=150_000),
    },
)
