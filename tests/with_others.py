"""The lines of docs/integrations.md for other libraries, with the libraries themselves.

Run it by hand in an environment of its own, because RLlib pins an older Gymnasium:
`pip install torch==2.13.0 tianshou torchrl 'ray[rllib]' pytest .`, then
`python -m pytest --noconftest --override-ini addopts= tests/with_others.py`.
"""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import ray
from gymnasium.wrappers import RecordEpisodeStatistics
from ray.rllib.algorithms.dqn import DQNConfig
from ray.tune.registry import register_env
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.utils.net.common import Net
from torchrl.envs import Compose, GymWrapper, RewardScaling, RewardSum, TransformedEnv

from rewardshift import ShiftReward

NAME = "CartPole-v1"  # pays 1 a step


def shifted(_: Any = None) -> Any:
    return ShiftReward(gym.make(NAME), -0.5)


def test_tianshou_stores_shifted_rewards_and_tells_shifted_returns() -> None:
    env, envs = shifted(), DummyVectorEnv([shifted] * 2)
    policy = DiscreteQLearningPolicy(
        model=Net(state_shape=(4,), action_shape=2, hidden_sizes=(8,)),
        action_space=env.action_space,
        observation_space=env.observation_space,
    )
    buffer = VectorReplayBuffer(2_000, 2)
    collector = Collector(policy, envs, buffer)
    collector.reset()
    found = collector.collect(n_episode=4)
    assert np.allclose(found.returns, 0.5 * found.lens)
    assert (buffer.rew[buffer.sample_indices(0)] == 0.5).all()  # all that is stored


@pytest.fixture
def cluster() -> Iterator[None]:
    ray.init(_node_ip_address="127.0.0.1", num_cpus=1, include_dashboard=False)
    yield
    ray.shutdown()


@pytest.mark.usefixtures("cluster")
def test_rllib_tells_shifted_returns() -> None:
    register_env("shifted", shifted)
    config = DQNConfig().environment("shifted").env_runners(num_env_runners=0)
    algorithm = config.training(num_steps_sampled_before_learning_starts=50).build_algo()
    found = algorithm.train()["env_runners"]
    algorithm.stop()
    assert found["episode_return_mean"] == pytest.approx(0.5 * found["episode_len_mean"])


def test_torchrl_takes_the_wrapper_or_its_own_transform() -> None:
    wrapped = GymWrapper(shifted()).rollout(5)
    assert (wrapped["next", "reward"] == 0.5).all()
    transforms = Compose(RewardSum(), RewardScaling(loc=-0.5, scale=1.0))
    found = TransformedEnv(GymWrapper(gym.make(NAME)), transforms).rollout(5)
    assert (found["next", "reward"] == 0.5).all()
    assert found["next", "episode_reward"].ravel().tolist() == [1, 2, 3, 4, 5]


def test_the_statistics_of_a_script_are_primal_inside_the_shift() -> None:
    env: Any = ShiftReward(RecordEpisodeStatistics(gym.make(NAME)), -0.5)
    env.reset(seed=0)
    rewards, ended = [], False
    while not ended:
        _, reward, terminated, truncated, info = env.step(0)
        rewards.append(reward)
        ended = terminated or truncated
    assert info["episode"]["r"] == len(rewards) == 2 * sum(rewards)
