"""A whole update of BCQ and of CQL, parameter for parameter, beside one written in torch.

They share nothing but the initial networks and the random numbers.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
import torch
from probes import random_batch

from rewardshift import Shift
from rewardshift.agents import cql
from rewardshift.agents.base import Batch
from rewardshift.agents.bcq import BCQ
from rewardshift.agents.cql import CQL
from rewardshift.agents.networks import MLP
from rewardshift.envs.tasks import TaskSpec

SPEC = TaskSpec(4, "float32", action_size=2)
COUNT, UPDATES = 6, 3
Tensor = torch.Tensor


def tensor(array: Any) -> Tensor:
    return torch.tensor(np.asarray(array, np.float64))


def normal(key: Any, *shape: int) -> Tensor:
    return tensor(jax.random.normal(key, shape))


def layers(mlp: Any) -> list[list[Tensor]]:
    """A network's weights, ready to be trained."""
    return [
        [tensor(part).requires_grad_() for part in layer] for layer in (*mlp.hidden, mlp.output)
    ]


def twins(critics: Any) -> list[list[list[Tensor]]]:
    return [layers(jax.tree.map(lambda leaf, i=i: leaf[i], critics)) for i in (0, 1)]


def forward(mlp: list[list[Tensor]], *inputs: Tensor) -> Tensor:
    values = torch.cat(inputs, dim=-1)
    for number, (weight, bias) in enumerate(mlp):
        values = values @ weight.T + bias
        if number < len(mlp) - 1:
            values = torch.relu(values)
    return values


def flat(*networks: Any) -> list[Tensor]:
    return [part for network in networks for layer in network for part in layer]


def follow(targets: Any, networks: Any) -> None:
    with torch.no_grad():
        for target, network in zip(flat(*targets), flat(*networks), strict=True):
            target.add_(0.005 * (network - target))


def drawn(policy: Any, states: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Actions of a Gaussian policy, squashed by tanh, and their log-density."""
    mean, log_deviation = forward(policy, states).chunk(2, dim=-1)
    base = torch.distributions.Normal(mean, log_deviation.clamp(-5, 2).exp())
    raw = base.loc + base.scale * noise
    slope = (1 - torch.tanh(raw) ** 2).log()
    logs: Tensor = base.log_prob(raw)  # type: ignore[no-untyped-call]
    return torch.tanh(raw), (logs - slope).sum(dim=-1)


def lower(pair: Any, states: Tensor, actions: Tensor) -> Tensor:
    """The lower of the values of two critics."""
    return torch.minimum(*(forward(critic, states, actions)[..., 0] for critic in pair))


def step(optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()


@pytest.fixture(scope="module")
def batch() -> Batch:
    made = random_batch(1, COUNT, 4, 2)
    return made._replace(action=0.9 * made.action)


def compare(agent: Any, batch: Batch, make: Callable[..., Any], parts: dict[str, Any]) -> None:
    """Both do the same updates, and come to the same networks."""
    state = agent.init(jax.random.key(0), SPEC)
    reference, learned = make(agent, state, batch)
    update = jax.jit(agent.update, static_argnums=3)
    for number in range(UPDATES):
        key = jax.random.key(10 + number)
        state, _ = update(state, batch, key, 0)
        reference(key)
    for name, read in parts.items():
        ours = [np.asarray(leaf) for leaf in jax.tree.leaves(read(state))]
        theirs = [leaf.detach().numpy() for leaf in learned[name]]
        for x, y in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=2e-6, err_msg=name)


def torch_bcq(agent: BCQ, state: Any, batch: Batch) -> Any:
    proposer = state.proposer.parameters
    encoder, decoder = map(layers, (proposer.encoder, proposer.decoder))
    actor, target_actor = layers(state.actor.parameters), layers(state.actor.parameters)
    critics, target_critics = twins(state.critics.parameters), twins(state.critics.parameters)
    rate = agent.learning_rate
    vae_adam = torch.optim.Adam(flat(encoder, decoder), rate)
    actor_adam, critic_adam = (
        torch.optim.Adam(flat(actor), rate),
        torch.optim.Adam(flat(*critics), rate),
    )
    observation, action = tensor(batch.observation), tensor(batch.action)
    following, reward = tensor(batch.next_observation), tensor(batch.reward)
    going_on = 1 - tensor(batch.terminated)

    def propose(states: Tensor, noise: Tensor) -> Tensor:
        return torch.tanh(forward(decoder, states, noise.clamp(-0.5, 0.5)))

    def perturb(network: Any, states: Tensor, proposed: Tensor) -> Tensor:
        moved = proposed + agent.perturbation * torch.tanh(forward(network, states, proposed))
        return moved.clamp(-1, 1)

    def update(key: Any) -> None:
        encoding, targeting, acting = jax.random.split(key, 3)
        mean, log_deviation = forward(encoder, observation, action).chunk(2, dim=-1)
        deviation = log_deviation.clamp(-4, 15).exp()
        latent = mean + deviation * normal(encoding, COUNT, 4)
        rebuilt = torch.tanh(forward(decoder, observation, latent))
        divergence = -0.5 * (1 + (deviation**2).log() - mean**2 - deviation**2).mean()
        step(vae_adam, ((rebuilt - action) ** 2).mean() + 0.5 * divergence)
        with torch.no_grad():
            several = following[:, None].expand(-1, 10, -1)
            chosen = propose(several, normal(targeting, COUNT, 10, 4))
            chosen = perturb(target_actor, several, chosen)
            one, two = (forward(critic, several, chosen)[..., 0] for critic in target_critics)
            value = 0.75 * torch.minimum(one, two) + 0.25 * torch.maximum(one, two)
            shifted = replace(agent.members[0], gamma=0.99).reward(reward, 1 - going_on)
            target = shifted + 0.99 * going_on * value.amax(dim=1)
        errors = [forward(c, observation, action)[..., 0] - target for c in critics]
        step(critic_adam, sum(((error**2).mean() for error in errors), torch.zeros(())))
        with torch.no_grad():
            proposed = propose(observation[:, None], normal(acting, COUNT, 1, 4))[:, 0]
        step(
            actor_adam,
            -forward(critics[0], observation, perturb(actor, observation, proposed)).mean(),
        )
        follow([target_actor, *target_critics], [actor, *critics])

    learned = {
        "encoder": flat(encoder),
        "decoder": flat(decoder),
        "actor": flat(actor),
        "target actor": flat(target_actor),
        "first critic": flat(critics[0]),
        "second target critic": flat(target_critics[1]),
    }
    return update, learned


@pytest.mark.parametrize("shift", [Shift(0.0, 1.5), Shift(8.0, 1.5, terminal="absorbing")])
def test_a_whole_update_of_bcq(shift: Shift, batch: Batch) -> None:
    agent = BCQ(shift=shift, network=MLP((6, 5)), proposer=MLP((7, 6)), learning_rate=1e-2)
    parts = {
        "encoder": lambda s: s.proposer.parameters.encoder,
        "decoder": lambda s: s.proposer.parameters.decoder,
        "actor": lambda s: s.actor.parameters,
        "target actor": lambda s: s.target_actor,
        "first critic": lambda s: jax.tree.map(lambda leaf: leaf[0], s.critics.parameters),
        "second target critic": lambda s: jax.tree.map(lambda leaf: leaf[1], s.target_critics),
    }
    compare(agent, batch, torch_bcq, parts)


def torch_cql(agent: CQL, state: Any, batch: Batch) -> Any:  # noqa: PLR0915  one rule
    policy = layers(state.policy.parameters)
    critics, target_critics = twins(state.critics.parameters), twins(state.critics.parameters)
    temperature, factor = (torch.zeros((), dtype=torch.float64, requires_grad=True) for _ in "ab")
    policy_adam = torch.optim.Adam(flat(policy), agent.policy_rate)
    critic_adam = torch.optim.Adam(flat(*critics), agent.learning_rate)
    temperature_adam = torch.optim.Adam([temperature], agent.policy_rate)
    factor_adam = torch.optim.Adam([factor], agent.learning_rate)
    observation, action = tensor(batch.observation), tensor(batch.action)
    following, reward = tensor(batch.next_observation), tensor(batch.reward)
    going_on = 1 - tensor(batch.terminated)
    done = 0

    def likelihood(states: Tensor, actions: Tensor) -> Tensor:
        mean, log_deviation = forward(policy, states).chunk(2, dim=-1)
        base = torch.distributions.Normal(mean, log_deviation.clamp(-5, 2).exp())
        squashed: Any = torch.distributions.TransformedDistribution(
            base, [torch.distributions.TanhTransform()]
        )
        found: Tensor = squashed.log_prob(actions).sum(dim=-1)
        return found

    def candidates(key: Any) -> tuple[Tensor, Tensor]:
        uniform_key, now_key, next_key = jax.random.split(key, 3)
        shape = (COUNT, agent.candidates, 2)
        uniform = tensor(jax.random.uniform(uniform_key, shape, minval=-1.0, maxval=1.0))
        sets = [(uniform, torch.full(shape[:2], 2 * np.log(0.5), dtype=torch.float64))]
        for states, number in ((observation, now_key), (following, next_key)):
            several = states[:, None].expand(-1, agent.candidates, -1)
            sets.append(drawn(policy, several, normal(number, *shape)))
        actions, densities = zip(*sets, strict=True)
        return torch.cat(actions, dim=1).detach(), torch.cat(densities, dim=1).detach()

    def update(key: Any) -> None:
        nonlocal done
        policy_key, critic_key = jax.random.split(key)
        target_key, candidate_key = jax.random.split(critic_key)
        noise = normal(policy_key, COUNT, 2)
        _, density = drawn(policy, observation, noise)
        step(temperature_adam, -(temperature * (density.detach().mean() - 2)))
        with torch.no_grad():
            chosen, _ = drawn(policy, following, normal(target_key, COUNT, 2))
            value = lower(target_critics, following, chosen)
            target = agent.members[0].reward(reward) + 0.99 * going_on * value
            actions, densities = candidates(candidate_key)
        chosen, density = drawn(policy, observation, noise)
        if done < agent.cloning_updates:
            good = likelihood(observation, action)
        else:
            good = lower(critics, observation, chosen)
        policy_loss = (temperature.exp().detach() * density - good).mean()
        several = observation[:, None].expand(-1, actions.shape[1], -1)
        loss, gaps = torch.zeros((), dtype=torch.float64), []
        for critic in critics:
            here = forward(critic, observation, action)[..., 0]
            others = forward(critic, several, actions)[..., 0] - densities
            gap = agent.weight * (torch.logsumexp(others, dim=1).mean() - here.mean())
            gaps.append(gap.detach())
            scale = 1.0 if agent.threshold is None else factor.exp().detach()
            loss = loss + ((here - target) ** 2).mean() + scale * gap
        step(policy_adam, policy_loss)
        step(critic_adam, loss)
        if agent.threshold is not None:
            step(factor_adam, -factor.exp() * (sum(gaps) / 2 - agent.threshold))
        follow(target_critics, critics)
        done += 1

    learned = {
        "policy": flat(policy),
        "first critic": flat(critics[0]),
        "second target critic": flat(target_critics[1]),
        "temperature": [temperature],
        "factor": [factor],
    }
    return update, learned


@pytest.mark.parametrize(
    "settings",
    [{"cloning_updates": 2}, {"threshold": 1.0, "cloning_updates": 0}],
    ids=["as in the paper", "Lagrange"],
)
@pytest.mark.parametrize("cached", [cql.CACHED, 1], ids=["at once", "in parts"])
def test_a_whole_update_of_cql(
    settings: dict[str, Any], cached: int, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cql, "CACHED", cached)
    agent = CQL(
        shift=1.0,
        network=MLP((6, 5)),
        candidates=3,
        learning_rate=1e-2,
        policy_rate=1e-2,
        **settings,
    )
    parts = {
        "policy": lambda s: s.policy.parameters,
        "first critic": lambda s: jax.tree.map(lambda leaf: leaf[0], s.critics.parameters),
        "second target critic": lambda s: jax.tree.map(lambda leaf: leaf[1], s.target_critics),
        "temperature": lambda s: s.temperature.parameters,
        "factor": lambda s: s.penalty.parameters,
    }
    compare(agent, batch, torch_cql, parts)
