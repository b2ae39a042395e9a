"""Random Reward Shift for Stable-Baselines3: TD3, SAC and DQN with one member for each shift.

It is Algorithm 1 of https://arxiv.org/abs/2209.07288, with the discount and the second critic that
the algorithm as printed leaves out. Each `train` follows its parent's line by line; with one member
and a shift of 0 it does the same arithmetic.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from rewardshift.checks import Natural, checked
from rewardshift.errors import InputError, needs, shown
from rewardshift.integrations.sb3_curiosity import CuriousReplayBuffer
from rewardshift.integrations.sb3_wrapper import shifts_around
from rewardshift.shift import Shift, as_shift, as_single_shift
from rewardshift.wrappers import refuse_second_shift

with needs("sb3"):
    import torch
    from stable_baselines3 import DQN, SAC, TD3
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
    from stable_baselines3.common.policies import BasePolicy
    from stable_baselines3.common.utils import polyak_update
    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.dqn import policies as dqn
    from torch import nn
    from torch.nn.functional import mse_loss, smooth_l1_loss

Losses = defaultdict[str, list[float]]  # by the name in the log


class RandomRewardShift(OffPolicyAlgorithm):
    """The members of an agent and the one that leads, for `RRSTD3`, `RRSSAC` and `RRSDQN`.

    All members learn from the same transitions, whose rewards stay primal in the replay buffer.
    Each member's shift is applied where its target is formed. The policy follows the leader. With
    several environments one leader acts in all of them, and every episode that ends counts.

    The log has the leader as ``rollout/leader``, and each member's mean value of the actions in a
    batch, on its own shifted scale, as ``train/value_0``, ``train/value_1`` and so on.

    Args:
        args: The arguments of the parent.
        shifts: The shift of each member: a number, or a `Shift`, whose discount is the model's and
            may be left out.
        lead_steps: The minimum number of environment steps that a member leads.
        lead_episodes: The minimum number of episodes that a member leads. A leader is drawn at the
            end of an episode; 0 allows it within one.
        kwargs: The keyword arguments of the parent. `seed` fixes the draws of the leader as well.
    """

    def __init__(
        self,
        *args: Any,
        shifts: float | Shift | Sequence[float | Shift] | np.ndarray = (),
        lead_steps: int = 1000,
        lead_episodes: int = 1,
        **kwargs: Any,
    ) -> None:
        self.shifts: Any = shifts
        self.lead_steps, self.lead_episodes, self.leader = lead_steps, lead_episodes, -1
        super().__init__(*args, **kwargs)

    def _setup_model(self) -> None:
        self._check()
        given, self.policy_kwargs = self.policy_kwargs, self._kwargs_of_policy()
        super()._setup_model()
        self.policy_kwargs = given  # a model that is loaded is set up again, with what is saved
        if self.leader < 0:
            self._generator = np.random.default_rng(self.seed)
            self._draw_leader()

    def _check(self) -> None:
        """Refuses what cannot work, and makes the members."""
        self.lead_steps = checked("lead_steps", Natural, self.lead_steps)
        self.lead_episodes = checked("lead_episodes", Natural, self.lead_episodes)
        name, many = type(self).__name__, isinstance(self.shifts, list | tuple | np.ndarray)
        self.members = list(map(self._member, self.shifts if many else [self.shifts]))
        if not self.members:
            raise InputError(f"{name} needs a shift for each member, as shifts=(-0.5, 0.0, 0.5)")
        base = self.policy_aliases["MlpPolicy"]
        if not issubclass(self.policy_class, base):
            raise InputError(
                f"{name} takes {', '.join(self.policy_aliases)} or a class that extends"
                f" {base.__module__}.{base.__name__}, got {shown(self.policy_class)}"
            )

    def _member(self, given: Any) -> Shift:
        """A member's shift with the model's discount."""
        shift, gamma = as_shift(given), self.gamma if self.gamma < 1 else None
        if shift.gamma not in (None, gamma):
            raise InputError(
                f"the discount of a shift must be the model's, gamma={self.gamma}, or left out,"
                f" got {shift}"
            )
        if shift.terminal == "goal" and self.replay_buffer_class is CuriousReplayBuffer:
            raise InputError(
                "terminal='goal' knows goals by their rewards, which a CuriousReplayBuffer changes:"
                f" use 'zero' or 'absorbing', got {shift}"
            )
        member = as_single_shift(replace(shift, gamma=gamma))
        if max(getattr(self, "n_steps", 1), self.replay_buffer_kwargs.get("n_steps", 1)) > 1:
            member.multistep_return(0.0, 1)  # refuses what has none
        return member

    @staticmethod
    def _wrap_env(env: Any, verbose: int = 0, monitor_wrapper: bool = True) -> VecEnv:
        # The parent calls this with every environment that it is given.
        venv = OffPolicyAlgorithm._wrap_env(env, verbose, monitor_wrapper)
        refuse_second_shift(venv, next(iter(shifts_around(venv)), None))
        return venv

    def _kwargs_of_policy(self) -> dict[str, Any]:
        """The arguments of a policy with networks for all members: here critics of pairs."""
        twins = self.policy_kwargs.get("n_critics", 2)
        return {**self.policy_kwargs, "n_critics": twins * len(self.members)}

    def _update_info_buffer(self, infos: Any, dones: Any = None) -> None:
        # The parent calls this at every step, with the ends of episodes.
        super()._update_info_buffer(infos, dones)
        self._led += len(dones), np.count_nonzero(dones)
        at_end = np.any(dones) or not self.lead_episodes
        if at_end and (self._led >= (self.lead_steps, self.lead_episodes)).all():
            self._draw_leader()
        self.logger.record("rollout/leader", self.leader)

    def _draw_leader(self) -> None:
        self._led = np.zeros(2, dtype=int)  # steps and episodes
        self.leader = int(self._generator.integers(len(self.members)))

    def _sample(self, size: int) -> Any:
        buffer: Any = self.replay_buffer
        return buffer.sample(size, env=self._vec_normalize_env)

    def _targets(self, batch: Any, following: Iterable[Any]) -> list[torch.Tensor]:
        """The members' targets, from the values of the following states on their own scales."""
        discounts = getattr(batch, "discounts", None)  # of returns of several steps
        discount = self.gamma if discounts is None else discounts
        return [
            _shifted(shift, batch, discounts) + (1 - batch.dones) * discount * value
            for shift, value in zip(self.members, following, strict=True)
        ]

    def _record(self, losses: Mapping[str, list[float]], values: Iterable[Any]) -> None:
        """Logs what the parent logs, and the members' values."""
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        for name, found in losses.items():
            self.logger.record(f"train/{name}", np.mean(found))
        for member, value in enumerate(values):
            self.logger.record(f"train/value_{member}", value.mean().item())


class ManyCritics(RandomRewardShift):
    """What `RRSTD3` and `RRSSAC` share: critics of pairs, the parent's with more networks.

    The minimum is taken within a pair, never across members. Members share a features extractor
    that has weights, as the twins of the parent do.
    """

    critic: Any
    critic_target: Any

    def _values(self, critic: Any, observations: Any, actions: torch.Tensor) -> Any:
        """The values of all critics, `[member, twin, batch, 1]`."""
        values = torch.stack(critic(observations, actions))
        return values.view(len(self.members), -1, *values.shape[1:])

    def _leading(self, batch: Any, actions: torch.Tensor) -> torch.Tensor:
        """The values of the leader's critics, `[twin, batch, 1]`, for the policy to maximise."""
        with torch.no_grad():
            extractor = self.critic.features_extractor
            features = self.critic.extract_features(batch.observations, extractor)
        inputs = torch.cat([features, actions], dim=1)
        twins = self.critic.n_critics // len(self.members)
        first = twins * self.leader
        return torch.stack([q(inputs) for q in self.critic.q_networks[first : first + twins]])

    def _improve_critics(self, values: Any, targets: list[torch.Tensor], weight: float) -> float:
        """One step of all critics, each towards its member's target; returns the loss."""
        members = zip(values, targets, strict=True)
        errors = [mse_loss(value, target) for twins, target in members for value in twins]
        return _descend(self.critic.optimizer, weight * sum(errors))


class RRSTD3(ManyCritics, TD3):
    """TD3 of Stable-Baselines3 with a pair of critics for each shift; see `RandomRewardShift`.

    The policy follows the first critic of the leader.

    >>> model = RRSTD3("MlpPolicy", "Pendulum-v1", shifts=(-0.5, 0.0, 0.5), seed=0)
    >>> model.critic.n_critics, model.leader
    (6, 2)
    """

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """See the parent."""
        self.policy.set_training_mode(True)
        self._update_learning_rate([self.actor.optimizer, self.critic.optimizer])
        losses: Losses = defaultdict(list)
        for _ in range(gradient_steps):
            self._n_updates += 1
            batch = self._sample(batch_size)
            following = batch.next_observations
            with torch.no_grad():
                noise = batch.actions.clone().data.normal_(0, self.target_policy_noise)
                noise = noise.clamp(-self.target_noise_clip, self.target_noise_clip)
                actions = (self.actor_target(following) + noise).clamp(-1, 1)
                worth = self._values(self.critic_target, following, actions).amin(dim=1)
                targets = self._targets(batch, worth)
            values = self._values(self.critic, batch.observations, batch.actions)
            losses["critic_loss"].append(self._improve_critics(values, targets, 1.0))
            if self._n_updates % self.policy_delay == 0:
                loss = -self._leading(batch, self.actor(batch.observations))[0].mean()
                losses["actor_loss"].append(_descend(self.actor.optimizer, loss))
                polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
                polyak_update(self.actor.parameters(), self.actor_target.parameters(), self.tau)
                polyak_update(self.critic_batch_norm_stats, self.critic_batch_norm_stats_target, 1)
                polyak_update(self.actor_batch_norm_stats, self.actor_batch_norm_stats_target, 1)
        self._record(losses, values)


class RRSSAC(ManyCritics, SAC):
    """SAC of Stable-Baselines3 with a pair of critics for each shift; see `RandomRewardShift`.

    The policy follows the lower critic of the leader.
    """

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        """See the parent."""
        self.policy.set_training_mode(True)
        tuned = [] if self.ent_coef_optimizer is None else [self.ent_coef_optimizer]
        self._update_learning_rate([self.actor.optimizer, self.critic.optimizer, *tuned])
        losses: Losses = defaultdict(list)
        for step in range(gradient_steps):
            batch = self._sample(batch_size)
            following = batch.next_observations
            if self.use_sde:
                self.actor.reset_noise()
            actions, density = self.actor.action_log_prob(batch.observations)
            density = density.reshape(-1, 1)
            temperature = self._tune(density, losses)
            losses["ent_coef"].append(temperature.item())
            with torch.no_grad():
                next_actions, next_density = self.actor.action_log_prob(following)
                worth = self._values(self.critic_target, following, next_actions).amin(dim=1)
                targets = self._targets(batch, worth - temperature * next_density.reshape(-1, 1))
            values = self._values(self.critic, batch.observations, batch.actions)
            losses["critic_loss"].append(self._improve_critics(values, targets, 0.5))
            lower = self._leading(batch, actions).min(dim=0).values
            loss = (temperature * density - lower).mean()
            losses["actor_loss"].append(_descend(self.actor.optimizer, loss))
            if step % self.target_update_interval == 0:
                polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
                polyak_update(self.batch_norm_stats, self.batch_norm_stats_target, 1)
        self._n_updates += gradient_steps
        self._record(losses, values)

    def _tune(self, density: torch.Tensor, losses: Losses) -> Any:
        """The temperature, before its own step if it is tuned."""
        if self.log_ent_coef is None:
            return self.ent_coef_tensor
        temperature = torch.exp(self.log_ent_coef.detach())
        loss = -(self.log_ent_coef * (density + float(self.target_entropy)).detach()).mean()
        losses["ent_coef_loss"].append(_descend(self.ent_coef_optimizer, loss))
        return temperature


class QNetworks(nn.ModuleList):
    """The Q network of each member. Used as a Q network, it is that of the leader."""

    leader: torch.Tensor

    def __init__(self, networks: Iterable[nn.Module]) -> None:
        super().__init__(networks)
        self.register_buffer("leader", torch.zeros((), dtype=torch.long))

    def set_training_mode(self, mode: bool) -> None:
        """See the networks."""
        self.train(mode)

    def forward(self, observations: Any) -> torch.Tensor:
        """The leader's values of all actions."""
        network: Any = self[int(self.leader)]
        return network(observations)

    def _predict(self, observations: Any, deterministic: bool = True) -> torch.Tensor:
        return self(observations).argmax(dim=1)


class MlpPolicy(dqn.DQNPolicy):
    """The policy of `RRSDQN`, with a Q network for each member."""

    def __init__(self, *args: Any, members: int = 1, **kwargs: Any) -> None:
        self.members = members
        super().__init__(*args, **kwargs)

    def make_q_net(self) -> Any:
        """The networks of all members."""
        return QNetworks([super(MlpPolicy, self).make_q_net() for _ in range(self.members)])

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "members": self.members}


class CnnPolicy(MlpPolicy, dqn.CnnPolicy):
    """`MlpPolicy` for images."""


class MultiInputPolicy(MlpPolicy, dqn.MultiInputPolicy):
    """`MlpPolicy` for observations that are a Dict."""


class RRSDQN(RandomRewardShift, DQN):
    """DQN of Stable-Baselines3 with a network for each shift; see `RandomRewardShift`.

    The leader chooses the actions.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": MlpPolicy,
        "CnnPolicy": CnnPolicy,
        "MultiInputPolicy": MultiInputPolicy,
    }
    q_net: Any
    q_net_target: Any

    def _kwargs_of_policy(self) -> dict[str, Any]:
        return {**self.policy_kwargs, "members": len(self.members)}

    def _draw_leader(self) -> None:
        super()._draw_leader()
        self.q_net.leader.fill_(self.leader)  # the policy acts by it, without the model too

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """See the parent."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        losses: Losses = defaultdict(list)
        for _ in range(gradient_steps):
            batch = self._sample(batch_size)
            with torch.no_grad():
                following = [network(batch.next_observations) for network in self.q_net_target]
                worth = [values.max(dim=1, keepdim=True).values for values in following]
                targets = self._targets(batch, worth)
            actions = batch.actions.long()
            values = [network(batch.observations).gather(1, actions) for network in self.q_net]
            loss: Any = sum(map(smooth_l1_loss, values, targets))
            losses["loss"].append(loss.item())
            self.policy.optimizer.zero_grad()
            loss.backward()
            for network in self.q_net:  # each within the bound that it would have alone
                nn.utils.clip_grad_norm_(network.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
        self._n_updates += gradient_steps
        self._record(losses, values)


def _shifted(shift: Shift, batch: Any, discounts: Any) -> torch.Tensor:
    """The rewards of a batch, or its returns of several steps, as a member sees them."""
    if discounts is None:
        return shift.reward(batch.rewards, batch.dones)
    steps = (discounts.log() / discounts.new_tensor(shift.gamma).log()).round()
    return shift.multistep_return(batch.rewards, steps, batch.dones)


def _descend(optimiser: Any, loss: Any) -> float:
    """One step of an optimiser; returns the loss."""
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss.item()
