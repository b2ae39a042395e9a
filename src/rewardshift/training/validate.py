"""The configuration of a run, checked before anything is built or written."""

from dataclasses import replace
from typing import Any, cast

from rewardshift.agents.base import Agent
from rewardshift.agents.settings import Offline, Online
from rewardshift.auto import Cautious, rule_on_data
from rewardshift.data.dataset import Dataset
from rewardshift.envs.goals import probe_goals
from rewardshift.envs.tasks import MakeEnv, TaskSpec, env_name, probe_spec
from rewardshift.errors import InputError, shown
from rewardshift.training.config import DataConfig, RunConfig
from rewardshift.training.hindsight import Hindsight
from rewardshift.training.offline import OfflineBudget
from rewardshift.training.online import OnlineBudget
from rewardshift.training.seeding import chosen_seeds
from rewardshift.training.tracing import check_functions, check_online_functions


def make_config(
    agent: Agent,
    env: str | MakeEnv,
    seeds: int | tuple[int, ...],
    budget: OnlineBudget,
    biases: tuple[float, ...] = (),
) -> RunConfig:
    """The configuration of an online run, checked without building the run."""
    _check_agent(agent)
    if not agent.online:
        raise InputError(f"{type(agent).__name__} learns from a data set, not from {env}")
    _check_budget(budget, OnlineBudget)
    spec = _checked_spec(agent, env)
    check_online_functions(agent, spec)
    if budget.hindsight is not None:
        _check_goals(budget.hindsight, agent, env, budget.capacity)
    if agent.warm_up >= budget.steps:
        raise InputError(
            f"nothing would be learned: the warm-up is {agent.warm_up} steps,"
            f" the whole training {budget.steps}"
        )
    if budget.diagnose and (agent.continuous or not agent.tells_values):
        raise InputError(
            "diagnose compares the values of discrete actions, so it needs an agent that has them,"
            f" such as DQN, got {type(agent).__name__}"
        )
    return RunConfig(agent, env_name(env), spec, chosen_seeds(seeds), budget, biases=biases)


def decided(agent: Agent, data: Dataset) -> Agent:
    """The agent, with the shift that the data choose if it is one of ours and has `"auto"`."""
    rule = rule_on_data(agent.shift) if isinstance(agent, Online | Offline) else None
    if rule is None:
        return agent
    chosen: Any = agent
    shift = rule.shift(data.reward, data.terminated, chosen.gamma)
    return cast("Agent", replace(chosen, shift=shift))


def make_offline_config(
    agent: Agent,
    env: str | MakeEnv,
    seeds: int | tuple[int, ...],
    budget: OfflineBudget,
    data: DataConfig,
) -> RunConfig:
    """The configuration of an offline run, checked without building the run."""
    _check_agent(agent)
    if isinstance(getattr(agent, "shift", None), Cautious):
        raise InputError(f"here the shift of {type(agent).__name__} must be a number, got 'auto'")
    _check_budget(budget, OfflineBudget)
    spec = _checked_spec(agent, env)
    for name in ("updates", "evaluate_every", "checkpoint_every"):
        if getattr(budget, name) % agent.period:
            raise InputError(
                f"{name} must be a multiple of {agent.period}, the length of the update cycle of"
                f" {type(agent).__name__}, got {getattr(budget, name)}"
            )
    agent.check_offline(budget.updates)
    return RunConfig(agent, env_name(env), spec, chosen_seeds(seeds), budget, data)


def _check_goals(hindsight: Hindsight, agent: Agent, env: str | MakeEnv, capacity: int) -> None:
    """Refuses settings and tasks that do not work with hindsight."""
    if agent.n_step != 1:
        raise InputError(f"hindsight needs n_step=1, got {agent.n_step}")
    if getattr(agent, "intrinsic", None) is not None:
        raise InputError(
            "hindsight changes the goal of a transition, and an intrinsic reward belongs to the"
            f" old goal: use one of the two, got {shown(agent)}"
        )
    task = probe_goals(env)
    if task.longest is not None and capacity < task.longest:
        raise InputError(
            f"a capacity of {capacity} is too small for hindsight: an episode of {env} has"
            f" up to {task.longest} steps"
        )
    lowest, highest = task.rewards[0], task.rewards[-1]
    low, high = agent.reward_range or (lowest, highest)
    if not low <= lowest <= highest <= high:
        raise InputError(
            f"reward_range must hold the rewards of {env} before any shift, {lowest:g} to"
            f" {highest:g} and maybe more; got {low:g} to {high:g}"
        )
    if task.ends and not hindsight.success_ends:
        raise InputError(f"{env} terminates at its goal: hindsight needs success_ends")
    if hindsight.success_ends and len(task.rewards) > 2:
        raise InputError(
            f"success_ends needs rewards of two values, {env} pays more, such as"
            f" {', '.join(f'{reward:g}' for reward in task.rewards[:3])}"
        )


def _check_agent(agent: Any) -> None:
    if not isinstance(agent, Agent):
        raise InputError(
            "agent must be an agent, such as DQN(), or one of your own that extends"
            f" rewardshift.Agent, got {shown(agent)}"
        )


def _check_budget(budget: Any, kind: type) -> None:
    if not isinstance(budget, kind):
        raise InputError(f"budget must be an {kind.__name__}, got {shown(budget)}")


def _checked_spec(agent: Agent, env: str | MakeEnv) -> TaskSpec:
    """The task of an environment, if the agent can act in it."""
    spec = probe_spec(env)
    if agent.continuous != bool(spec.action_size):
        kinds = ("continuous", "discrete") if agent.continuous else ("discrete", "continuous")
        raise InputError(
            f"{type(agent).__name__} needs {kinds[0]} actions, {env} has {kinds[1]} ones"
        )
    check_functions(agent, spec)
    return spec
