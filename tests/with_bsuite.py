"""DeepSea beside bsuite's, step by step; run it by hand where bsuite is installed.

`pip install bsuite gymnasium pytest` in an environment of its own, then
`PYTHONPATH=src python -m pytest --noconftest --override-ini addopts= tests/with_bsuite.py`.
"""

import numpy as np
import pytest
from bsuite.environments.deep_sea import DeepSea as Theirs  # type: ignore[import-not-found]

from rewardshift.envs.deep_sea import DeepSea

EPISODES = 50


@pytest.mark.parametrize("size", [2, 5, 10, 20, 50])
def test_the_same_actions_do_the_same(size: int) -> None:
    theirs, ours = Theirs(size, mapping_seed=size), DeepSea(size)
    ours.right = theirs._action_mapping  # their mapping comes from another generator
    rng = np.random.default_rng(size)
    for episode in range(EPISODES):
        observation, _ = ours.reset(seed=episode)
        step = theirs.reset()
        assert observation.tolist() == step.observation.ravel().tolist()
        while not step.last():
            right = ours.right[ours.row, ours.column]
            # Every second dive goes right nearly always, so that some find the treasure.
            action = right if episode % 2 and rng.random() < 0.98 else int(rng.integers(2))
            step = theirs.step(action)
            observation, reward, terminated, truncated, _ = ours.step(action)
            assert reward == pytest.approx(step.reward)
            assert observation.tolist() == step.observation.ravel().tolist()
            assert (terminated, truncated) == (step.last() and step.discount == 0.0, False)
