"""Optimism given anew: what it equals, and runs that use it."""

from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import outside
import pytest
from probes import Probe
from test_td3_runs import AIM, stopped_and_resumed

from rewardshift import BCQ, CQL, DQN, MLP, SAC, TD3, Convolution, InputError, Reinject, Shift
from rewardshift.envs.tasks import TaskSpec
from rewardshift.replay import Batch

GAMMA, OPTIMISM, UPDATES, WHEN = 0.9, 3.0, 100, 60
TINY: dict[str, Any] = {"network": MLP((8,)), "batch_size": 8, "gamma": GAMMA}
KEY = jax.random.key(0)
AGENTS: list[Any] = [DQN(**TINY, double=True), TD3(**TINY), SAC(**TINY)]
every_agent = pytest.mark.parametrize("agent", AGENTS, ids=lambda a: type(a).__name__)


def members(*biases: float) -> tuple[Shift, ...]:
    return tuple(Shift(bias, terminal="absorbing") for bias in biases)


def start(agent: Any) -> Any:
    actions: dict[str, Any] = {"action_size": 2} if agent.continuous else {"num_actions": 2}
    return agent.init(KEY, TaskSpec(3, "float32", **actions))


def batches(agent: Any, count: int = UPDATES) -> Batch:
    """Random transitions, a third of them terminal, with a leading axis over the updates."""
    rng, shape = np.random.default_rng(0), (count, 8)
    return Batch(
        observation=jnp.asarray(rng.normal(size=(*shape, 3)), jnp.float32),
        action=jnp.asarray(rng.uniform(-1, 1, (*shape, 2)), jnp.float32)
        if agent.continuous
        else jnp.asarray(rng.integers(2, size=shape), jnp.int32),
        reward=jnp.asarray(rng.normal(size=shape)),
        next_observation=jnp.asarray(rng.normal(size=(*shape, 3)), jnp.float32),
        terminated=jnp.asarray(rng.random(shape) < 0.3),
        steps=jnp.ones(shape, jnp.int32),
        intrinsic=jnp.zeros(shape),
        lot=jnp.zeros(shape, jnp.uint32),
    )


@partial(jax.jit, static_argnums=0)
def trained(agent: Any, state: Any, data: Batch) -> Any:
    """The state after one update on each batch; whole cycles of the agent's updates."""

    def cycle(state: Any, part: Batch) -> Any:
        for turn in range(agent.period):
            batch = jax.tree.map(lambda leaf, turn=turn: leaf[turn], part)
            state, _ = agent.update(state, batch, KEY, turn)
        return state, None

    cycles = jax.tree.map(lambda leaf: leaf.reshape(-1, agent.period, *leaf.shape[1:]), data)
    return jax.lax.scan(cycle, state, cycles)[0]


def value_networks(state: Any) -> tuple[Any, Any]:
    if hasattr(state, "online"):
        return state.online.parameters, state.target
    return state.critics.parameters, state.target_critics


def moved(agent: Any, state: Any, offset: float) -> Any:
    """The state with the output biases of values and targets raised."""
    online, target = (
        agent.network.lift(tree, jnp.asarray(offset)) for tree in value_networks(state)
    )
    if hasattr(state, "online"):
        return state._replace(online=state.online._replace(parameters=online), target=target)
    critics = state.critics._replace(parameters=online)
    return state._replace(critics=critics, target_critics=target)


def assert_equal(ours: Any, theirs: Any) -> None:
    for x, y in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert x.dtype == y.dtype
        if jnp.issubdtype(x.dtype, jnp.floating):
            size = np.abs(y).max(initial=0.0)
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9 * size)
        else:
            np.testing.assert_array_equal(x, y)


@pytest.mark.usefixtures("x64")
@every_agent
def test_to_raise_values_is_to_lower_the_bias_once(agent: Any) -> None:
    """100 updates in float64: after 60 the values are raised, or the bias is lowered."""
    before = replace(agent, shift=members(-0.5, 0.2))
    lower = (1 - GAMMA) * OPTIMISM
    after = replace(agent, shift=members(-0.5 - lower, 0.2 - lower))
    data, state = batches(agent), start(before)
    first, second = (
        jax.tree.map(lambda x, s=s: x[s], data) for s in (slice(WHEN), slice(WHEN, None))
    )
    lowered = trained(after, trained(before, state, first), second)
    anew = trained(replace(before, reinject=Reinject(WHEN, OPTIMISM)), state, data)
    assert jax.tree.leaves(value_networks(anew))[0].dtype == jnp.float64
    assert_equal(anew, moved(agent, lowered, OPTIMISM))


@pytest.mark.usefixtures("x64")
@every_agent
def test_moving_biases_along_with_a_shift_keeps_everything(agent: Any) -> None:
    """The shift changes before the first update, and the values are moved along."""
    here, there = (replace(agent, shift=Shift(b, terminal="absorbing")) for b in (-0.5, 0.3))
    offset, data, state = 0.8 / (1 - GAMMA), batches(agent), start(here)
    kept = trained(here, state, data)
    assert_equal(trained(there, moved(agent, state, offset), data), moved(agent, kept, offset))


@pytest.mark.parametrize("shift", [(-0.5, 0.0, 0.5), "auto"])
def test_every_member_and_its_target_are_raised_when_it_is_time(shift: Any) -> None:
    plain = DQN(**TINY, shift=shift)
    agent = replace(plain, reinject=Reinject(every=2, optimism=OPTIMISM))
    data, state = batches(plain, 2), start(plain)
    once = jax.tree.map(lambda leaf: leaf[:1], data)
    jax.tree.map(
        np.testing.assert_array_equal, trained(agent, state, once), trained(plain, state, once)
    )
    twice = moved(plain, trained(plain, state, data), OPTIMISM)
    for ours, theirs in zip(
        jax.tree.leaves(trained(agent, state, data)), jax.tree.leaves(twice), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_an_image_network_is_lifted_too() -> None:
    network = Convolution(filters=(2,), kernels=(2,), strides=(1,), hidden=(4,))
    spec = TaskSpec(27, "uint8", 2, shape=(3, 3, 3))
    parameters, image = network.init(KEY, spec, 0, 2, "random"), jnp.ones((5, 27))
    lifted = network.apply(network.lift(parameters, jnp.asarray(2.5)), image)
    np.testing.assert_allclose(lifted, network.apply(parameters, image) + 2.5, rtol=1e-5)


@pytest.mark.parametrize(
    ("agent", "env"),
    [
        (DQN(shift=(-0.5, 0.5), reinject=Reinject(7), **TINY), partial(Probe, 3)),
        (TD3(shift=-0.5, reinject=Reinject(7), warm_up=30, **TINY), AIM),
        (SAC(shift="auto", reinject=Reinject(7), warm_up=30, **TINY), AIM),
    ],
    ids=["DQN", "TD3", "SAC"],
)
def test_a_stopped_run_ends_the_same(agent: Any, env: Any, tmp_path: Path) -> None:
    stopped_and_resumed(agent, tmp_path, env)


def test_what_does_not_fit_is_refused() -> None:
    for agent in (DQN, TD3, SAC):
        with pytest.raises(InputError, match="reinject needs a network with a function `lift`"):
            agent(network=outside.Fourier(), reinject=Reinject())
    with pytest.raises(InputError, match="every must be a whole number of 1 or more"):
        Reinject(0)
    with pytest.raises(InputError, match="optimism must be finite"):
        Reinject(optimism=float("nan"))
    for offline in (BCQ, CQL):
        assert "reinject" not in {field.name for field in fields(offline)}
