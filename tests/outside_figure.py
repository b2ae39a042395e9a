"""A figure of somebody's own, made of public names alone. Importing it registers it."""

from rewardshift import DQN
from rewardshift.lab import Budget, Claim, Figure, Method, Preset, Task, register, task_panels

FIGURE = Figure(
    name="my-figure",
    title="Does a shift help on CartPole?",
    tasks={"CartPole": Task("CartPole-v1")},
    panels=task_panels(["CartPole"]),
    methods=(Method("none", "none", DQN()), Method("shifted", "-0.5", DQN(shift=-0.5))),
    claims=(
        Claim(
            "shift-helps",
            "CartPole",
            "A shift of -0.5 helps.",
            better="shifted",
            worse="none",
            source="ours",
        ),
    ),
    presets={
        "quick": Preset(
            seeds=2,
            budget=Budget(60, 3, 1, settings={"network.hidden": (8,), "batch_size": 8}),
            seconds=10,
        )
    },
    x_label="steps",
    seeds_per_unit=2,
)
register(FIGURE, module=__name__)
