"""The offline figure with several constants."""

from dataclasses import replace

from rewardshift.lab.figure import Claim, Method, Style
from rewardshift.paper.offline import (
    BCQ_TASKS,
    END,
    OFFLINE,
    PAPER,
    QUICK,
    SMOKE,
    TASKS,
    Treatment,
    data_panels,
)

CONSTANTS = (1.0, 8.0, 20.0, 50.0)
STYLES = (
    Style("#a1d99b", "-"),
    Style("#41ab5d", "-."),
    Style("#238b8b", ":"),
    Style("#00441b", "-"),
)
LARGER = ("unshifted", *(f"+{bias:g}" for bias in CONSTANTS[1:]))


def _above(task: str, x: str, y: str, statement: str) -> Claim:
    return Claim(f"{task}-{x}-above-{y}", task, statement, x, y, metric="final", end=END)


OFFLINE_ABLATION = replace(
    OFFLINE,
    name="offline-ablation",
    title="Offline: which constant",
    wording=(
        "We can observe a uniformly performance improvement with all choices of reward shift"
        " constants [BCQ]. [...] in the experiments based on CQL, the performance is more"
        " closely related to the constant we use."
    ),
    panels=tuple(
        panel
        for task in TASKS
        # The paper uses +1 for CQL on hopper-medium alone.
        for panel in data_panels(task, None if task == "CQL-hopper-medium" else LARGER)
    ),
    methods=(
        Method("unshifted", "unshifted", Treatment(), Style("#525252", "--")),
        *(
            Method(f"+{bias:g}", f"+{bias:g}", Treatment(bias=bias), style)
            for bias, style in zip(CONSTANTS, STYLES, strict=True)
        ),
    ),
    claims=(
        *(
            _above(task, f"+{bias:g}", "unshifted", f"A shift of {bias:g} helps.")
            for task in BCQ_TASKS
            for bias in CONSTANTS[1:]
        ),
        *(
            _above("CQL-hopper-medium", "+1", f"+{b:g}", f"A shift of 1 does better than {b:g}.")
            for b in CONSTANTS[1:]
        ),
        *(
            _above(
                "CQL-walker2d-medium", "+50", f"+{b:g}", f"A shift of 50 does better than {b:g}."
            )
            for b in CONSTANTS[1:3]
        ),
    ),
    presets={
        "smoke": SMOKE,
        "quick": replace(
            QUICK,
            seeds=8,
            seconds=8400,
            left_out={"CQL-hopper-expert": 5, "CQL-hopper-medium": 6, "CQL-walker2d-medium": 5},
        ),
        "paper": replace(PAPER, seconds=4_500_000),
    },
)
