"""Returns of SAC beside those of SBX's SAC, with the same settings.

`python benchmarks/returns.py` trains both for 100,000 steps on HalfCheetah-v5 and on Hopper-v5 with
three seeds, two trainings at a time with one thread each. Every 10,000 steps it evaluates them over
ten episodes with the most probable action. Both have networks of 256x256, a learning rate of 0.001,
batches of 100 and 5,000 random steps first. The results are `results/sac-check/returns.csv` and a
README with the table. Trainings that are in the file already are not repeated. About two hours.
"""

import csv
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from pathlib import Path
from statistics import mean

import numpy as np
from peers import ONE_THREAD

FOLDER = Path("results") / "sac-check"
COLUMNS = ("task", "library", "seed", "step", "return")
TASKS = ("HalfCheetah-v5", "Hopper-v5")
LIBRARIES = ("rewardshift", "SBX")
SEEDS = (0, 1, 2)
STEPS, EVERY, EPISODES = 100_000, 10_000, 10
WARM_UP, RATE, BATCH = 5_000, 0.001, 100
Row = tuple[str, str, int, int, float]  # see COLUMNS


def ours(task: str, seed: int) -> list[tuple[int, float]]:
    """The mean return of each evaluation of our SAC."""
    from rewardshift import SAC, OnlineBudget, train  # noqa: PLC0415  in the worker

    budget = OnlineBudget(
        steps=STEPS,
        capacity=STEPS,
        evaluate_every=EVERY,
        evaluation_episodes=EPISODES,
        checkpoint_every=STEPS,  # a checkpoint ends episodes, which SBX does not do
    )
    agent = SAC(learning_rate=RATE, batch_size=BATCH, warm_up=WARM_UP)
    result = train(agent, task, seeds=(seed,), budget=budget)
    return [(row.step, row.evaluation_return) for row in result.rows if row.step]


def theirs(task: str, seed: int) -> list[tuple[int, float]]:
    """The mean return of each evaluation of SBX's SAC."""
    import gymnasium as gym  # noqa: PLC0415  in the worker
    import sbx  # noqa: PLC0415
    from stable_baselines3.common.evaluation import evaluate_policy  # noqa: PLC0415
    from stable_baselines3.common.monitor import Monitor  # noqa: PLC0415

    model = sbx.SAC(
        "MlpPolicy",
        gym.make(task),
        learning_rate=RATE,
        buffer_size=STEPS,
        batch_size=BATCH,
        learning_starts=WARM_UP,
        policy_kwargs={"net_arch": [256, 256]},
        seed=seed,
    )
    test = Monitor(gym.make(task))
    test.reset(seed=seed)
    found = []
    for step in range(EVERY, STEPS + 1, EVERY):
        model.learn(EVERY, reset_num_timesteps=False)
        found.append((step, float(np.mean(evaluate_policy(model, test, EPISODES)[0]))))
    return found


def training(task: str, library: str, seed: int) -> list[Row]:
    """The evaluations of one training."""
    found = (ours if library == "rewardshift" else theirs)(task, seed)
    return [(task, library, seed, step, value) for step, value in found]


def read() -> list[Row]:
    """The evaluations in the file."""
    if not (FOLDER / "returns.csv").exists():
        return []
    with (FOLDER / "returns.csv").open() as file:
        return [
            (row["task"], row["library"], int(row["seed"]), int(row["step"]), float(row["return"]))
            for row in csv.DictReader(file)
        ]


def write(rows: list[Row]) -> None:
    """Writes all evaluations, in order."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "returns.csv").open("w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((*row[:4], f"{row[4]:.1f}") for row in sorted(rows))


def table(rows: list[Row]) -> str:
    """The last returns, of each seed and their mean, in Markdown."""
    lines = ["| task | library | seeds 0, 1, 2 | mean |", "| --- | --- | --- | --- |"]
    for task in TASKS:
        for library in LIBRARIES:
            last = [row[4] for row in rows if row[:2] == (task, library) and row[3] == STEPS]
            values = ", ".join(f"{value:.0f}" for value in last)
            lines.append(f"| {task} | {library} | {values} | {mean(last):.0f} |")
    return "\n".join(lines)


def readme(rows: list[Row]) -> str:
    """The README of the results."""
    from rewardshift.lab.provenance import made_with  # noqa: PLC0415

    made = made_with()
    names = ("python", "jax", "gymnasium", "mujoco")
    versions = ", ".join([*(f"{name} {made[name]}" for name in names), f"SBX {version('sbx-rl')}"])
    return f"""# SAC beside SBX's

Both learned for {STEPS:,} steps with three seeds and the same settings: networks of 256x256, a
learning rate of {RATE}, batches of {BATCH} and {WARM_UP:,} random steps first. Mean returns of the
last evaluation, {EPISODES} episodes each with the most probable action:

{table(rows)}

```bash
python benchmarks/returns.py
```

All evaluations are in `returns.csv`. Made with commit {(made["commit"] or "")[:7]},
{versions}.
"""


def main() -> None:
    """Trains what is missing, two at a time, and writes the table."""
    os.environ.update(ONE_THREAD)
    rows = read()
    done = {row[:3] for row in rows}
    missing = [
        (task, library, seed)
        for task in TASKS
        for seed in SEEDS
        for library in LIBRARIES
        if (task, library, seed) not in done
    ]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn, max_tasks_per_child=1) as pool:
        for future in as_completed([pool.submit(training, *one) for one in missing]):
            rows += future.result()
            write(rows)
            print(f"{len({row[:3] for row in rows})} of 12: {rows[-1]}", flush=True)
    rows = read()
    (FOLDER / "README.md").write_text(readme(rows))
    print(table(rows))


if __name__ == "__main__":
    main()
