"""Gradient updates per second of BCQ and CQL beside d3rlpy's, at the paper's sizes.

`python benchmarks/offline.py` builds a virtual environment for d3rlpy, in a folder of its own, and
measures everything in turn, three times over, on 10,000 transitions of Hopper's shape: one process,
and two side by side, added up. It also says what share of NumPy's own rate of multiplying matrices
of 256x256 the updates reach, per core. The result is a table of medians and
`out/bench/offline.json`. Takes about ten minutes.
"""

import json
import math
import sys
import time
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.extend.core import jaxprs_in_params
from peers import FOLDER, in_turn, matrix_rate_per_core, peer_python, rate_of

from rewardshift import BCQ, CQL, Dataset, OfflineBudget
from rewardshift.agents.base import Batch
from rewardshift.envs.tasks import TaskSpec, probe_spec
from rewardshift.training.offline import as_batch
from rewardshift.training.runs import offline_run

ROUNDS = 3
COUNT, FEATURES, ACTIONS = 10_000, 11, 3
UPDATES = {"bcq": 60, "cql": 30}

PEER_SCRIPT = """
import sys, time
import numpy as np, d3rlpy
from d3rlpy.models import VectorEncoderFactory as Layers
kind, count, features, actions, updates = sys.argv[1], *map(int, sys.argv[2:])
r = np.random.default_rng(0)
data = d3rlpy.dataset.MDPDataset(
    r.normal(size=(count, features)).astype(np.float32),
    r.uniform(-1, 1, (count, actions)).astype(np.float32),
    r.normal(size=(count, 1)).astype(np.float32),
    (np.arange(count) % 500 == 499).astype(np.float32),
)
if kind == "bcq":
    algo = d3rlpy.algos.BCQConfig(
        batch_size=100, n_action_samples=10, update_actor_interval=1, rl_start_step=0,
        actor_encoder_factory=Layers([400, 300]), critic_encoder_factory=Layers([400, 300]),
        imitator_encoder_factory=Layers([750, 750]),
    ).create(device="cpu:0")
else:
    layers = Layers([256, 256, 256])
    algo = d3rlpy.algos.CQLConfig(
        batch_size=256, n_action_samples=10, conservative_weight=5.0, alpha_learning_rate=0.0,
        actor_encoder_factory=layers, critic_encoder_factory=layers,
    ).create(device="cpu:0")
algo.build_with_dataset(data)
def step(n):
    for _ in range(n):
        algo.update(data.sample_transition_batch(algo.batch_size))
step(5)
started = time.perf_counter()
step(updates)
print("RATE", updates / (time.perf_counter() - started))
"""

OUR_SCRIPT = """
import sys
sys.path.insert(0, "benchmarks")
import offline
print("RATE", offline.measure(sys.argv[1]))
"""


def _data() -> Dataset:
    generator = np.random.default_rng(0)
    return Dataset(
        "random",
        observation=generator.normal(size=(COUNT, FEATURES)).astype(np.float32),
        action=generator.uniform(-1, 1, (COUNT, ACTIONS)).astype(np.float32),
        reward=generator.normal(size=COUNT).astype(np.float32),
        next_observation=generator.normal(size=(COUNT, FEATURES)).astype(np.float32),
        terminated=np.arange(COUNT) % 500 == 499,
        truncated=np.zeros(COUNT, bool),
    )


def measure(kind: str) -> float:
    """Updates per second after the first ones, without evaluations."""
    agent: Any = BCQ() if kind == "bcq" else CQL()
    updates = UPDATES[kind]
    settle = 15  # the calls grow meanwhile
    far = 10 * (settle + updates)  # a training is evaluated at its end, which takes time too
    budget = OfflineBudget(updates=far, evaluate_every=far, checkpoint_every=settle)
    trainer = offline_run(agent, _data(), "Hopper-v5", budget=budget).make()
    trainer.run_to_checkpoint()
    started = time.perf_counter()
    while trainer.step < settle + updates:
        trainer.run_to_checkpoint()
    jax.block_until_ready(trainer.state)
    return updates / (time.perf_counter() - started)


def update_flops(kind: str) -> float:
    """Floating point operations of an update, those of matrix products alone, as it is traced."""
    agent: Any = BCQ() if kind == "bcq" else CQL()
    key = jax.random.key(0)
    state = agent.init(key, TaskSpec(FEATURES, "float32", action_size=ACTIONS))
    whole = as_batch(_data(), "Hopper-v5", probe_spec("Hopper-v5"))
    batch = Batch(*(field[: agent.batch_size] for field in whole))
    traced = jax.make_jaxpr(lambda s, b, k: agent.update(s, b, k, 0))(state, batch, key)
    return _product_flops(traced.jaxpr)


def _product_flops(jaxpr: Any) -> float:
    total = 0.0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            contracted = equation.params["dimension_numbers"][0][0]
            left, result = equation.invars[0].aval.shape, equation.outvars[0].aval.shape
            total += 2.0 * math.prod(result) * math.prod(left[axis] for axis in contracted)
        inner = sum(_product_flops(body) for body in jaxprs_in_params(equation.params))
        total += inner * equation.params.get("length", 1)  # a scan's
    return total


def _ours(kind: str, processes: int) -> float:
    return rate_of(sys.executable, OUR_SCRIPT, [kind], processes)


def _peer(kind: str, processes: int) -> float:
    numbers = (COUNT, FEATURES, ACTIONS, UPDATES[kind] // 2)
    return rate_of(peer_python("d3rlpy"), PEER_SCRIPT, [kind, *map(str, numbers)], processes)


def main() -> None:
    """Measures all, prints the table, writes the JSON."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for kind in UPDATES:
        for processes, note in ((1, ""), (2, ", two processes")):
            base = f"{kind}: d3rlpy{note}"
            measurements = {
                base: partial(_peer, kind, processes),
                f"{kind}: rewardshift{note}": partial(_ours, kind, processes),
            }
            for what, (rate, ratio) in in_turn(measurements, ROUNDS, base).items():
                rows.append({"what": what, "rate": rate, "ratio": ratio})
                print(f"{what:36} {rate:7.1f} updates/s  {ratio:5.2f} x d3rlpy", flush=True)
        both = rows[-1]["rate"]
        share = both / 2 * update_flops(kind) / matrix_rate_per_core()
        rows.append({"what": f"{kind}: share of NumPy's rate per core", "rate": share})
        print(
            f"{kind}: an update is {update_flops(kind) / 1e9:.2f} GFLOP;"
            f" {share:.0%} of NumPy's rate"
        )
    (FOLDER / "offline.json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
