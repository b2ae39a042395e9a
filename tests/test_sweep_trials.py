"""A sweep of a training of your own: shifted, evaluated, compared, and told when it fails."""

import subprocess
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
import trials
from fuzzing import as_installed
from stable_baselines3 import DQN, PPO, SAC, TD3, HerReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from test_cli import COMMAND

from rewardshift import InputError, Shift, ShiftReward, sweep
from rewardshift.cli import main
from rewardshift.errors import TrainingError
from rewardshift.integrations.sb3 import RRSDQN, RRSSAC, RRSTD3, Trial, VecShiftReward
from rewardshift.lab.figure import Unit
from rewardshift.lab.results import read_results
from rewardshift.lab.sweep.declaration import Sweep
from rewardshift.lab.sweep.trials import SweptTrial

HERE = Path(__file__).parent


def unit_of(trial: Any, constant: Any, **settings: Any) -> Any:
    """The curve of one constant with seed 0, in this process."""
    swept = SweptTrial.of(trial, "CartPole-v1", evaluation_episodes=1, **settings)
    made = Sweep(swept, (constant,))
    figure = made.figure()
    unit = Unit(tuple(figure.tasks), (figure.methods[-1].name,), (0,), None, "zero")
    (curve,) = swept.run(figure, unit, Path())
    return curve


def test_a_trial_sees_shifted_rewards_and_its_policies_are_evaluated_without() -> None:
    curve = unit_of(trials.steady, -0.25)
    assert list(curve.steps) == [10, 20]
    assert curve.values[0] > 5  # of a CartPole that always pushes right; 1 a step
    assert curve.values[0] == int(curve.values[0])
    assert curve.values[1] == 0.75


def test_auto_takes_the_discount_of_the_trials_agent() -> None:
    assert unit_of(trials.steady, "auto").values[1] == 1 - 0.5
    for gamma in (None, 0.9):
        swept = SweptTrial.of(trials.steady, "FrozenLake-v1", gamma=gamma)
        env: Any = swept._environment(swept.with_constant("auto"))
        assert env.shift == Shift(5 * ((gamma or 0.99) - 1), 1.0, gamma or 0.99, "goal")
    assert SweptTrial.of(trials.model, "CartPole-v1").gamma == 0.99
    with pytest.raises(InputError, match=r"has gamma=0.99, got gamma=0.9"):
        SweptTrial.of(trials.model, "CartPole-v1", gamma=0.9)


@pytest.mark.parametrize("trial", [trials.model, trials.by_hand, trials.in_a_vector])
def test_auto_serves_a_trial_that_makes_a_vector_of_its_environment(trial: Any) -> None:
    """As Stable-Baselines3 does with every environment."""
    values = unit_of(trial, "auto").values
    assert len(values) == 2
    assert np.isfinite(values).all()


def test_members_are_given_to_a_trial_that_applies_shifts_itself() -> None:
    assert unit_of(trials.members, (-1.0, 0.0, 4.0)).values == [4.0]  # the reward is not shifted
    assert unit_of(trials.members, -1.0).values == [0.0]  # shifted around the environment


@pytest.mark.parametrize(
    ("trial", "message"),
    [
        (trials.backwards, "yielded step 5 after step 10"),
        (trials.empty, "it must yield"),
        (trials.wordy, "a policy, which is a function of an observation"),
        (trials.undefined, "yielded the return nan at step 10"),
    ],
)
def test_what_a_trial_must_not_yield(trial: Any, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        unit_of(trial, -1.0)


def test_a_sweep_of_a_trial_in_python(tmp_path: Path) -> None:
    out = tmp_path / "out"
    settings: dict[str, Any] = {"seeds": 1, "folder": out, "evaluation_episodes": 1}
    found = sweep(trials.steady, trials.cart_pole, [-1, "auto"], **settings)
    assert [point.label for point in found.points] == ["none", "b = -1", "auto"]
    assert [one.best.method for one in found.findings] == ["none", "none"]
    assert "trials.steady on function trials.cart_pole" in found.page.read_text()
    before = {path: path.read_bytes() for path in out.rglob("*.*")}
    sweep(trials.steady, trials.cart_pole, [-1, "auto"], **settings)  # nothing is left to do
    assert {path: path.read_bytes() for path in out.rglob("*.*")} == before
    with pytest.raises(InputError, match="another configuration"):
        sweep(trials.members, trials.cart_pole, [-1, "auto"], **settings)


def test_a_unit_that_fails_is_told_and_the_others_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["sweep", f"{HERE / 'trials.py'}:unlucky", "--env", "CartPole-v1", "--shift", "-1"]
    assert main([*command, "--seeds", "2", "--jobs", "2", "--out", str(out)]) == 1
    told = capsys.readouterr().err
    assert 'raise ZeroDivisionError("of my own")' in told
    assert "the trial trials.unlucky with -1 and seed 1 failed" in told
    assert "failed: sweep, none, seed 1\nits process died again" in told
    curves = read_results(out / "sweep")
    assert {(curve.method, curve.seed) for curve in curves} == {("none", 0), ("-1", 0)}


def test_seeds_that_yield_at_other_steps_are_told(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="evaluate at the same steps whatever the seed"):
        sweep(trials.uneven, "CartPole-v1", [-1], seeds=2, folder=tmp_path / "out")
    assert len(list((tmp_path / "out" / "sweep" / "units").iterdir())) == 2


def test_stable_baselines3_from_the_command_line(tmp_path: Path) -> None:
    """With an environment that the file of the trial registers, for every unit of work."""
    (tmp_path / "own_task.py").write_text(
        "import gymnasium\n"
        "from stable_baselines3 import DQN\n"
        "from rewardshift.integrations.sb3 import Trial\n"
        "gymnasium.register('OwnTask-v0', 'gymnasium.envs.classic_control:CartPoleEnv',"
        " max_episode_steps=9)\n"
        "trial = Trial(DQN, 'MlpPolicy', steps=40, evaluations=2, buffer_size=50)\n"
    )
    command = ["sweep", f"{tmp_path / 'own_task.py'}:trial", "--env", "OwnTask-v0", "--shift", "-1"]
    few = ["--seeds", "1", "--evaluation-episodes", "1", "--jobs", "2"]
    out = tmp_path / "out"
    done = subprocess.run(
        [*COMMAND, *command, *few, "--out", str(out)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "1 seed: too few for a verdict" in done.stdout
    assert "leaked" not in done.stderr  # of semaphores, by Python's own tracker
    curves = read_results(out / "sweep")
    assert [(curve.method, list(curve.steps)) for curve in curves] == [
        ("none", [20, 40]),
        ("-1", [20, 40]),
    ]
    declared = (out / "sweep" / "sweep.json").read_text()
    assert "Trial(DQN, 'MlpPolicy', steps=40, evaluations=2" in declared


def parameters(model: Any) -> np.ndarray:
    return torch.cat([p.detach().flatten() for p in model.policy.parameters()]).numpy()


@pytest.mark.parametrize(
    ("kind", "env", "settings"),
    [
        (DQN, "CartPole-v1", {"train_freq": 4, "exploration_fraction": 0.5}),
        (DQN, "CartPole-v1", {"train_freq": (1, "episode")}),
        (TD3, "Pendulum-v1", {}),
    ],
)
def test_a_training_in_parts_is_that_of_one_call(kind: Any, env: str, settings: Any) -> None:
    given = {"policy_kwargs": {"net_arch": [8]}, "learning_starts": 50, **settings}
    trial = Trial(kind, "MlpPolicy", steps=150, evaluations=3, **given)
    *_, (step, parts) = trial(ShiftReward(gym.make(env), -0.5), 1)
    venv = VecShiftReward(make_vec_env(env), -0.5)
    whole = kind("MlpPolicy", venv, seed=1, **given).learn(150)
    assert step == 150
    assert parts.num_timesteps == whole.num_timesteps
    np.testing.assert_array_equal(parameters(parts), parameters(whole))


SMALL: dict[str, Any] = {
    "steps": 60, "evaluations": 2, "learning_starts": 20, "buffer_size": 100, "batch_size": 16,
    "policy_kwargs": {"net_arch": [8]}, "device": "cpu",
}  # fmt: skip


class OwnDQN(DQN):
    def __init__(self, *args: Any, bonus: float = 0.0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)


def trained(trial: Trial, env: str, constant: Any) -> Any:
    """The model of a trial with this constant, in the environment of a sweep."""
    swept = SweptTrial.of(trial, env)
    shift = swept.with_constant(constant)
    shifts = {"shifts": shift} if isinstance(shift, tuple) else {}
    *_, (_, model) = trial(swept._environment(shift), 1, **shifts)
    return model


@pytest.mark.parametrize(
    ("ours", "parent", "env"),
    [(RRSDQN, DQN, "CartPole-v1"), (RRSTD3, TD3, "Pendulum-v1"), (RRSSAC, SAC, "Pendulum-v1")],
)
def test_a_class_with_members_and_with_single_constants(ours: Any, parent: Any, env: str) -> None:
    trial = Trial(ours, "MlpPolicy", gamma=0.9, **SMALL)
    assert trial.gamma == 0.9
    several = trained(trial, env, (-0.5, 0.0, 0.5))
    assert [shift.bias for shift in several.members] == [-0.5, 0.0, 0.5]
    primal = several.replay_buffer.rewards[:60].copy()
    for constant in (0.0, -0.5, "auto"):
        single = trained(trial, env, constant)
        alone = trained(Trial(parent, "MlpPolicy", gamma=0.9, **SMALL), env, constant)
        np.testing.assert_array_equal(parameters(single), parameters(alone))
        stored = single.replay_buffer.rewards[:60]
        np.testing.assert_array_equal(stored, alone.replay_buffer.rewards[:60])
        costs = constant == "auto" and env == "Pendulum-v1"  # at every step, so no shift
        assert np.array_equal(stored[:20], primal[:20]) == (constant == 0.0 or costs)


def test_a_class_that_hands_arguments_on() -> None:
    trial = Trial(OwnDQN, "MlpPolicy", bonus=1.0, gamma=0.8, **SMALL)
    assert trial.gamma == 0.8
    trained(trial, "CartPole-v1", -0.5)
    with pytest.raises(InputError, match="OwnDQN got an unexpected keyword argument 'gama'"):
        Trial(OwnDQN, "MlpPolicy", gama=0.8, **SMALL)


def bits_with_auto() -> Any:
    swept = SweptTrial.of(trials.steady, trials.bit_flip)
    return swept._environment(swept.with_constant("auto"))


def test_hindsight_gets_the_credit_where_the_agent_stops() -> None:
    """So the shift is around the vector, and the relabelled ends are those of the buffer."""
    her = {"replay_buffer_class": HerReplayBuffer, **SMALL}
    with pytest.raises(InputError, match="give HerReplayBuffer copy_info_dict=True"):
        next(Trial(DQN, "MultiInputPolicy", **her)(bits_with_auto(), 1))
    trial = Trial(DQN, "MultiInputPolicy", **her, replay_buffer_kwargs={"copy_info_dict": True})
    model: Any
    *_, (_, model) = trial(bits_with_auto(), 1)
    shift = model.env.shift
    assert (shift.bias, shift.terminal) != (0.0, "zero")
    batch = model.replay_buffer.sample(200, env=model.get_vec_normalize_env())
    rewards, ended = batch.rewards.numpy().ravel(), batch.dones.numpy().ravel()
    primal = {float(shift.reward(reward, False)) for reward in (0.0, 1.0, -1.0)}
    assert {round(float(one), 4) for one in rewards[ended == 0]} <= {round(it, 4) for it in primal}


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (PPO, {"steps": 10, "evaluations": 1}, "off-policy class"),
        (DQN, {"steps": 10, "evaluations": 3}, "multiple of evaluations"),
        (DQN, {"steps": 0}, "steps must be a whole number of 1 or more"),
        (DQN, {"steps": 25, "seed": 3}, "the sweep gives seed"),
        (DQN, {"steps": 25, "learningrate": 3}, "'learningrate'"),
    ],
)
def test_a_bad_trial_is_refused(kind: Any, settings: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Trial(kind, "MlpPolicy", **settings)


@pytest.mark.parametrize(
    ("trial", "changes", "message"),
    [
        (DQN, {}, "a trial, a function of an environment and a seed"),
        (trials.without_seed, {}, "a function of an environment and a seed"),
        (lambda *_: [], {}, "define it at the top of a module"),
        (trials.steady, {"constants": [(-1.0, 1.0)]}, "members need a trial"),
        (trials.model, {"constants": [(-1.0, 1.0)]}, "members need a trial"),
        (trials.members, {"constants": [(-1.0,)]}, "two"),
        (trials.steady, {"env": "NoSuch-v0"}, "NoSuch"),
        (trials.steady, {"env": trials.shifted}, "shifted already"),
        (trials.steady, {"env": lambda: None}, "define it at the top of a module"),
        (trials.steady, {"gamma": 1.5}, "gamma must be in"),
        (trials.steady, {"terminal": "x"}, "terminal must be"),
        (trials.steady, {"evaluation_episodes": 0}, "evaluation_episodes must be"),
        (trials.steady, {"data": "embedded/x"}, "data is a setting for an agent"),
    ],
)
def test_a_bad_sweep_is_refused_before_any_work(
    trial: Any, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    given = {"env": "CartPole-v1", "constants": [-1.0], "folder": tmp_path / "out", **changes}
    with as_installed(), pytest.raises(InputError, match=message):
        sweep(trial, **given)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.py:trial", "no file"),
        ("trials.py:nothing", "has no trial called 'nothing'"),
        ("json.py:trial", "rename"),
    ],
)
def test_a_file_without_the_trial_is_refused(
    name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "json.py").write_text("")
    folder = HERE if name.startswith("trials") else tmp_path
    with as_installed():
        code = main(["sweep", f"{folder / name}", "--env", "CartPole-v1", "--shift", "1"])
    assert code == 2
    assert message in capsys.readouterr().err
