"""Illnesses and hits: what the doctor says about agents made ill on purpose and healthy ones.

`python benchmarks/doctor.py` trains every agent of the table with the seeds 0 to 9 (`--seeds` takes
fewer), a few seconds each, asks the doctor about it, and writes the table into `docs/doctor.md`.
`--calibrate` does the same with seeds from 100 on and on other tasks, and prints the numbers that
the rules look at; `rewardshift/doctor/rules.py` says which thresholds were set on these. Names
select agents. Results are kept in `out/bench/doctor.json`, so a run can be done in parts. Takes
about twenty minutes.
"""

import argparse
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from rewardshift import DQN, MLP, SAC, TD3, Dataset, load_dataset, train, train_offline
from rewardshift.doctor import Diagnosis
from rewardshift.doctor.rules import Illness
from rewardshift.doctor.runs import doctor
from rewardshift.training.offline import OfflineBudget
from rewardshift.training.online import OnlineBudget

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "out" / "bench" / "doctor.json"
PAGE = ROOT / "docs" / "doctor.md"
TABLE = re.compile(r"(<!-- illnesses -->\n\n).*(\n\n<!-- end of the illnesses -->)", re.DOTALL)
REPORTED, TUNED = 0, 100  # the first seeds
SMALL = MLP((64, 64))
# The numbers that rules look at.
NUMBERS = (
    "belief/share",
    "belief/beyond",
    "untried/pull",
    "untried/advantage",
    "ends/share",
    "ends/far",
)

STABLE = DQN(gamma=0.99, network=SMALL, tau=0.005, learning_rate=5e-4, double=True)
HASTY = DQN(gamma=0.99, network=SMALL, tau=1.0, learning_rate=2e-3)
CONTROL: dict[str, Any] = {"network": SMALL, "learning_rate": 1e-3, "batch_size": 128}
# Its target networks follow fast, so that a few thousand updates are several lifetimes.
LOOSE = TD3(**CONTROL, tau=0.05)


@dataclass(frozen=True)
class Case:
    """Agents to examine.

    Args:
        words: The row of the table.
        illness: What the doctor should name; None if it should be silent.
        examine: Diagnoses for some seeds, on the reported task.
        elsewhere: The same on another task, for the thresholds.
    """

    words: str
    illness: Illness | None
    examine: Callable[[tuple[int, ...]], Iterator[Diagnosis]]
    elsewhere: Callable[[tuple[int, ...]], Iterator[Diagnosis]]


class Endless(gym.Wrapper[Any, Any, Any, Any]):
    """Tells the agent of every end as if it were a time limit."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """A step without a terminal state."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, False, terminated or truncated, info


def endless_cartpole() -> gym.Env[Any, Any]:
    """CartPole without terminal states."""
    return Endless(gym.make("CartPole-v1"))


def endless_acrobot() -> gym.Env[Any, Any]:
    """Acrobot without terminal states."""
    return Endless(gym.make("Acrobot-v1"))


def online(agent: Any, env: Any, steps: int, real: str | None = None) -> Any:
    """A function of seeds that trains them side by side and examines each."""

    def examine(seeds: tuple[int, ...]) -> Iterator[Diagnosis]:
        budget = OnlineBudget(steps=steps, evaluate_every=steps, evaluation_episodes=3)
        with tempfile.TemporaryDirectory() as place:
            result = train(agent, env, seeds=seeds, budget=budget, folder=Path(place) / "run")
            print("  returns", [round(row.evaluation_return) for row in result.rows])
            for seed in seeds:
                yield doctor(Path(place) / "run", seed, env=real or env, episodes=3)

    return examine


def random_data(path: Path, env: str, transitions: int, seed: int) -> Dataset:
    """Transitions of random actions, in a file."""
    made, rng = gym.make(env), np.random.default_rng(seed)
    space = made.action_space
    assert isinstance(space, gym.spaces.Box)
    observation, _ = made.reset(seed=seed)
    rows = []
    for _ in range(transitions):
        action = rng.uniform(space.low, space.high).astype(np.float32)
        following, reward, terminated, truncated, _ = made.step(action)
        rows.append((observation, action, reward, following, terminated, truncated))
        observation = made.reset()[0] if terminated or truncated else following
    made.close()
    names = ("observations", "actions", "rewards", "next_observations", "terminals", "timeouts")
    columns = map(np.array, zip(*rows, strict=True))
    np.savez(path, allow_pickle=False, **dict(zip(names, columns, strict=True)))
    return load_dataset(str(path))


def offline(env: str, transitions: int, updates: int) -> Any:
    """A function of seeds that trains TD3 on a little data."""

    def examine(seeds: tuple[int, ...]) -> Iterator[Diagnosis]:
        budget = OfflineBudget(updates=updates, evaluate_every=updates, evaluation_episodes=3)
        for seed in seeds:
            with tempfile.TemporaryDirectory() as place:
                data = random_data(Path(place) / "little.npz", env, transitions, seed)
                run = Path(place) / "run"
                train_offline(LOOSE, data, env, seeds=(seed,), budget=budget, folder=run)
                yield doctor(run, seed, episodes=3)

    return examine


def normalised(algorithm: str, env: str, steps: int) -> Any:
    """A function of seeds that trains a model whose normaliser is outside of the shift."""

    def examine(seeds: tuple[int, ...]) -> Iterator[Diagnosis]:
        import stable_baselines3  # noqa: PLC0415  slow to import
        from stable_baselines3.common.env_util import make_vec_env  # noqa: PLC0415
        from stable_baselines3.common.vec_env import VecNormalize  # noqa: PLC0415

        from rewardshift.doctor import sb3  # noqa: PLC0415
        from rewardshift.integrations.sb3 import VecShiftReward  # noqa: PLC0415

        for seed in seeds:
            venv = VecNormalize(VecShiftReward(make_vec_env(env, seed=seed), -0.5))
            model = getattr(stable_baselines3, algorithm)("MlpPolicy", venv, seed=seed)
            yield sb3.doctor(model.learn(steps), env, episodes=3)

    return examine


CASES: dict[str, Case] = {
    "no-target": Case(
        "DQN without a target network, CartPole",
        "overestimation",
        online(HASTY, "CartPole-v1", 4_000),
        online(HASTY, "Acrobot-v1", 4_000),
    ),
    "little-data": Case(
        "TD3 offline on 500 random transitions, Pendulum",
        "overestimation",
        offline("Pendulum-v1", 500, 8_000),
        offline("InvertedPendulum-v5", 500, 8_000),
    ),
    "no-reward": Case(
        "DQN after 1,000 steps, MountainCar",
        "no signal",
        online(STABLE, "MountainCar-v0", 1_000),
        online(STABLE, "MiniGrid-MultiRoom-N6-v0", 2_000),
    ),
    "wrong-ends": Case(
        "DQN whose terminal flag is never set, CartPole",
        "ends",
        online(STABLE, endless_cartpole, 4_000, "CartPole-v1"),
        online(STABLE, endless_acrobot, 10_000, "Acrobot-v1"),
    ),
    "normaliser": Case(
        "DQN with `VecNormalize` outside of the shift, CartPole",
        "normaliser",
        normalised("DQN", "CartPole-v1", 1_000),
        normalised("TD3", "Pendulum-v1", 300),
    ),
    "cartpole": Case(
        "still learning: DQN, CartPole, returns of 110 to 243",
        None,
        online(STABLE, "CartPole-v1", 12_000),
        online(STABLE, "Acrobot-v1", 20_000),
    ),
    "pendulum-td3": Case(
        "still learning: TD3, Pendulum, returns of -1103 to -323",
        None,
        online(TD3(**CONTROL, warm_up=1_000), "Pendulum-v1", 5_000),
        online(TD3(**CONTROL, warm_up=1_000), "MountainCarContinuous-v0", 5_000),
    ),
    "pendulum-sac": Case(
        "healthy: SAC, Pendulum",
        None,
        online(SAC(**CONTROL, warm_up=1_000), "Pendulum-v1", 5_000),
        online(SAC(**CONTROL, warm_up=1_000), "MountainCarContinuous-v0", 5_000),
    ),
}


def look(name: str, case: Case, count: int, *, calibrate: bool) -> list[dict[str, Any]]:
    """What the doctor says of every seed of a case."""
    first = TUNED if calibrate else REPORTED
    seeds = tuple(range(first, first + count))
    rows = []
    for seed, found in zip(
        seeds, (case.elsewhere if calibrate else case.examine)(seeds), strict=True
    ):
        numbers = {key: value for key, value in found.scalars().items() if key in NUMBERS}
        named = [finding.name for finding in found.findings]
        rows.append({"seed": seed, "named": named, "numbers": numbers})
        print(
            f"  {name} {seed}: {named} { ({key: round(v, 3) for key, v in numbers.items()}) }",
            flush=True,
        )
    return rows


def table(kept: dict[str, Any]) -> str:
    """The table of illnesses and hits."""
    lines = [
        "| agent | should say | said it | said something else too |",
        "| --- | --- | --- | --- |",
    ]
    for name, case in CASES.items():
        rows = kept.get(name, [])
        if not rows:
            continue
        wanted = [] if case.illness is None else [case.illness]
        hits = [
            row
            for row in rows
            if (row["named"] == [] if not wanted else case.illness in row["named"])
        ]
        others = sorted({one for row in rows for one in row["named"]} - set(wanted))
        more = [f"{one} ({sum(one in row['named'] for row in rows)})" for one in others]
        said = f"{len(hits)} of {len(rows)}"
        lines.append(f"| {case.words} | {case.illness or 'nothing'} | {said} | {', '.join(more)} |")
    return "\n".join(lines)


def keep(name: str, rows: list[dict[str, Any]]) -> None:
    """Keeps the results of a case, and writes the table of all that are kept."""
    kept = {**(json.loads(KEPT.read_text()) if KEPT.exists() else {}), name: rows}
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    KEPT.write_text(json.dumps(kept, indent=2) + "\n")
    text = PAGE.read_text()
    PAGE.write_text(TABLE.sub(lambda found: f"{found[1]}{table(kept)}{found[2]}", text))


def main() -> None:
    """Trains, examines, and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    options = parser.parse_args()
    for name in options.names or CASES:
        print(name, flush=True)
        rows = look(name, CASES[name], options.seeds, calibrate=options.calibrate)
        if not options.calibrate:
            keep(name, rows)


if __name__ == "__main__":
    main()
