"""Fetch with hindsight: the methods differ in the reward's sign alone."""

from dataclasses import dataclass, replace

from rewardshift.agents.networks import MLP
from rewardshift.agents.td3 import TD3, ddpg
from rewardshift.lab.curves import Task, online_lifetimes, run_online, with_terminal
from rewardshift.lab.figure import Claim, Figure, Method, Panel, Preset, Style
from rewardshift.shift import Terminal
from rewardshift.training.hindsight import Hindsight
from rewardshift.training.online import OnlineBudget


@dataclass(frozen=True)
class FetchBudget:
    """The budget of the figure.

    Args:
        reach_steps, push_steps: Environment steps of each seed.
        width: The width of the three hidden layers.
        batch_size, warm_up: As in `TD3`.
        evaluations: Points of a curve.
        evaluation_episodes: Episodes per point.
    """

    reach_steps: int = 20_000
    push_steps: int = 500_000
    width: int = 256
    batch_size: int = 256
    warm_up: int = 1000
    evaluations: int = 50
    evaluation_episodes: int = 20

    def configure(self, agent: TD3, task: Task, terminal: Terminal) -> TD3:
        """See `OnlineFigureBudget`."""
        return replace(
            agent,
            shift=with_terminal(agent, terminal),
            network=MLP((self.width,) * 3),
            batch_size=self.batch_size,
            warm_up=self.warm_up,
        )

    def online(self, task: str) -> OnlineBudget:
        """See `OnlineFigureBudget`."""
        steps = self.reach_steps if task == "FetchReach" else self.push_steps
        return OnlineBudget(
            hindsight=Hindsight(),
            steps=steps,
            capacity=steps,
            evaluate_every=steps // self.evaluations,
            evaluation_episodes=self.evaluation_episodes,
        )


def _method(bias: float, label: str, style: Style) -> Method:
    """DDPG with hindsight, with its authors' settings except for the clipping of targets.

    Clipping to the range of possible returns would at once remove an initial value outside that
    range, and with it the effect of a shift.
    """
    agent = ddpg(
        shift=bias,
        gamma=0.98,
        learning_rate=1e-3,
        noise=0.2,
        random_actions=0.3,
        normalise=True,
    )
    return Method(f"fetch{bias:+g}", label, agent, style)


TASKS = {name: Task(f"{name}-v4") for name in ("FetchReach", "FetchPush")}


def _claims(task: str) -> tuple[Claim, ...]:
    return (
        Claim(
            f"{task}-fetch+0-above-fetch+1",
            task,
            "Rewards of -1 and 0 are learned from more efficiently than 0 and +1.",
            better="fetch+0",
            worse="fetch+1",
        ),
        Claim(
            f"{task}-fetch-1-above-fetch+0",
            task,
            "Rewards of -2 and -1 are learned from more efficiently than -1 and 0.",
            better="fetch-1",
            worse="fetch+0",
            source="ours",
        ),
    )


FETCH = Figure(
    name="fetch",
    title="Fetch with hindsight: the same reward with another sign",
    scenario="goals",
    wording=(
        "using a positive reward +1 in reaching the goals while using a trivial 0 reward"
        " otherwise will drastically hinder the learning efficiency of HER"
    ),
    differs=(
        "v4 of the tasks, where the paper has v1; the settings of hindsight's authors, but without"
        " their clipping of targets, and our number of steps, because the paper names neither"
    ),
    tasks=TASKS,
    panels=tuple(
        Panel(t, t, "success rate", task=t, measure="success_rate", y_range=(0, 1)) for t in TASKS
    ),
    methods=(
        _method(0.0, "-1, 0 (default)", Style("#525252", "--")),
        _method(1.0, "0, +1 (shift +1)", Style("#d94801", "-.")),
        _method(-1.0, "-2, -1 (shift -1)", Style("#2171b5", "-")),
    ),
    claims=tuple(claim for task in TASKS for claim in _claims(task)),
    presets={
        "smoke": Preset(
            seeds=2,
            budget=FetchBudget(200, 200, 8, 8, 50, evaluations=2, evaluation_episodes=1),
            seconds=60,
            note="200 steps and 8 units: shows that it runs, nothing else",
            decides=False,
        ),
        "quick": Preset(
            seeds=12,
            budget=FetchBudget(
                reach_steps=5000, width=64, batch_size=64, evaluations=50, evaluation_episodes=10
            ),
            seconds=900,
            note="hidden layers of 64 units, batches of 64, 10 instead of 20 evaluation episodes;"
            " FetchReach over 5,000 of 20,000 steps, after which it is solved",
            left_out={"FetchPush": 19},
        ),
        "paper": Preset(seeds=8, budget=FetchBudget(), seconds=50_000),
    },
    x_label="environment steps",
    run=run_online,
    unit_spans=(),
    seeds_per_unit=2,
    revision=2,
    lifetimes=online_lifetimes,
)
