"""The command `collect`."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.progress import Progress

from rewardshift.cli.parts import command
from rewardshift.data.writing import check_env, check_target, write_minari
from rewardshift.lab.provenance import made_with
from rewardshift.training.collection import collect
from rewardshift.training.config import foreign_modules, part_to_json
from rewardshift.training.run_folder import load, read_config


def collect_data(
    run: Annotated[Path, tyro.conf.Positional],
    /,
    *,
    id: str,  # noqa: A002  it is the option's name
    transitions: int = 10_000,
    noise: float = 0.0,
    random_actions: float = 0.0,
    seed: int = 0,
    run_seed: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
    folder: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None,
) -> None:
    """Collect a Minari data set with the policy of a run.

    A stopped run has the policy of its last checkpoint. The same command gives the same data set.
    A README.md beside the data describes the contents and how they were made.

    Args:
        run: The folder of the run.
        id: The name of the new data set, for example hopper/medium-v0.
        transitions: The number of transitions; the last episode is cut.
        noise: Standard deviation of the noise on continuous actions, on the scale [-1, 1].
        random_actions: The probability of a random action.
        seed: The seed of the episodes, the noise and the random actions.
        run_seed: The run's seed whose policy acts; by default its first.
        folder: A new folder for the data set; by default Minari's own place.
    """
    config, policy = read_config(run), load(run, run_seed)
    target, spec = check_target(id, folder), check_env(config.env)
    settings: dict[str, Any] = {
        "transitions": transitions,
        "noise": noise,
        "random_actions": random_actions,
        "seed": seed,
    }
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(id, total=transitions)
        dataset = collect(policy, **settings, on_progress=lambda n: bar.update(task, completed=n))
    given = {**settings, "run_seed": policy.seed}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    modules = sorted(foreign_modules(part_to_json(config.agent)))
    imports = [word for module in modules for word in ("--import", module)]
    algorithm = type(config.agent).__name__
    about = {
        "dataset_id": id,
        "algorithm_name": algorithm,
        "description": (
            f"{transitions} transitions of {algorithm} on {config.env} after {policy.step} steps"
            f" of training, with noise {noise:g} and {100 * random_actions:g}% random actions"
        ),
        "recipe": {
            "command": command(*imports, "collect", run.resolve().name, f"--id={id}", *options),
            "run": config.to_json(),
            "trained_steps": policy.step,
            "made_with": made_with(),
        },
    }
    write_minari(dataset, target, spec, about)
    print(f"data set: {target}")
    print(
        f"{len(dataset)} transitions, mean return {dataset.returns.mean():.2f};"
        f" use it as: --data {shlex.quote(id if folder is None else str(folder))}"
    )
