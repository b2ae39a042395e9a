"""The commands by their names, and the parser that chooses one."""

from collections.abc import Callable, Sequence

import tyro

from rewardshift.cli.data import collect_data, data
from rewardshift.cli.figures import list_figures, report, reproduce
from rewardshift.cli.suggest import suggest
from rewardshift.cli.training import play, resume_run, train_agent

COMMANDS: dict[str, Callable[..., None]] = {
    "train": train_agent,
    "resume": resume_run,
    "play": play,
    "collect": collect_data,
    "data": data,
    "list": list_figures,
    "reproduce": reproduce,
    "report": report,
    "suggest": suggest,
}


def run(arguments: Sequence[str]) -> None:
    """Parses the arguments and runs the command that they name."""
    tyro.extras.subcommand_cli_from_dict(
        COMMANDS,
        prog="rewardshift",
        description="Reward shifting for value-based agents, r' = k r + b. Parts of your own"
        " that a run names are found with: rewardshift --import MODULE COMMAND ...",
        args=arguments,
    )
