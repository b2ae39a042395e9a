"""The command `report`."""

from pathlib import Path
from typing import Annotated, Any

import tyro
from rich import box
from rich.console import Console
from rich.table import Table

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift.errors import InputError
from rewardshift.files import writable_folder


def report(out: Annotated[Path, tyro.conf.Positional] = Path("out")) -> None:
    """Make verdicts, pictures and the page again from the results in a folder.

    Results that were changed after they were written are refused; a seal in provenance.json
    protects them.

    Args:
        out: The folder that `rewardshift reproduce` or `rewardshift sweep` wrote to.
    """
    if not out.is_dir():
        raise InputError(f"no folder {str(out)!r}")
    from rewardshift.report import write_report  # noqa: PLC0415  an extra
    from rewardshift.report.reading import COLUMNS, TITLES  # noqa: PLC0415

    for source, rows in write_report(writable_folder(out)).summary.items():
        style: dict[str, Any] = {"box": box.SIMPLE, "padding": (0, 1, 0, 0)}
        table = Table(title=TITLES[source], title_justify="left", **style)
        table.add_column(COLUMNS[0], no_wrap=True)
        for column in COLUMNS[1:]:
            table.add_column(column.replace(" ", "\n"), justify="right", no_wrap=True)
        for row in rows:
            table.add_row(*row.cells)
        Console().print(table)
    print(f"report:  {out / 'report.html'}")
