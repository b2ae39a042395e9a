"""Random Reward Shift for Stable-Baselines3: each member is its parent with shifted rewards."""

import copy
import random
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.wrappers import TimeLimit
from probes import short_cartpole
from stable_baselines3 import DQN, SAC, TD3, HerReplayBuffer
from stable_baselines3.common.buffers import NStepReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import FakeImageEnv, SimpleMultiObsEnv
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecNormalize
from stable_baselines3.ppo import MlpPolicy as OnPolicy

from rewardshift import InputError, Shift, ShiftReward
from rewardshift.envs.goals import BitFlip
from rewardshift.integrations.sb3 import (
    RRSDQN,
    RRSSAC,
    RRSTD3,
    CuriousReplayBuffer,
    VecShiftReward,
)
from rewardshift.integrations.sb3_doctor import agent_view, doctor

PAIRS = [(TD3, RRSTD3), (SAC, RRSSAC), (DQN, RRSDQN)]
AGENTS = [RRSTD3, RRSSAC, RRSDQN]
SHIFTS = (-0.5, 0.0, 0.5)
SMALL: dict[str, Any] = {
    "learning_starts": 20,
    "batch_size": 16,
    "buffer_size": 1000,
    "train_freq": 1,
    "seed": 0,
    "device": "cpu",
}


def bits(*, discrete: bool) -> gym.Env[Any, Any]:
    """Bit flipping, by a number in [-1, 1] if actions are continuous."""
    env: Any = BitFlip(bits=4)
    if not discrete:
        number = lambda action: min(3, int(2 * action[0] + 2))  # noqa: E731
        env = gym.wrappers.TransformAction(env, number, gym.spaces.Box(-1, 1, (1,)))
    return TimeLimit(env, 8)


def is_discrete(algorithm: Any) -> bool:
    return issubclass(algorithm, DQN)


def task(algorithm: Any) -> gym.Env[Any, Any]:
    """Episodes of 12 steps or fewer."""
    if is_discrete(algorithm):
        return short_cartpole()
    return TimeLimit(gym.make("Pendulum-v1").unwrapped, 12)


def made(algorithm: Any, policy: Any = "MlpPolicy", env: Any = None, **more: Any) -> Any:
    own: dict[str, Any] = {"policy_kwargs": {"net_arch": [16]}}  # which Stable-Baselines3 changes
    if is_discrete(algorithm):
        own["target_update_interval"] = 10
    return algorithm(policy, env or task(algorithm), **{**SMALL, **own, **more})


def assert_same(this: Any, other: Any) -> None:
    """All parameters of two models, targets included, are equal, bit for bit."""
    pairs = zip(this.policy.parameters(), other.policy.parameters(), strict=True)
    assert all(torch.equal(one, two) for one, two in pairs)


@pytest.mark.parametrize(
    "more", [{}, {"n_steps": 3}, {"env": 3}, {"gradient_steps": 2}, {"around": VecNormalize}]
)
@pytest.mark.parametrize(("parent", "ours"), PAIRS)
def test_one_member_without_a_shift_is_the_parent(parent: Any, ours: Any, more: Any) -> None:
    count, around = more.get("env", 1), more.get("around", lambda venv: venv)
    more = {name: value for name, value in more.items() if name != "around"}

    def venv() -> Any:
        return around(make_vec_env(partial(task, parent), n_envs=count, seed=1))

    if not is_discrete(parent):
        noise = {"action_noise": NormalActionNoise(np.zeros(1), 0.1 * np.ones(1))}
        more = {**more, **(noise if parent is TD3 else {"use_sde": True})}
    theirs = made(parent, **{**more, "env": venv()}).learn(20 + 200 * count)
    more["env"] = venv()
    model = made(ours, shifts=Shift(0.0, terminal="absorbing"), **more).learn(20 + 200 * count)
    assert model._n_updates == theirs._n_updates >= 200
    assert_same(model, theirs)
    first = theirs.replay_buffer.observations
    np.testing.assert_array_equal(first, model.replay_buffer.observations)


@pytest.mark.parametrize(("parent", "ours"), PAIRS)
@pytest.mark.parametrize("kind", ["CnnPolicy", "MultiInputPolicy", "hindsight"])
def test_images_and_dicts_and_hindsight(parent: Any, ours: Any, kind: str) -> None:
    """As the parent with one member; three members are made, trained, saved and loaded."""
    flag, more = is_discrete(parent), {}
    env: Any = partial(SimpleMultiObsEnv, random_start=False, discrete_actions=flag)
    if kind == "CnnPolicy":
        env = partial(images, discrete=flag)
    if kind == "hindsight":
        env = partial(bits, discrete=flag)
        more = {"replay_buffer_class": HerReplayBuffer}
    policy = "CnnPolicy" if kind == "CnnPolicy" else "MultiInputPolicy"

    def venv() -> Any:
        set_random_seed(0)  # two of these environments draw when they are made
        return make_vec_env(env, seed=0)

    theirs = made(parent, policy, venv(), buffer_size=100, **more).learn(26)
    assert_same(theirs, made(ours, policy, venv(), buffer_size=100, shifts=0, **more).learn(26))
    several = made(ours, policy, venv(), buffer_size=100, shifts=SHIFTS, **more).learn(26)
    action = several.predict(venv().reset(), deterministic=True)[0]
    assert action.shape == theirs.predict(venv().reset(), deterministic=True)[0].shape


def images(*, discrete: bool) -> gym.Env[Any, Any]:
    env = FakeImageEnv(screen_height=36, screen_width=36, n_channels=1, discrete=discrete)
    env.observation_space.seed(0)  # its observations are samples
    return env


COUNT, UPDATES = 16, 3


def networks_of(model: Any, member: int = 0) -> list[torch.nn.Module]:
    """The networks of a member and their targets, the policy first; of a parent, all."""
    if is_discrete(type(model)):
        both = (model.q_net, model.q_net_target)
        return [net[member] for net in both] if isinstance(model, RRSDQN) else list(both)
    critics = (model.critic, model.critic_target)
    twins = [net for critic in critics for net in critic.q_networks[2 * member : 2 * member + 2]]
    return [model.actor, *twins, *([model.actor_target] if isinstance(model, TD3) else [])]


@pytest.mark.parametrize("terminal", ["zero", "absorbing", "goal"])
@pytest.mark.parametrize("leads", [True, False])
@pytest.mark.parametrize("member", [0, 1, 2])
@pytest.mark.parametrize(("parent", "ours"), PAIRS)
def test_a_member_is_the_parent_with_the_rewards_of_its_shift(
    parent: Any, ours: Any, member: int, leads: bool, terminal: Any
) -> None:
    """With the same networks, batches and noise; if it does not lead, until the policy moves."""
    shifts = [Shift(bias, 1 + abs(bias), 0.9, terminal) for bias in SHIFTS]
    model = made(ours, shifts=shifts, gamma=0.9, gradient_steps=0).learn(100)
    model.leader = member if leads else (member + 1) % 3
    theirs = made(parent, gamma=0.9, gradient_steps=0).learn(1)
    theirs.replay_buffer = buffer = copy.deepcopy(model.replay_buffer)
    ended = buffer.dones * (1 - buffer.timeouts) > 0
    assert ended.any() == is_discrete(parent)
    buffer.rewards = shifts[member].reward(buffer.rewards, ended)
    for one, two in zip(networks_of(theirs), networks_of(model, member), strict=True):
        one.load_state_dict(two.state_dict())
    begun = copy.deepcopy(networks_of(theirs))
    for each in (model, theirs):
        set_random_seed(1)
        each.train(5 if leads else 1, 16)
    learned = [networks_of(model, member), networks_of(theirs), begun]
    first = 0 if leads or is_discrete(parent) else 1
    for one, two in list(zip(*learned[:2], strict=True))[first:]:
        for this, other in zip(one.parameters(), two.parameters(), strict=True):
            assert torch.equal(this, other)
    assert not torch.equal(*(next(nets[first].parameters()) for nets in learned[1:]))


class Recorder(BaseCallback):
    """Notes the leader of every step, and which steps ended an episode."""

    def _on_training_start(self) -> None:
        self.leaders: list[int] = []
        self.ends: list[int] = []

    def _on_step(self) -> bool:
        self.leaders.append(self.model.leader)  # type: ignore[attr-defined]
        self.ends.append(int(self.locals["dones"].sum()))
        return True


MANY = np.linspace(-0.5, 0.5, 20)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(("steps", "episodes"), [(20, 1), (0, 2), (7, 0)])
def test_leaders_change_by_the_rule(count: int, steps: int, episodes: int) -> None:
    venv = make_vec_env(partial(task, RRSDQN), n_envs=count, seed=0)
    rule: dict[str, Any] = {"lead_steps": steps, "lead_episodes": episodes}
    model = made(RRSDQN, env=venv, shifts=MANY, **rule, gradient_steps=0)
    recorder, draws = Recorder(), np.random.default_rng(0)
    leader, led, ended = int(draws.integers(20)), 0, 0
    assert model.leader == leader
    model.learn(150 * count, callback=recorder)
    for seen, ends in zip(recorder.leaders, recorder.ends, strict=True):
        assert seen == leader
        led, ended = led + count, ended + ends
        if led >= steps and ended >= episodes and (ends or not episodes):
            leader, led, ended = int(draws.integers(20)), 0, 0
    assert model.leader == int(model.q_net.leader) == leader
    assert len(set(recorder.leaders)) > 3


def test_the_leader_of_a_q_network_chooses_the_actions() -> None:
    model = made(RRSDQN, shifts=MANY).learn(60)
    observations = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    batch = torch.as_tensor(observations)
    for leader in range(20):
        model.q_net.leader.fill_(leader)
        expected = model.q_net[leader](batch).argmax(dim=1).numpy()
        np.testing.assert_array_equal(model.predict(observations, deterministic=True)[0], expected)
        assert torch.equal(model.q_net(batch), model.q_net[leader](batch))


def test_members_differ_by_their_shifts_alone() -> None:
    """A bias of 1 forever is worth 1 / (1 - gamma) more; the replay holds primal rewards."""
    shifts = [0.0, Shift(1.0, terminal="absorbing")]
    model = made(RRSDQN, shifts=shifts, gamma=0.5, learning_rate=1e-2).learn(1200)
    assert set(model.replay_buffer.rewards[:1000].ravel()) == {1.0}
    logged = model.logger.name_to_value
    assert logged["train/value_1"] - logged["train/value_0"] == pytest.approx(2.0, abs=0.2)
    assert logged["rollout/leader"] == model.leader


@pytest.mark.parametrize("terminal", ["zero", "absorbing"])
def test_targets_of_several_steps(terminal: Any) -> None:
    """Each of the rewards in a return is shifted, and the credit comes with the last."""
    shift = Shift(0.5, scale=2.0, gamma=0.9, terminal=terminal)
    model = made(RRSDQN, shifts=[0.0, shift], gamma=0.9, n_steps=3).learn(100)
    buffer = model.replay_buffer
    assert isinstance(buffer, NStepReplayBuffer)
    batch: Any = buffer.sample(200)
    zero = torch.zeros_like(batch.rewards)
    primal, shifted = model._targets(batch, [zero, zero])
    assert torch.equal(primal, batch.rewards)
    steps = np.log(batch.discounts.numpy()) / np.log(0.9)
    offset = 0.5 * (1 - 0.9**steps) / 0.1
    if terminal == "absorbing":
        offset += batch.dones.numpy() * 0.9**steps * 0.5 / 0.1
    assert set(batch.dones.ravel().tolist()) == {0.0, 1.0}
    np.testing.assert_allclose(shifted.numpy(), 2 * primal.numpy() + offset, rtol=1e-5)


@pytest.mark.parametrize("algorithm", AGENTS)
def test_a_resumed_run_equals_an_uninterrupted_one(algorithm: Any, tmp_path: Path) -> None:
    def begun() -> tuple[Any, Any]:
        venv = make_vec_env(partial(task, algorithm), n_envs=2, seed=3)
        return venv, made(algorithm, env=venv, shifts=SHIFTS, lead_steps=10).learn(150)

    def following(model: Any) -> tuple[Any, list[int]]:
        recorder = Recorder()
        return model.learn(150, callback=recorder, reset_num_timesteps=False), recorder.leaders

    _, model = begun()
    whole, leaders = following(model)
    venv, model = begun()
    model.save(tmp_path / "model")
    model.save_replay_buffer(tmp_path / "buffer")
    # Stable-Baselines3 saves neither its generators nor the environments.
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    space = copy.deepcopy(model.action_space)
    loaded = algorithm.load(tmp_path / "model", env=venv, force_reset=False, device="cpu")
    loaded.load_replay_buffer(tmp_path / "buffer")
    random.setstate(states[0]), np.random.set_state(states[1])  # noqa: NPY002
    torch.set_rng_state(states[2])
    loaded.action_space = space
    assert loaded.leader == model.leader
    resumed, again = following(loaded)
    assert len(set(leaders)) > 1
    assert leaders == again
    assert_same(whole, resumed)
    assert whole.policy_kwargs == resumed.policy_kwargs


@pytest.mark.parametrize("algorithm", AGENTS)
def test_a_policy_is_saved_alone(algorithm: Any, tmp_path: Path) -> None:
    model = made(algorithm, shifts=SHIFTS).learn(60)
    model.policy.save(str(tmp_path / "policy"))
    policy = type(model.policy).load(str(tmp_path / "policy"), device="cpu")
    observations = model.env.reset()
    expected = model.predict(observations, deterministic=True)[0]
    np.testing.assert_array_equal(policy.predict(observations, deterministic=True)[0], expected)


@pytest.mark.parametrize("algorithm", AGENTS)
def test_the_doctor_reads_the_leader_on_its_own_scale(algorithm: Any) -> None:
    model = made(algorithm, env=VecNormalize(make_vec_env(partial(task, algorithm))), shifts=SHIFTS)
    model.learn(150)
    model.leader = 2
    view, buffer = agent_view(model), model.replay_buffer
    seen, actions = buffer.observations[:20, 0], buffer.actions[:20, 0]
    batch, taken = torch.as_tensor(model.env.normalize_obs(seen)), torch.as_tensor(actions)
    with torch.no_grad():
        if is_discrete(algorithm):
            values = model.q_net[2](batch).gather(1, taken)
        else:
            values = torch.stack(model.critic(batch, taken)[4:6]).amin(dim=0)
    np.testing.assert_allclose(view.value(seen, actions), values[:, 0].numpy(), atol=1e-5)
    assert (view.trained.bias, view.normaliser) == (0.5, "none")  # it shifts what is normalised
    sigma = np.sqrt(model.env.ret_rms.var + model.env.epsilon)
    assert view.trained.scale == pytest.approx(1 / sigma)
    assert doctor(model, task(algorithm), episodes=1, states=20).scalars()


ENDS = Shift(1.0, terminal="absorbing")
GOALS = Shift(1.0, terminal="goal")


@pytest.mark.parametrize(
    ("algorithm", "more", "match"),
    [
        (RRSTD3, {}, r"needs a shift for each member, as shifts=\(-0\.5, 0\.0, 0\.5\)"),
        (RRSSAC, {"shifts": []}, "needs a shift for each member"),
        (RRSDQN, {"shifts": "auto"}, "'auto'"),
        (RRSDQN, {"shifts": [0.0, "x"]}, "'x'"),
        (RRSDQN, {"shifts": [np.zeros(2)]}, "number"),
        (RRSDQN, {"shifts": [Shift(np.zeros(2))]}, "one bias"),
        (RRSDQN, {"shifts": [0.0, float("nan")]}, "nan"),
        (
            RRSTD3,
            {"shifts": [Shift(1.0, gamma=0.9)]},
            r"gamma=0\.99, or left out, got Shift\(bias=1",
        ),
        (RRSTD3, {"shifts": [ENDS], "gamma": 1.0}, "discount"),
        (RRSSAC, {"shifts": [GOALS], "n_steps": 2}, "goal"),
        (RRSDQN, {"shifts": [1.0], "n_steps": 2, "gamma": 1.0}, "discount"),
        (RRSDQN, {"shifts": [GOALS], "replay_buffer_class": CuriousReplayBuffer}, "goals by their"),
        (RRSDQN, {"shifts": 0.0, "lead_steps": -1}, "lead_steps"),
        (RRSDQN, {"shifts": 0.0, "lead_episodes": 1.5}, "lead_episodes"),
        (RRSTD3, {"shifts": 0.0, "policy": OnPolicy}, "got <class.*ActorCriticPolicy"),
        (
            RRSDQN,
            {"shifts": 0.0, "policy": DQN.policy_aliases["MlpPolicy"]},
            r"extends .*MlpPolicy",
        ),
    ],
)
def test_what_is_refused_before_any_training(algorithm: Any, more: Any, match: str) -> None:
    with pytest.raises(InputError, match=match) as refused:
        made(algorithm, **more)
    assert "\n" not in str(refused.value)


def test_a_shifted_environment_is_refused(tmp_path: Path) -> None:
    """At first, by `set_env` and by `load`."""
    model = made(RRSDQN, shifts=SHIFTS)
    inside, model_env = ShiftReward(short_cartpole(), 3.0), model.get_env()
    around = VecShiftReward(make_vec_env(short_cartpole), 3.0)
    model.save(tmp_path / "model")
    for use in (
        lambda: made(RRSDQN, shifts=SHIFTS, env=around),
        lambda: model.set_env(inside),
        lambda: RRSDQN.load(tmp_path / "model", env=inside, device="cpu"),
    ):
        with pytest.raises(InputError, match=r"shifted already, by Shift\(bias=3\.0"):
            use()
    assert model.get_env() is model_env
