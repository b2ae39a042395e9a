"""Transitions that the doctor looks at: of a replay, of a data set, or of the agent's episodes."""

from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from rewardshift.doctor.agent_view import AgentView
from rewardshift.episodes import Step, episode_steps
from rewardshift.errors import InputError, blaming, shown

# The columns of transitions that need as many rows as there are rewards.
_COLUMNS = ("observation", "action", "terminated", "next_observation", "ended", "settled")

# Rewards of the environment's own with more kinds than this are taken for continuous.
KINDS = 20
RANDOM_STEPS = 500


class History(NamedTuple):
    """The rewards of all transitions in their order, and which of them ended an episode.

    `ended` is as in `Transitions`; None if that is unknown.
    """

    reward: np.ndarray
    terminated: np.ndarray
    ended: np.ndarray | None = None

    def ends(self) -> np.ndarray:
        """The rows of the ends of episodes; none if they are unknown."""
        return np.flatnonzero(np.zeros(0) if self.ended is None else self.ended)

    def lengths(self) -> np.ndarray:
        """The number of steps of every episode but the first, which may have begun earlier."""
        return np.diff(self.ends())


@dataclass(frozen=True, eq=False)
class Transitions:
    """Transitions of a replay or a data set; the arrays are read, and only a sample is copied.

    Args:
        observation: One observation per row; a dict of arrays for observations with parts.
        action: The action taken, in the form that the agent's Q function takes.
        reward: The primal reward.
        terminated: Whether the transition ended in a terminal state.
        next_observation: The observation that followed, if it is stored.
        ended: Whether the episode ended after the row, for any reason. With it, rows are
            consecutive and the returns in the data are known.
        whole: The rewards and ends of all transitions, if the rows are a sample or out of order.
        settled: Whether each row belongs to the older half of the replay, so that the agent had
            the time to learn it. Without it, all do: a data set was there from the beginning.
    """

    observation: Any
    action: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    next_observation: Any = None
    ended: np.ndarray | None = None
    whole: History | None = None
    settled: np.ndarray | None = None

    def __post_init__(self) -> None:
        count = len(self.reward)
        if count == 0:
            raise InputError("there are no transitions to look at: is the replay empty?")
        for name in _COLUMNS:
            column = getattr(self, name)
            if column is not None and rows_in(column) != count:
                raise InputError(f"there are {count} rewards and {rows_in(column)} rows of {name}")
        if not np.isfinite(self.reward).all():
            raise InputError("the transitions have a reward that is not finite")

    def __len__(self) -> int:
        return len(self.reward)

    @property
    def history(self) -> History:
        """The rewards and ends of all transitions."""
        given = self.whole or (self.reward, self.terminated, self.ended)
        reward, terminated, ended = History(*given)
        known = None if ended is None else np.asarray(ended, bool)
        return History(np.asarray(reward, np.float64), np.asarray(terminated, bool), known)

    @property
    def first_observations(self) -> Any:
        """The first observations of episodes; without their ends, the first row."""
        rows = np.array([0])
        if self.ended is not None:
            rows = np.append(0, np.flatnonzero(self.ended)[:-1] + 1)
        return take(self.observation, rows[rows < len(self)])


def rows_in(column: Any) -> int:
    """The number of rows of an array, or of a dict of arrays."""
    return rows_in(next(iter(column.values()))) if isinstance(column, dict) else len(column)


def take(column: Any, rows: Any) -> Any:
    """Some rows of an array, or of a dict of arrays."""
    if isinstance(column, dict):
        return {name: part[rows] for name, part in column.items()}
    return column[rows]


def stack(observations: list[Any]) -> Any:
    """A batch of observations, each an array or a dict of arrays."""
    if isinstance(observations[0], dict):
        return {name: stack([one[name] for one in observations]) for name in observations[0]}
    return np.stack([np.asarray(one) for one in observations])


def play_episodes(
    agent: AgentView,
    env: gym.Env[Any, Any],
    episodes: int,
    steps: int,
    seed: int | None = None,
) -> Transitions:
    """The transitions of episodes of the agent's policy, with primal rewards.

    Args:
        agent: The agent.
        env: An environment of its own; a shift around it is undone.
        episodes: The number of episodes.
        steps: The most steps of all of them; the last episode is cut there.
        seed: The seed of the first reset, if it has one.
    """

    def act(observation: Any) -> Any:
        return np.asarray(agent.act(stack([observation])))[0]

    played: list[Step] = []
    ends: list[int] = []  # the last step of each episode
    for number in range(episodes):
        if len(played) == steps:
            break
        with blaming(f"the environment {env}, when reset,"):
            first, _ = env.reset(seed=seed if number == 0 else None)
        episode = episode_steps(env, act, first, agent.agent_observation, agent.env_action)
        played += islice(episode, steps - len(played))
        ends.append(len(played) - 1)
    return Transitions(
        observation=stack([step.observation for step in played]),
        action=np.asarray([step.action for step in played]),
        reward=np.array([step.reward for step in played]),
        terminated=np.array([step.terminated for step in played]),
        next_observation=stack([step.next_observation for step in played]),
        ended=np.isin(np.arange(len(played)), ends),
    )


def check_env(agent: AgentView, env: gym.Env[Any, Any], seed: int) -> None:
    """Raises if the agent cannot act in an environment."""
    if not isinstance(env, gym.Env):
        raise InputError(f"env must be one Gymnasium environment, got {shown(env)}")
    one = agent.env_action(agent.random_actions(1, np.random.default_rng(0))[0])
    fits = np.shape(one) == env.action_space.shape and one in env.action_space
    if isinstance(agent.actions, gym.spaces.Discrete):
        fits = agent.actions == env.action_space
    if not fits:
        raise InputError(
            f"the agent acts in {agent.actions}, which does not fit the environment {env} with"
            f" {env.action_space}"
        )
    with blaming(f"the environment {env}, when reset,"):
        raw, _ = env.reset(seed=seed)
    try:
        acted = np.shape(agent.act(stack([agent.agent_observation(raw)])))
    except Exception as error:
        raise InputError(
            f"the agent cannot act on observations of {env}, {env.observation_space}:"
            f" {type(error).__name__}"
        ) from error
    if acted[:1] != (1,):
        raise InputError(f"the policy must return a batch of actions, got the shape {acted} for 1")


def foreign_rewards(
    agent: AgentView, env: gym.Env[Any, Any], data: Transitions, played: Transitions, seed: int
) -> float | None:
    """The share of rewards in the data that the environment does not pay.

    None if the environment pays more than a few kinds of rewards: then nobody can tell.

    Args:
        agent: The agent, whose random actions are tried if its own pay other rewards.
        env: The environment.
        data: What the agent learned from.
        played: Its episodes.
        seed: The seed of the random actions.
    """
    stored, paid = data.history.reward, np.unique(played.reward)
    if len(paid) <= KINDS and _outside(stored, paid) > 0:
        rng = np.random.default_rng([0xF0, seed])
        wandering = replace(agent, act=lambda seen: agent.random_actions(rows_in(seen), rng))
        tried = play_episodes(wandering, env, RANDOM_STEPS, RANDOM_STEPS)
        paid = np.union1d(paid, tried.reward)
    return _outside(stored, paid) if len(paid) <= KINDS else None


def _outside(stored: np.ndarray, paid: np.ndarray) -> float:
    """The share of rewards that are none of these, up to the rounding of a replay."""
    near, room = np.zeros(len(stored), bool), 1e-5 * np.abs(paid).max()
    for value in paid:
        near |= np.abs(stored - value) <= room
    return float(1 - near.mean())
