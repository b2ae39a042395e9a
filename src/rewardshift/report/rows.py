"""A claim as a row of a table, in HTML."""

from html import escape
from typing import Any

from rewardshift.lab.figure import Figure, Metric, rounded
from rewardshift.report.verdicts import evidence, reason

SYMBOLS = {"supported": "✓", "not supported": "✗", "inconclusive": "?", "not tested": "-"}
METRICS: dict[Metric, str] = {
    "auc": "the mean of the curve",
    "final": "the end of the curve",
    "best": "the best point of the curve",
    "drop": "the loss from the best point to the end",
}
OVERVIEW = (
    *("Verdict", "Claim", "Probability of improvement, or difference"),
    *("Seeds", "Lifetimes", "Figure"),
)
DETAIL = ("Verdict", "Claim", "Why", "Numbers", "Detectable", "Lifetimes")


def table(caption: str, columns: tuple[str, ...], rows: list[str]) -> str:
    """A table of claims under a caption."""
    heads = "".join(f'<th scope="col">{name}</th>' for name in columns)
    return f"""<table class="claims">
<caption>{escape(caption)}</caption>
<thead><tr>{heads}</tr></thead>
<tbody>
{"".join(rows)}</tbody>
</table>
"""


def overview_row(figure: Figure, claim: dict[str, Any]) -> str:
    """A claim in the table above all figures."""
    why = "" if claim["verdict"] in ("supported", "not tested") else f" {_why(figure, claim)}"
    task, name = _title(figure, claim), escape(figure.name)
    return f"""<tr data-scenario="{escape(figure.scenario)}" data-verdict="{_verdict(claim)}">
{_verdict_cell(claim)}
{cell("Claim", f"{escape(claim['statement'])} <small>{escape(task)}.{why}</small>")}
{cell("P", _effect(claim))}
{cell("Seeds", escape(str(claim["seeds"] or "-")))}
{cell("Lifetimes", _lifetimes(claim))}
{cell("Figure", f'<a class="number" href="#{name}">{name}</a>')}
</tr>
"""


def detail_row(figure: Figure, claim: dict[str, Any]) -> str:
    """A claim in the table of its own figure."""
    source = "the paper's claim" if claim["source"] == "paper" else "our claim"
    until = "" if claim["until"] is None else f" to step {claim['until']:,}"
    compared = f"{_title(figure, claim)}, by {METRICS[claim['metric']]}{until}; {source}"
    return f"""<tr>
{_verdict_cell(claim)}
{cell("Claim", f"{escape(claim['statement'])} <small>{escape(compared)}</small>")}
{cell("Why", _why(figure, claim))}
{cell("Numbers", "-" if claim["seeds"] is None else _bar(claim) + escape(evidence(claim)))}
{cell("Detectable", _number(claim["detectable"]))}
{cell("Lifetimes", _lifetimes(claim))}
</tr>
"""


def _verdict(claim: dict[str, Any]) -> str:
    verdict = claim["verdict"]
    if verdict not in SYMBOLS:
        raise ValueError(f"{verdict!r} is not a verdict")
    return str(verdict)


def _verdict_cell(claim: dict[str, Any]) -> str:
    verdict = _verdict(claim)
    kind = verdict.replace(" ", "-")
    return f'<td class="verdict {kind}">{SYMBOLS[verdict]} {verdict}</td>'


def cell(name: str, content: str) -> str:
    """A cell with the name that it shows on a narrow screen."""
    return f'<td data-name="{name}">{content}</td>'


def _title(figure: Figure, claim: dict[str, Any]) -> str:
    titles = {panel.name: panel.title for panel in figure.panels}
    return titles.get(claim["panel"], str(claim["panel"]))


def _why(figure: Figure, claim: dict[str, Any]) -> str:
    return escape(reason(claim, {method.name: method.label for method in figure.methods}))


def _number(value: float | None) -> str:
    return "-" if value is None else escape(rounded(value))


def _lifetimes(claim: dict[str, Any]) -> str:
    """The budget in lifetimes of the shift, marked where it is too short for the whole story."""
    if claim["lifetimes"] is None or claim["verdict"] == "not tested":
        return "-"
    start = " (start only)" if claim["lifetimes"] < 1 else ""
    return f"{_number(claim['lifetimes'])}{start}"


def _effect(claim: dict[str, Any]) -> str:
    """P, or for methods that are claimed alike the difference, with its interval."""
    if claim["probability"] is None:
        return "-"
    value = claim["probability"] if claim["alike"] is None else claim["difference"]
    interval = "" if claim["low"] is None else f" [{claim['low']:z.2f}, {claim['high']:z.2f}]"
    name = "" if claim["alike"] is None else "difference "
    return f'{_bar(claim)}<span class="number">{name}{value:z.2f}{interval}</span>'


def _bar(claim: dict[str, Any]) -> str:
    """A small picture of an interval: of P from 0 to 1, or of a difference within two margins."""
    if claim["low"] is None or claim["margin"] == 0:
        return ""
    if claim["alike"] is None:
        places = [100 * claim[key] for key in ("low", "probability", "high")]
        behind = ""
    else:
        wide = 4 * claim["margin"]
        differences = [claim[key] for key in ("low", "difference", "high")]
        places = [100 * min(1, max(0, 0.5 + value / wide)) for value in differences]
        behind = '<rect class="margin" x="25" width="50" height="12"/>'
    low, middle, high = places
    return (
        f'<svg class="bar" viewBox="-3 0 106 12" aria-hidden="true">{behind}'
        '<path class="axis" d="M0 6H100M50 0V12"/>'
        f'<path class="interval" d="M{low:.1f} 6H{high:.1f}"/>'
        f'<circle cx="{middle:.1f}" cy="6" r="3"/></svg>'
    )
