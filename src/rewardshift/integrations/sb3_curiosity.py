"""A curiosity bonus for the off-policy agents of Stable-Baselines3, in their replay buffer.

Random Network Distillation is https://arxiv.org/abs/1810.12894. As in the code of the
reward-shifting paper, https://arxiv.org/abs/2209.07288, the error is the sum over the outputs, at
most 1, and not normalised.
"""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from rewardshift.checks import Count, Positive, checked
from rewardshift.errors import InputError, needs, shown
from rewardshift.shift import Shift, as_single_shift

with needs("sb3"):
    import torch
    from stable_baselines3.common.buffers import ReplayBuffer
    from stable_baselines3.common.preprocessing import get_flattened_obs_dim, preprocess_obs
    from stable_baselines3.common.torch_layers import create_mlp
    from stable_baselines3.common.type_aliases import ReplayBufferSamples


class CuriousReplayBuffer(ReplayBuffer):
    """A replay buffer that adds the bonus of Random Network Distillation to sampled rewards.

    The bonus of a state is `min(||phi_1(s) - phi_2(s)||^2, 1) + shift`, from 0 to 1 before the
    shift. It is computed for each sampled batch by the present predictor, which then learns from
    that batch by one step. The rewards in the buffer stay as they are, and so do the returns in the
    log. The networks see observations as those of the agent do: images divided by 255, a `Discrete`
    as one-hot. They are saved and loaded with the buffer.

    Pass it to an agent as `replay_buffer_class=CuriousReplayBuffer`, with its arguments as
    `replay_buffer_kwargs={"shift": -1.0}`.

    Args:
        buffer_size, observation_space, args: The arguments of `ReplayBuffer`.
        shift: The shift of the bonus: a number or a `Shift`, whose scale is the weight of the
            bonus. 0 is the original; the paper's "RND -1.0" uses -1, which makes the bonus negative
            everywhere and the agent optimistic.
        width: The width of the hidden layers and of the output.
        learning_rate: Adam's learning rate for the predictor.
        kwargs: The keyword arguments of `ReplayBuffer`.

    >>> from stable_baselines3 import DQN
    >>> model = DQN(
    ...     "MlpPolicy",
    ...     "CartPole-v1",
    ...     replay_buffer_class=CuriousReplayBuffer,
    ...     replay_buffer_kwargs={"shift": -1.0, "width": 16},
    ... )
    >>> buffer = model.learn(200).replay_buffer
    >>> float(buffer.rewards[:200].mean()), float(buffer.sample(64).rewards.mean()) < 1
    (1.0, True)
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: gym.Space[Any],
        *args: Any,
        shift: float | Mapping[str, Any] | Shift = 0.0,
        width: int = 512,
        learning_rate: float = 1e-4,
        **kwargs: Any,
    ) -> None:
        self.shift = as_single_shift(shift)
        if self.shift.terminal == "goal":
            raise InputError(
                "a bonus hides which ends are goals: its shift needs terminal='zero' or"
                f" 'absorbing', got {self.shift}"
            )
        width = checked("width", Count, width)
        learning_rate = checked("learning_rate", Positive, learning_rate)
        if isinstance(observation_space, gym.spaces.Dict):
            raise InputError(
                "CuriousReplayBuffer takes no goals, which HerReplayBuffer relabels, and no other"
                f" Dict: put FlattenObservation around it, got {shown(observation_space)}"
            )
        super().__init__(buffer_size, observation_space, *args, **kwargs)
        sizes = get_flattened_obs_dim(observation_space), width, [width, width]
        # Drawn beside the agent's random numbers, so that its own networks stay the same.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(torch.initial_seed() + 1)
            fixed, predictor = (torch.nn.Sequential(*create_mlp(*sizes)) for _ in range(2))
        self.fixed, self.predictor = fixed.to(self.device), predictor.to(self.device)
        self.optimiser = torch.optim.Adam(self.predictor.parameters(), learning_rate)

    def bonus(self, observations: torch.Tensor) -> torch.Tensor:
        """The novelty of observations, `[batch, 1]`, from 0 to 1 and not shifted."""
        with torch.no_grad():
            return self._error(observations).clamp(max=1.0)

    def sample(self, batch_size: int, env: Any = None) -> ReplayBufferSamples:
        """A batch with the shifted bonus in its rewards; the predictor learns from it."""
        batch = super().sample(batch_size, env)
        bonus = self.shift.reward(self.bonus(batch.observations), batch.dones)
        self.optimiser.zero_grad()
        loss: Any = self._error(batch.observations).mean()
        loss.backward()
        self.optimiser.step()
        return batch._replace(rewards=batch.rewards + bonus)

    def _error(self, observations: torch.Tensor) -> torch.Tensor:
        inputs: Any = preprocess_obs(observations, self.observation_space)
        inputs = inputs.flatten(start_dim=1)
        with torch.no_grad():
            goal = self.fixed(inputs)
        return ((self.predictor(inputs) - goal) ** 2).sum(dim=1, keepdim=True)
