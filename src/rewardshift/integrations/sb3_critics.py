"""The Q functions of models of Stable-Baselines3, sb3-contrib and SBX, read without changing them.

They take observations of the environment and actions in the form of a replay buffer.
"""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from rewardshift.doctor.agent_view import QFunction
from rewardshift.errors import InputError, needs
from rewardshift.integrations.sb3_members import RandomRewardShift

with needs("sb3"):
    import torch
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import ContinuousCritic
    from stable_baselines3.dqn.policies import DQNPolicy

READABLE = "DQN, DDPG, TD3 and SAC of Stable-Baselines3 or SBX, and TQC and QR-DQN of sb3-contrib"


class Kind(NamedTuple):
    """How the critics of a model are read.

    `part` is the attribute of its policy that holds their networks. `read` takes the model, such
    networks, observations and actions, and returns the values of all critics together: the
    smallest, or the mean of their quantiles. Of Random Reward Shift they are the leader's.
    """

    part: str
    read: Callable[[Any, Any, Any, np.ndarray], np.ndarray]


def q_function(model: BaseAlgorithm, *, frozen: bool = False) -> QFunction:
    """The Q function of a model; a frozen one stays as it is now when the model learns."""
    kind = _kind(model)
    networks = getattr(model.policy, kind.part)
    if frozen and kind is not SBX:  # whose state never changes: the model gets another
        networks = copy.deepcopy(networks)
    return partial(_values, model, kind, networks)


def fresh_q_function(model: BaseAlgorithm) -> QFunction | None:
    """That of untrained critics of its kind; None for SBX, which builds them with the model."""
    kind, policy = _kind(model), model.policy
    if kind is SBX:
        return None
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = type(policy)(**policy._get_constructor_parameters()).to(policy.device)
    made.set_training_mode(False)
    return partial(_values, model, kind, getattr(made, kind.part))


def policy_actions(model: BaseAlgorithm, observations: Any) -> np.ndarray:
    """The policy's actions without exploration, in the form of a replay buffer."""
    policy: Any = model.policy
    actions, _ = policy.predict(_normalised(model, observations), deterministic=True)
    continuous = isinstance(model.action_space, gym.spaces.Box)
    return np.asarray(policy.scale_action(actions) if continuous else actions)


@torch.no_grad()
def _values(
    model: BaseAlgorithm, kind: Kind, networks: Any, observations: Any, actions: np.ndarray
) -> np.ndarray:
    return kind.read(model, networks, _normalised(model, observations), actions)


def _normalised(model: BaseAlgorithm, observations: Any) -> Any:
    """The observations as the networks see them, under a `VecNormalize`."""
    outer = model.get_vec_normalize_env()
    return observations if outer is None else outer.normalize_obs(observations)


def _of_actions(model: Any, network: Any, observations: Any, actions: np.ndarray) -> np.ndarray:
    """The values by a network with a value for each action, or with quantiles of it."""
    if isinstance(model, RandomRewardShift):
        network = network[model.leader]
    values = network(model.policy.obs_to_tensor(observations)[0])
    if values.ndim == 3:  # [batch, quantile, action]
        values = values.mean(dim=1)
    return _taken(values.cpu().numpy(), actions)


def _of_pairs(model: Any, critic: Any, observations: Any, actions: np.ndarray) -> np.ndarray:
    """The values by critics of pairs: a tuple of values, or the quantiles of all critics."""
    taken = torch.as_tensor(actions, device=model.device)
    values = critic(model.policy.obs_to_tensor(observations)[0], taken)
    if not isinstance(values, tuple):  # [batch, critic, quantile]; their targets are pooled
        return values.mean(dim=(1, 2)).cpu().numpy()
    if isinstance(model, RandomRewardShift):
        twins = len(values) // len(model.members)
        values = values[twins * model.leader :][:twins]
    return torch.cat(values, dim=1).amin(dim=1).cpu().numpy()


def _of_sbx(model: Any, state: Any, observations: Any, actions: np.ndarray) -> np.ndarray:
    policy = model.policy
    batch, _ = policy.prepare_obs(observations)
    if isinstance(policy.action_space, gym.spaces.Discrete):
        return _taken(np.asarray(policy.qf.apply(state.params, batch)), actions)
    return np.asarray(policy.qf.apply(state.params, batch, actions))[..., 0].min(axis=0)


def _taken(values: np.ndarray, actions: np.ndarray) -> np.ndarray:
    return np.take_along_axis(values, actions.reshape(-1, 1), axis=1)[:, 0]


Q_NETWORK = Kind("q_net", _of_actions)
QUANTILE_NETWORK = Kind("quantile_net", _of_actions)
CRITICS = Kind("critic", _of_pairs)
SBX = Kind("qf_state", _of_sbx)


def _kind(model: BaseAlgorithm) -> Kind:
    """The kind of a model's critics; those of sb3-contrib are known by their attributes."""
    policy: Any = model.policy
    critic = getattr(policy, "critic", None)
    if isinstance(policy, DQNPolicy):
        return Q_NETWORK
    if isinstance(critic, ContinuousCritic) or hasattr(critic, "quantiles_total"):
        return CRITICS
    if hasattr(getattr(policy, "quantile_net", None), "n_quantiles"):
        return QUANTILE_NETWORK
    of_sbx = hasattr(policy, "qf_state") and not hasattr(policy.qf_state, "batch_stats")
    if of_sbx and not getattr(policy, "dropout_rate", None):
        return SBX
    raise InputError(
        f"{type(model).__name__} has no Q that can be read here; {READABLE} have, if they use no"
        " dropout"
    )
