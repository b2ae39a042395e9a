"""A sweep of one of our agents: its trainings with each constant."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax

from rewardshift.agents.base import Agent
from rewardshift.agents.offline import OfflineAgent
from rewardshift.agents.online import OnlineAgent
from rewardshift.auto import AUTO, Auto, Cautious, Rule
from rewardshift.checks import check
from rewardshift.data.dataset import Subset
from rewardshift.envs.tasks import MakeEnv
from rewardshift.errors import InputError, shown
from rewardshift.lab.figure import Curve, Figure, Unit
from rewardshift.lab.sweep.constants import Constant
from rewardshift.lab.trainings import curves_of
from rewardshift.shift import Shift, Terminal, as_shift
from rewardshift.training.budgets import OfflineBudget, OnlineBudget
from rewardshift.training.config import part_to_json
from rewardshift.training.run_folder import refuse_nameless
from rewardshift.training.runs import Run, offline_run, online_run

# A guess: the most parameters for which one program beats processes: larger networks fill a core.
MOST_PARAMETERS = 20_000
SEEDS_TOGETHER = 8  # of discrete agents with large networks; more rows are slower than these


@dataclass(frozen=True)
class SweptAgent:
    """An agent, its task and its budget.

    Args:
        agent: The agent. Its scale and its treatment of terminal states are those of all constants.
        env: The name of the environment; with a data set, of the one for evaluations.
        budget: The length and the schedule of every training.
        data: The source of a data set, for offline trainings.
        subset: The part of the data set to learn from.
        make: The function that makes the environment, if it has no registered name.
    """

    agent: Agent
    env: str | None
    budget: OnlineBudget | OfflineBudget
    data: str | None = None
    subset: Subset | None = None
    make: MakeEnv | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check(self)
        if self.env is None and self.data is None:
            raise InputError("a sweep needs an environment, or a data set")
        if self.env is not None:
            refuse_nameless(self.env)
        object.__setattr__(self, "agent", self.with_constant(0.0))
        part_to_json(self.agent)

    @property
    def name(self) -> str:
        """The name of the agent."""
        return type(self.agent).__name__

    @property
    def task(self) -> str:
        """The environment or the data set."""
        return str(self.env if self.data is None else self.data)

    @property
    def terminal(self) -> Terminal:
        """The treatment of terminal states by numbers."""
        return self._shift.terminal

    @property
    def _shift(self) -> Shift:
        """The agent's only shift."""
        given = self.agent.shift
        members = given if isinstance(given, tuple) else (given,)
        if len(members) != 1 or isinstance(given, Rule | Cautious):
            raise InputError(
                "a sweep gives its agent the shift, and 'auto' and members may be among its"
                f" constants: give the agent one number, got {shown(given)}"
            )
        return as_shift(members[0])

    def with_constant(self, constant: Constant) -> Agent:
        """The agent with another constant; its scale and its treatment of terminal states stay."""
        agent: Any = self.agent  # a dataclass, which its base class does not say
        shift = self._shift
        if isinstance(constant, tuple):
            if not isinstance(agent, OnlineAgent):
                raise InputError(
                    f"members are for agents that take several shifts, such as DQN and TD3, not for"
                    f" {self.name}"
                )
            new: Any = tuple(replace(shift, bias=bias) for bias in constant)
        elif constant == AUTO:
            new = self._rule
        elif isinstance(agent.shift, int | float):  # the agent may take no Shift
            new = constant
        else:
            new = replace(shift, bias=constant)
        changed: Agent = replace(agent, shift=new)
        return changed

    @property
    def _rule(self) -> Auto | Cautious:
        """The rule beside constants.

        Like `rewardshift train --shift auto`, it takes over any treatment of terminal states but
        the default one.
        """
        shift = self._shift
        if not isinstance(self.agent, OnlineAgent | OfflineAgent):
            raise InputError(
                "'auto' is for agents whose shift may depend on rewards, such as DQN and BCQ;"
                f" that of {self.name} must be a number"
            )
        if shift.scale != 1.0:
            raise InputError(
                f"'auto' has a scale of its own, so it must be left out, got {shift.scale}"
            )
        kind = Cautious if isinstance(self.agent, OfflineAgent) else Auto
        return kind() if shift.terminal == Shift.terminal else kind(terminal=shift.terminal)

    def fits_rows(self, constants: Sequence[Constant]) -> bool:
        """Whether all numbers are rows of one program; raises if a training would be refused."""
        for constant in constants:
            if not isinstance(constant, float):
                self._training(self.with_constant(constant), (0,))
        run = self._training(self.agent, (0,))  # the other numbers differ in the bias alone
        if not isinstance(self.budget, OnlineBudget) or self.budget.diagnose:
            return False
        state = jax.eval_shape(lambda: self.agent.init(jax.random.key(0), run.config.spec))
        leaves = jax.tree.leaves(self.agent.acting_state(state))
        return bool(self.agent.members) and sum(leaf.size for leaf in leaves) <= MOST_PARAMETERS

    @property
    def seeds_together(self) -> int:
        """The seeds of one program, if it trains one constant."""
        return 1 if self.agent.continuous else SEEDS_TOGETHER

    def _training(
        self, agent: Agent, seeds: tuple[int, ...], biases: tuple[float, ...] = ()
    ) -> Run:
        """A training, configured and checked."""
        env: Any = self.make or self.env
        budget: Any = self.budget
        if self.data is None:
            return online_run(agent, env, seeds, budget, biases)
        return offline_run(agent, self.data, env, seeds, budget, self.subset)

    def run(self, figure: Figure, unit: Unit, folder: Path) -> list[Curve]:
        """One constant, or all numbers as rows of one program, for all seeds of the unit."""
        methods = [method for method in figure.methods if method.name in unit.methods]
        rows = "method" in figure.unit_spans and not methods[0].apart
        biases = tuple(method.agent.members[0].bias for method in methods) if rows else ()
        result = self._training(methods[0].agent, unit.seeds, biases).start(folder)
        seeds, count = len(unit.seeds), len(methods)
        curves = []
        for index, method in enumerate(unit.methods):
            # An evaluation adds one line for each row: all seeds of the first bias come first.
            own = [
                row for number, row in enumerate(result.rows) if number // seeds % count == index
            ]
            one = unit._replace(methods=(method,))
            curves += curves_of(figure, one, replace(result, rows=own))
        return curves
