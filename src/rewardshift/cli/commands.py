"""The commands by their names, and the parser that chooses one."""

from collections.abc import Callable, Sequence

import tyro

from rewardshift.cli.agents import jobs
from rewardshift.cli.data import collect_data, data
from rewardshift.cli.doctor import examine
from rewardshift.cli.figures import list_figures, report, reproduce
from rewardshift.cli.parts import REGISTRY, PartError
from rewardshift.cli.suggest import suggest
from rewardshift.cli.sweeps import sweep_constants, sweep_jobs
from rewardshift.cli.training import evaluate, play, resume_run, train_agent
from rewardshift.errors import InputError

COMMANDS: dict[str, Callable[..., None]] = {
    "train": train_agent,
    "resume": resume_run,
    "evaluate": evaluate,
    "play": play,
    "collect": collect_data,
    "data": data,
    "sweep": sweep_constants,
    "list": list_figures,
    "reproduce": reproduce,
    "report": report,
    "suggest": suggest,
    "doctor": examine,
}


def run(arguments: Sequence[str]) -> None:
    """Parses the arguments and runs their command.

    Builds only the flags of the named command: building all of them takes much longer.
    """
    named = {name: COMMANDS[name] for name in arguments[:1] if name in COMMANDS}
    commands = named or COMMANDS
    if "train" in commands:
        train_agent.__annotations__["job"] = jobs(arguments)
    if "sweep" in commands:
        sweep_constants.__annotations__["job"] = sweep_jobs(arguments)
    try:
        tyro.extras.subcommand_cli_from_dict(
            commands,
            prog="rewardshift",
            description="Reward shifting for value-based agents, r' = k r + b. Agents, parts and"
            " environments of your own are found with: rewardshift --import MODULE COMMAND ...",
            args=arguments,
            config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
            registry=REGISTRY,
        )
    except PartError as error:
        raise InputError(str(error)) from error
