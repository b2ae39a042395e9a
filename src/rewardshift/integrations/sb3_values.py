"""The critics of models of Stable-Baselines3 and SBX, read without changing them."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

from rewardshift.errors import InputError
from rewardshift.extras import needs

with needs("sb3"):
    import torch
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import ContinuousCritic
    from stable_baselines3.dqn.policies import DQNPolicy

# The values of every critic, `[critic, batch]`, for actions in the form of a replay buffer.
Critics = Callable[[Any, np.ndarray], np.ndarray]


def critics_of(model: BaseAlgorithm) -> Critics:
    """The critics of a model, which follow its training."""
    _parts(model)  # raises if there are none

    def critics(observations: Any, actions: np.ndarray) -> np.ndarray:
        read, networks = _parts(model)  # again: SBX replaces its parameters
        return read(model.policy, networks, observations, actions)

    return critics


def frozen_critics(model: BaseAlgorithm) -> Critics:
    """The critics of a model as they are now."""
    read, networks = _parts(model)
    return partial(read, model.policy, networks if read is _of_sbx else copy.deepcopy(networks))


def fresh_critics(model: BaseAlgorithm, seed: int = 0) -> Critics | None:
    """Untrained critics of the same kind; None for SBX, which builds them with the model."""
    read, _ = _parts(model)
    if read is _of_sbx:
        return None
    policy: Any = model.policy
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = type(policy)(**policy._get_constructor_parameters()).to(policy.device)
    made.set_training_mode(False)
    return partial(read, made, made.q_net if read is _of_q_network else made.critic)


def _parts(model: BaseAlgorithm) -> tuple[Any, Any]:
    """A function that reads the critics, and their networks or parameters."""
    policy: Any = model.policy
    if isinstance(policy, DQNPolicy):
        return _of_q_network, policy.q_net
    if isinstance(getattr(policy, "critic", None), ContinuousCritic):
        return _of_critics, policy.critic
    of_sbx = hasattr(policy, "qf_state") and not hasattr(policy.qf_state, "batch_stats")
    if of_sbx and not getattr(policy, "dropout_rate", None):
        return _of_sbx, policy.qf_state.params
    raise InputError(
        f"{type(model).__name__} has no Q that can be read here;"
        " DQN, DDPG, TD3 and SAC of Stable-Baselines3 or SBX have, if they use no dropout"
    )


@torch.no_grad()
def _of_q_network(policy: Any, network: Any, observations: Any, actions: np.ndarray) -> np.ndarray:
    values = network(policy.obs_to_tensor(observations)[0])
    return _taken(values.cpu().numpy(), actions)


@torch.no_grad()
def _of_critics(policy: Any, critic: Any, observations: Any, actions: np.ndarray) -> np.ndarray:
    taken = torch.as_tensor(actions, device=policy.device)
    values = critic(policy.obs_to_tensor(observations)[0], taken)
    return torch.cat(values, dim=1).T.cpu().numpy()


def _of_sbx(policy: Any, parameters: Any, observations: Any, actions: np.ndarray) -> np.ndarray:
    batch, _ = policy.prepare_obs(observations)
    if isinstance(policy.action_space, gym.spaces.Discrete):
        return _taken(np.asarray(policy.qf.apply(parameters, batch)), actions)
    return np.asarray(policy.qf.apply(parameters, batch, actions))[..., 0]


def _taken(values: np.ndarray, actions: np.ndarray) -> np.ndarray:
    return np.take_along_axis(values, actions.reshape(-1, 1), axis=1).T
