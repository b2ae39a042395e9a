"""A log of the estimates of Stable-Baselines3 and SBX beside the returns that followed."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rewardshift.doctor.measure import discounted_returns
from rewardshift.errors import needs
from rewardshift.integrations.sb3_critics import critics_of, policy_actions
from rewardshift.integrations.sb3_members import RandomRewardShift
from rewardshift.integrations.sb3_wrapper import check

with needs("sb3"):
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm


class OverestimationCallback(BaseCallback):
    """Logs an agent's estimates of its actions beside the returns that followed.

    At the end of an episode, ``shift/q_estimate`` is the mean over its steps of the Q of the action
    taken, by the networks at that step. ``shift/return_that_followed`` is the mean of the
    discounted returns, on the agent's shifted scale. ``shift/overestimation`` is their difference,
    negative for an underestimation. A line of the log has the means over the episodes since the
    line before.

    It takes the smallest of several critics, as targets do, and the mean of quantiles. A time limit
    is not an end: there the return continues with the estimate of the last state, so the difference
    is understated if the limit is shorter than ``1 / (1 - gamma)`` steps. The actions are those of
    training, so their noise is in the returns. The Q of SAC and TQC counts their entropy, the
    returns do not.

    It works for DQN, DDPG, TD3 and SAC, of Stable-Baselines3 and of SBX, and for TQC and QR-DQN of
    sb3-contrib, and refuses the models that `check` refuses. Of an agent with members, such as
    `RRSTD3`, the estimate is the leader's, all on the primal scale; ``shift/q_estimate_0`` and so
    on are those of each member at every step.

    >>> from stable_baselines3 import DQN
    >>> model = DQN("MlpPolicy", "CartPole-v1", learning_starts=10, seed=0)
    >>> _ = model.learn(50, callback=OverestimationCallback(), log_interval=1000)
    >>> sorted(key for key in model.logger.name_to_value if key.startswith("shift/"))
    ['shift/overestimation', 'shift/q_estimate', 'shift/return_that_followed']
    """

    model: OffPolicyAlgorithm

    def _init_callback(self) -> None:
        check(self.model)
        self._critics = critics_of(self.model)

    def _on_training_start(self) -> None:
        # Forgets earlier steps: a return needs only later ones.
        count = self.training_env.num_envs
        self._estimates: list[list[float]] = [[] for _ in range(count)]
        self._rewards: list[list[float]] = [[] for _ in range(count)]

    def _on_step(self) -> bool:
        # Called before the agent updates it, so this is still the observation of the action.
        observation = self.model._last_obs
        each = self._critics.each(observation, self.locals["buffer_actions"])
        estimates = self._critics.kind.together(each, axis=0)
        if isinstance(self.model, RandomRewardShift):
            for member, values in enumerate(each):
                self.logger.record_mean(f"shift/q_estimate_{member}", float(values.mean()))
        for row, done in enumerate(self.locals["dones"]):
            self._estimates[row].append(float(estimates[row]))
            self._rewards[row].append(float(self.locals["rewards"][row]))
            if done:
                self._log(row, self._what_follows(self.locals["infos"][row]))
        return True

    def _what_follows(self, info: Mapping[str, Any]) -> float:
        """0 after a terminal state; after a time limit, the estimate of the last state."""
        if not info.get("TimeLimit.truncated", False):
            return 0.0
        last = info["terminal_observation"]
        action = policy_actions(self.model, last)
        return float(self._critics.value(last, action[None])[0])

    def _log(self, row: int, following: float) -> None:
        estimates, rewards = np.array(self._estimates[row]), np.array(self._rewards[row])
        last = np.arange(len(rewards)) == len(rewards) - 1
        returns = discounted_returns(rewards, self.model.gamma, last, following * last)
        estimate, followed = float(estimates.mean()), float(returns.mean())
        self.logger.record_mean("shift/q_estimate", estimate)
        self.logger.record_mean("shift/return_that_followed", followed)
        self.logger.record_mean("shift/overestimation", estimate - followed)
        self._estimates[row].clear()
        self._rewards[row].clear()
