"""A figure of somebody's own, made of public names alone. Importing it registers it."""

from dataclasses import dataclass, replace
from typing import Any

from rewardshift import DQN, MLP, OnlineBudget
from rewardshift.lab import register
from rewardshift.lab.curves import Task, return_panels, run_online, with_terminal
from rewardshift.lab.figure import Claim, Figure, Method, Preset


@dataclass(frozen=True)
class Budget:
    """How much of the figure below to run."""

    steps: int

    def configure(self, agent: Any, task: Any, terminal: str) -> Any:
        shift = with_terminal(agent, terminal)  # type: ignore[arg-type]
        return replace(agent, shift=shift, network=MLP((8,)), batch_size=8)

    def online(self, task: str) -> OnlineBudget:
        return OnlineBudget(steps=self.steps, evaluate_every=20, evaluation_episodes=1)


FIGURE = Figure(
    name="my-figure",
    title="Does a shift help on CartPole?",
    tasks={"CartPole": Task("CartPole-v1")},
    panels=return_panels(["CartPole"]),
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
    presets={"quick": Preset(seeds=2, budget=Budget(60), seconds=10)},
    x_label="steps",
    run=run_online,
    unit_spans=(),
    seeds_per_unit=2,
)
register(FIGURE, module=__name__)
