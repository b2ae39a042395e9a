"""Constants as rows: one compiled program that trains several constants for several seeds.

The loops train one row per seed, all with the same agent. `Rows` is that agent. Every row keeps its
own bias in its state, and `Rows` shifts the batch by it before an unshifted agent learns from the
batch. That equals a shift of the agent itself, as long as the agent does not bound its targets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rewardshift.agents.contract import (
    Bounding,
    Leading,
    Multistep,
    Observing,
    OnlineAgent,
    WithMembers,
)
from rewardshift.envs.engines import EngineName
from rewardshift.envs.tasks import TaskSpec
from rewardshift.replay import Batch
from rewardshift.shift import Shift
from rewardshift.training.deciding import make_config
from rewardshift.training.online import OnlineBudget, OnlineTrainer
from rewardshift.training.runs import Result, Run

# A guess: the most parameters of an agent's networks for which one program beats processes.
MOST_PARAMETERS = 20_000


class RowState(NamedTuple):
    """The state of one row: that of the agent, and the row's bias."""

    agent: Any
    bias: Float[Array, ""]


@dataclass(frozen=True)
class Rows:
    """An agent whose rows differ in the bias of their shift.

    Args:
        agent: The agent with a bias of 0 and a scale of 1.
        shifts: The shifts. They differ in their biases alone.
    """

    agent: OnlineAgent[Any]
    shifts: tuple[Shift, ...]

    @property
    def continuous(self) -> bool:
        """See `Agent`."""
        return self.agent.continuous

    @property
    def networks(self) -> tuple[str, ...]:
        """See `Agent`."""
        return ("agent",)

    @property
    def gamma(self) -> float:
        """See `Agent`."""
        return self.agent.gamma

    @property
    def batch_size(self) -> int:
        """See `Agent`."""
        return self.agent.batch_size

    @property
    def period(self) -> int:
        """See `Agent`."""
        return self.agent.period

    @property
    def warm_up(self) -> int:
        """See `OnlineAgent`."""
        return self.agent.warm_up

    @property
    def n_step(self) -> int:
        """See `Multistep`."""
        return self.agent.n_step if isinstance(self.agent, Multistep) else 1

    def init(self, key: PRNGKeyArray, spec: TaskSpec) -> RowState:
        """The agent's state, without a bias: `start` sets it."""
        return RowState(self.agent.init(key, spec), jnp.zeros(()))

    def start(self, state: RowState, seeds: int) -> RowState:
        """The state of all rows with their biases: all seeds of the first shift come first."""
        biases = np.repeat([shift.bias for shift in self.shifts], seeds)
        return state._replace(bias=jnp.asarray(biases, jnp.float32))

    def greedy(self, state: RowState, observation: Array) -> Array:
        """See `Agent`."""
        return self.agent.greedy(state.agent, observation)

    def update(
        self, state: RowState, batch: Batch, key: PRNGKeyArray, turn: int
    ) -> tuple[RowState, dict[str, Any]]:
        """See `Agent`."""
        shift = replace(self.shifts[0], bias=state.bias, gamma=self.gamma)
        reward = (
            shift.reward(batch.reward, batch.terminated)
            if self.n_step == 1
            else shift.multistep_return(batch.reward, batch.steps, batch.terminated)
        )
        inner, metrics = self.agent.update(state.agent, batch._replace(reward=reward), key, turn)
        return state._replace(agent=inner), metrics

    def exploration(self, step: int, steps: int) -> Any:
        """See `OnlineAgent`."""
        return self.agent.exploration(step, steps)

    def draws(self, spec: TaskSpec) -> int:
        """See `OnlineAgent`."""
        return self.agent.draws(spec)

    def act(self, state: RowState, observation: Array, draws: Array, explore: Any) -> Any:
        """See `OnlineAgent`."""
        return self.agent.act(state.agent, observation, draws, explore)

    def lead(self, state: RowState, draw: Float[Array, ""], ended: Any, total: Any) -> RowState:
        """See `Leading`."""
        if not isinstance(self.agent, Leading):
            return state
        return state._replace(agent=self.agent.lead(state.agent, draw, ended, total))

    def observe(self, state: RowState, observation: Array) -> tuple[RowState, Any]:
        """See `Observing`."""
        if not isinstance(self.agent, Observing):
            return state, jnp.zeros(())
        inner, bonus = self.agent.observe(state.agent, observation)
        return state._replace(agent=inner), bonus


def fits_rows(agent: Any, budget: Any, spec: TaskSpec) -> bool:
    """Whether several biases of an agent can, and should, be the rows of one program.

    Large networks fill a core by themselves, so there is nothing to gain.
    """
    if not isinstance(agent, OnlineAgent) or not isinstance(agent, WithMembers):
        return False
    if isinstance(agent, Bounding) and agent.reward_range is not None:
        return False
    if not isinstance(budget, OnlineBudget) or budget.diagnose:
        return False
    state = jax.eval_shape(lambda: agent.init(jax.random.key(0), spec))
    leaves = jax.tree.leaves([getattr(state, name) for name in agent.networks])
    return sum(leaf.size for leaf in leaves) <= MOST_PARAMETERS


def rows_run(
    agents: Sequence[Any],
    env: str,
    seeds: tuple[int, ...],
    budget: OnlineBudget,
    engine: EngineName = "auto",
) -> Run:
    """The run of agents that differ in one bias, for the same seeds each."""
    shifts = tuple(agent.members[0] for agent in agents)
    unshifted = replace(agents[0], shift=replace(shifts[0], bias=0.0, scale=1.0))
    agent = Rows(unshifted, shifts)
    config = make_config(agent, env, seeds, budget, engine)

    def make() -> OnlineTrainer:
        rows = seeds * len(shifts)
        trainer = OnlineTrainer(agent, env, rows, budget, config.engine, config.spec)
        trainer.state = agent.start(trainer.state, len(seeds))
        return trainer

    return Run(config, env, make)


def train_rows(run: Run, folder: Path | None) -> list[Result]:
    """Trains all rows of `rows_run`, and returns one result for each shift."""
    result = run.start(folder)
    seeds = len(run.config.seeds)
    assert isinstance(run.config.agent, Rows)
    count = len(run.config.agent.shifts)
    # Every evaluation adds one line for each row, in their order.
    return [
        replace(
            result,
            rows=[
                line for number, line in enumerate(result.rows) if number // seeds % count == shift
            ],
        )
        for shift in range(count)
    ]
