"""The wrapper of vector environments, in all of Gymnasium's autoreset modes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest
import torch
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from probes import short_cartpole

from rewardshift import Shift, ShiftReward, VectorShiftReward

EXACT = Shift(-0.5, scale=2.0, gamma=0.9, terminal="absorbing")

# Processes of their own, as Gymnasium has them, but not forked: JAX does not survive that.
spawned = partial(AsyncVectorEnv, context="spawn")


def step_all(envs: Any, actions: np.ndarray, mode: AutoresetMode) -> tuple[Any, ...]:
    """One step; without autoreset, the rows that ended are reset by hand."""
    result = envs.step(actions)
    done = result[2] | result[3]
    if mode == AutoresetMode.DISABLED and done.any():
        envs.reset(options={"reset_mask": done})
    return tuple(result)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize(
    ("vectorise", "make", "shift"),
    [
        (SyncVectorEnv, short_cartpole, EXACT),
        (SyncVectorEnv, short_cartpole, Shift(3.0)),
        (SyncVectorEnv, lambda: gym.make("Blackjack-v1"), EXACT),
        (spawned, short_cartpole, EXACT),
    ],
)
def test_the_vector_wrapper_agrees_with_a_vector_of_wrapped_environments(
    mode: AutoresetMode, vectorise: Any, make: Callable[[], gym.Env[Any, Any]], shift: Shift
) -> None:
    outside = VectorShiftReward(SyncVectorEnv([make] * 3, autoreset_mode=mode), shift, warn=False)
    inside = vectorise([lambda: ShiftReward(make(), shift, warn=False)] * 3, autoreset_mode=mode)
    outside.reset(seed=5), inside.reset(seed=5)
    outside.action_space.seed(5)
    for _ in range(60):
        actions = outside.action_space.sample()
        _, rewards, terminations, truncations, infos = step_all(outside, actions, mode)
        _, *expected, inner_infos = step_all(inside, actions, mode)
        np.testing.assert_array_equal([rewards, terminations, truncations], expected)
        # With same-step autoreset an inner wrapper's info is of the new episode there.
        told = inner_infos.get("_primal_reward", np.zeros(3, bool))
        np.testing.assert_array_equal(
            infos["primal_reward"][told], inner_infos.get("primal_reward", np.zeros(3))[told]
        )
        final = terminations | truncations
        if mode == AutoresetMode.SAME_STEP:
            assert not told[final].any()
            told = told | final
        np.testing.assert_array_equal(infos["_primal_reward"], told)
    outside.close()
    inside.close()


def test_a_reset_forgets_the_rows_that_it_resets() -> None:
    make = lambda: TimeLimit(gym.make("CartPole-v1").unwrapped, 1)  # noqa: E731
    envs = VectorShiftReward(SyncVectorEnv([make] * 3), -0.5)
    envs.reset(seed=0)
    actions = np.zeros(3, int)
    envs.step(actions)  # every row ends here, so the next step resets them all
    envs.reset(options={"reset_mask": np.array([True, False, False])})
    assert envs.step(actions)[1].tolist() == [0.5, 0.0, 0.0]
    envs.reset(seed=0)
    assert envs.step(actions)[1].tolist() == [0.5, 0.5, 0.5]


def test_an_unsaid_autoreset_mode_is_taken_as_next_step() -> None:
    envs = SyncVectorEnv([short_cartpole])
    del envs.metadata["autoreset_mode"]
    with pytest.warns(UserWarning, match="does not say its autoreset mode"):
        VectorShiftReward(envs, -0.5)


def test_an_unknown_autoreset_mode_is_refused() -> None:
    envs = SyncVectorEnv([short_cartpole])
    envs.metadata = {**envs.metadata, "autoreset_mode": "next_step"}
    with pytest.raises(ValueError, match=r"'NextStep', 'SameStep', 'Disabled'.*got 'next_step'"):
        VectorShiftReward(envs, -0.5)


def test_a_wrapped_spec_makes_a_vector() -> None:
    spec = ShiftReward(gym.make("CartPole-v1"), -0.5).spec
    assert spec is not None
    envs = gym.make_vec(spec, num_envs=2, vectorization_mode="sync")
    envs.reset(seed=0)
    assert envs.step(np.zeros(2, int))[1].tolist() == [0.5, 0.5]


class Tensors(gym.vector.VectorWrapper[Any, Any, Any, Any, Any]):
    def step(self, actions: Any) -> Any:
        *all_but_infos, infos = self.env.step(actions)
        return *map(torch.as_tensor, all_but_infos), infos


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: gym.make_vec("phys2d/CartPole-v1", num_envs=2), jax.Array),
        (lambda: Tensors(SyncVectorEnv([short_cartpole] * 2)), torch.Tensor),
    ],
    ids=["jax", "torch"],
)
def test_arrays_stay_of_their_kind_where_rows_are_reset(make: Any, kind: type) -> None:
    envs = VectorShiftReward(make(), -0.5)
    envs.reset(seed=0)
    resets = 0
    for _ in range(60):
        _, rewards, _, _, infos = envs.step(envs.action_space.sample())
        assert isinstance(rewards, kind)
        steps, primal = infos["_primal_reward"], np.asarray(infos["primal_reward"])
        np.testing.assert_array_equal(rewards, np.where(steps, primal - 0.5, primal))
        resets += int((~steps).sum())
    assert resets
    envs.reset(seed=0)
    assert envs.step(envs.action_space.sample())[4]["_primal_reward"].all()
