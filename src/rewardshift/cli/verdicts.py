"""The output of `reproduce` and `report` about verdicts."""

import sys
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from rewardshift.lab.runner import Plan
from rewardshift.report import summary, unsealed, write_figure, write_page, write_report, write_seal
from rewardshift.report.reading import COLUMNS, TITLES, Counts
from rewardshift.report.reading import markdown as as_markdown
from rewardshift.report.verdicts import comparison, evidence, verdict_words

COLORS = {
    "supported": "green",
    "contradicted": "red",
    "inconclusive": "yellow",
    "not tested": "blue",
}


def judge_figure(plan: Plan) -> None:
    """Judges and draws a figure, and prints its claims."""
    _print_claims(plan.figure, write_figure(plan.folder))
    print(f"picture: {plan.folder / 'figure.png'}")


def make_page(out: Path) -> None:
    """Writes the page of all figures in a folder."""
    print(f"report:  {write_page(out)}")


def make_report(out: Path, *, markdown: bool, seal: bool) -> None:
    """Makes verdicts, pictures and the page again, and prints the counts of the verdicts."""
    page = write_report(out)
    for folder in unsealed(out):
        if seal:
            write_seal(folder)
        else:
            print(
                f"not sealed: {folder}, so a change of its results cannot be told; to seal them as"
                f" they are: rewardshift report {out} --seal",
                file=sys.stderr,
            )
    if markdown:
        print(as_markdown(summary(out)))
        return
    for source, rows in summary(out).items():
        Console().print(_counts(TITLES[source], rows))
    print(f"report:  {page}")


def _counts(title: str, rows: list[Counts]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column(COLUMNS[0], no_wrap=True)
    for column in COLUMNS[1:]:
        table.add_column(column.replace(" ", "\n"), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row.cells)
    return table


def _print_claims(figure: str, claims: list[dict[str, Any]]) -> None:
    verdict_column = Column("verdict", no_wrap=True)
    table = Table(verdict_column, "source", "claim", "measured", title=figure, title_justify="left")
    for claim in claims:
        verdict = claim["verdict"]
        table.add_row(
            f"[{COLORS[verdict]}]{verdict_words(claim)}[/]",
            claim["source"],
            escape(f"{claim['panel']}: {comparison(claim)}"),
            escape(evidence(claim)),
        )
    Console().print(table)
