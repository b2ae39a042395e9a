"""The YAML of docs/stable-baselines3.md in RL Baselines3 Zoo itself; run it by hand where that is.

`pip install torch==2.13.0 rl_zoo3 pytest` in an environment of its own, because our constraints do
not fit its packages, then
`PYTHONPATH=src python -m pytest --noconftest --override-ini addopts= tests/with_zoo.py`.
"""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rl_zoo3")

from stable_baselines3 import DQN

from rewardshift.integrations.sb3 import RRSDQN, CuriousReplayBuffer

PAGE = (Path(__file__).parents[1] / "docs" / "stable-baselines3.md").read_text()
HEAD = """
CartPole-v1:
  n_timesteps: 300
  policy: MlpPolicy
  learning_starts: 50
"""
TOGETHER = PAGE.split("<!-- zoo -->")[1]
SCRIPT = re.findall(r"```python\n(.*?)```", TOGETHER, re.S)[0]


def setting(number: int) -> str:
    """One of the page's settings, for CartPole."""
    blocks = re.findall(r"```yaml\n(.*?)```", TOGETHER, re.S)
    return HEAD + "".join(f"  {line}\n" for line in blocks[number].splitlines())


def run(folder: Path, yaml: str, command: list[str], algorithm: str) -> Path:
    (folder / "zoo.yml").write_text(yaml)
    options = ["--algo", algorithm, "--env", "CartPole-v1", "--conf-file", "zoo.yml"]
    more = ["--save-replay-buffer", "--eval-freq", "-1", "--device", "cpu", "--seed", "0"]
    done = subprocess.run(
        [sys.executable, *command, *options, *more, "--log-folder", "logs"],
        cwd=folder, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / "logs" / algorithm / "CartPole-v1_1"


ZOO = ["-m", "rl_zoo3.train"]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_shift_in_the_yaml(tmp_path: Path, number: int) -> None:
    folder = run(tmp_path, setting(number), ZOO, "dqn")
    model = DQN.load(folder / "CartPole-v1.zip", device="cpu")
    model.load_replay_buffer(folder / "replay_buffer")
    assert model.replay_buffer is not None
    rewards = set(model.replay_buffer.rewards[:300].ravel())
    assert rewards == {0.5} if number < 2 else 1.0 not in rewards
    episodes = np.genfromtxt(folder / "0.monitor.csv", delimiter=",", skip_header=2)
    assert len(episodes) > 3
    np.testing.assert_array_equal(episodes[:, 0], episodes[:, 1])  # primal: 1 for each step


def test_the_bonus_in_the_yaml(tmp_path: Path) -> None:
    folder = run(tmp_path, setting(3), ZOO, "dqn")
    model = DQN.load(folder / "CartPole-v1.zip", device="cpu")
    model.load_replay_buffer(folder / "replay_buffer")
    buffer = model.replay_buffer
    assert isinstance(buffer, CuriousReplayBuffer)
    assert set(buffer.rewards[:300].ravel()) == {1.0}


def test_members_in_the_yaml(tmp_path: Path) -> None:
    (tmp_path / "zoo.py").write_text(SCRIPT)
    folder = run(tmp_path, setting(4), ["zoo.py"], "rrsdqn")
    model = RRSDQN.load(folder / "CartPole-v1.zip", device="cpu")
    assert [shift.bias for shift in model.members] == [-0.5, 0.0, 0.5]
