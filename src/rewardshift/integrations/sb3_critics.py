"""The critics of models of Stable-Baselines3, sb3-contrib and SBX, read without changing them."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from rewardshift.errors import InputError, needs
from rewardshift.integrations.sb3_members import RandomRewardShift

with needs("sb3"):
    import torch
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import ContinuousCritic
    from stable_baselines3.dqn.policies import DQNPolicy

READABLE = "DQN, DDPG, TD3 and SAC of Stable-Baselines3 or SBX, and TQC and QR-DQN of sb3-contrib"


class Kind(NamedTuple):
    """How critics are read.

    `part` is the attribute of a policy that holds their networks. `read` returns the values of
    every critic, `[critic, batch]`, and `together` makes one of several.
    """

    part: str
    read: Callable[[Any, Any, Any, np.ndarray], np.ndarray]
    together: Callable[..., np.ndarray]


@dataclass(frozen=True)
class Critics:
    """Critics of a model; observations are the environment's, actions those of a replay buffer.

    Args:
        model: The model.
        kind: How they are read.
        networks: Their networks.
    """

    model: BaseAlgorithm
    kind: Kind
    networks: Any

    def each(self, observations: Any, actions: np.ndarray) -> np.ndarray:
        """The values of every critic, `[critic, batch]`."""
        seen = _normalised(self.model, observations)
        return self.kind.read(self.model.policy, self.networks, seen, actions)

    def value(self, observations: Any, actions: np.ndarray) -> np.ndarray:
        """The value by all critics together: the smallest, or the mean of their quantiles."""
        return self.kind.together(self.each(observations, actions), axis=0)


def critics_of(model: BaseAlgorithm, *, frozen: bool = False) -> Critics:
    """The critics of a model; frozen ones stay as they are now when it learns."""
    kind = _kind(model)
    networks = getattr(model.policy, kind.part)
    copied = frozen and kind is not SBX  # whose state never changes: the model gets another
    return Critics(model, kind, copy.deepcopy(networks) if copied else networks)


def fresh_critics(model: BaseAlgorithm, seed: int = 0) -> Critics | None:
    """Untrained critics of the same kind; None for SBX, which builds them with the model."""
    kind, policy = _kind(model), model.policy
    if kind is SBX:
        return None
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = type(policy)(**policy._get_constructor_parameters()).to(policy.device)
    made.set_training_mode(False)
    return Critics(model, kind, getattr(made, kind.part))


def policy_actions(model: BaseAlgorithm, observations: Any) -> np.ndarray:
    """The policy's actions without exploration, in the form of a replay buffer."""
    policy: Any = model.policy
    actions, _ = policy.predict(_normalised(model, observations), deterministic=True)
    continuous = isinstance(model.action_space, gym.spaces.Box)
    return np.asarray(policy.scale_action(actions) if continuous else actions)


def _normalised(model: BaseAlgorithm, observations: Any) -> Any:
    """The observations as the networks see them, under a `VecNormalize`."""
    outer = model.get_vec_normalize_env()
    return observations if outer is None else outer.normalize_obs(observations)


@torch.no_grad()
def _of_actions(policy: Any, network: Any, observations: Any, actions: np.ndarray) -> np.ndarray:
    """The values by a network with a value for each action, or with quantiles of it."""
    values = network(policy.obs_to_tensor(observations)[0])
    if values.ndim == 3:  # [batch, quantile, action]
        values = values.mean(dim=1)
    return _taken(values.cpu().numpy(), actions)


@torch.no_grad()
def _of_pairs(policy: Any, critic: Any, observations: Any, actions: np.ndarray) -> np.ndarray:
    """The values by critics of pairs: a tuple of values, or the quantiles of all critics."""
    taken = torch.as_tensor(actions, device=policy.device)
    values = critic(policy.obs_to_tensor(observations)[0], taken)
    # Quantiles are [batch, critic, quantile].
    each = torch.cat(values, dim=1) if isinstance(values, tuple) else values.mean(dim=2)
    return each.T.cpu().numpy()


def _of_sbx(policy: Any, state: Any, observations: Any, actions: np.ndarray) -> np.ndarray:
    batch, _ = policy.prepare_obs(observations)
    if isinstance(policy.action_space, gym.spaces.Discrete):
        return _taken(np.asarray(policy.qf.apply(state.params, batch)), actions)
    return np.asarray(policy.qf.apply(state.params, batch, actions))[..., 0]


def _taken(values: np.ndarray, actions: np.ndarray) -> np.ndarray:
    return np.take_along_axis(values, actions.reshape(-1, 1), axis=1).T


Q_NETWORK = Kind("q_net", _of_actions, np.min)
CRITICS = Kind("critic", _of_pairs, np.min)
# The value of a distribution is its mean; TQC's critics are pooled, so theirs is the mean of all.
QUANTILES = Kind("quantile_net", _of_actions, np.mean)
QUANTILE_CRITICS = Kind("critic", _of_pairs, np.mean)
SBX = Kind("qf_state", _of_sbx, np.min)


def _members(model: RandomRewardShift) -> Kind:
    """How the members of Random Reward Shift are read: each on the primal scale, as the leader's.

    A member's own scale is exact for `absorbing` and for tasks that never terminate.
    """
    discrete, shifts = isinstance(model.policy, DQNPolicy), model.members

    def read(policy: Any, networks: Any, observations: Any, actions: np.ndarray) -> np.ndarray:
        if discrete:
            rows = [_of_actions(policy, network, observations, actions) for network in networks]
        else:
            rows = np.split(_of_pairs(policy, networks, observations, actions), len(shifts))
        pairs = zip(shifts, rows, strict=True)
        return np.stack([shift.to_primal(values.min(axis=0)) for shift, values in pairs])

    part = "q_net" if discrete else "critic"
    return Kind(part, read, lambda values, **_: values[model.leader])


def _kind(model: BaseAlgorithm) -> Kind:
    """The kind of a model's critics; those of sb3-contrib are known by their attributes."""
    policy: Any = model.policy
    critic = getattr(policy, "critic", None)
    if isinstance(model, RandomRewardShift):
        return _members(model)
    if isinstance(policy, DQNPolicy):
        return Q_NETWORK
    if isinstance(critic, ContinuousCritic):
        return CRITICS
    if hasattr(critic, "quantiles_total"):
        return QUANTILE_CRITICS
    if hasattr(getattr(policy, "quantile_net", None), "n_quantiles"):
        return QUANTILES
    of_sbx = hasattr(policy, "qf_state") and not hasattr(policy.qf_state, "batch_stats")
    if of_sbx and not getattr(policy, "dropout_rate", None):
        return SBX
    raise InputError(
        f"{type(model).__name__} has no Q that can be read here; {READABLE} have, if they use no"
        " dropout"
    )
