"""One self-contained page: every figure in a folder with its verdicts and their provenance."""

import base64
import json
from html import escape
from pathlib import Path
from typing import Any

from rewardshift.experiments.figure import Source, rounded
from rewardshift.files import DAMAGE, read_own
from rewardshift.report.summary import COLUMNS, TITLES, Row, read_summary, unreadable
from rewardshift.report.verdicts import comparison, evidence

# The security policy forbids all requests: the page needs no network.
HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>rewardshift: report</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem; }
img { max-width: 100%; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; font-size: 13px; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem;
  border-bottom: 1px solid #ddd; }
td.number { font-variant-numeric: tabular-nums; }
tr.all { font-weight: 600; }
.verdict { white-space: nowrap; font-weight: 600; }
.supported { color: #116329; }
.not-supported { color: #a40e26; }
.inconclusive { color: #7a5200; }
.not-tested { color: #1f4e8c; }
.note, details { color: #555; font-size: 13px; }
code { font-size: 12px; }
</style>
</head>
<body>
<h1>rewardshift: report</h1>
<p class="note">Every claim compares two methods by one number per seed. "Better" is a one-sided
permutation test of P, the probability that a seed of the better method beats a seed of the other;
its interval is Newcombe's 95% score interval. "Alike" is two one-sided Welch t-tests of the
difference of the means against a margin; its interval covers 90%. Holm's method corrects the
p-values for the number of claims: the paper's claims of a figure are one family, ours another.</p>
<p class="note">A claim is <b class="supported">supported</b> if its corrected p is below 0.05,
and <b class="not-supported">not supported</b> if the corrected p of the opposite is; for "better"
the interval must also lie on that side of 0.5. All else is
<b class="inconclusive">inconclusive</b>, and so is every claim with fewer than eight seeds. A claim
without results is <b class="not-tested">not tested</b>. "Detectable" is the smallest effect, in
standard deviations of a method's seeds, that a claim's seeds find four times in five: a difference
of means for "better", a margin for "alike". "Lifetimes" is the training budget, in lifetimes of a
shift. "Core-hours" is about how long one core takes to test the claims that are not tested.</p>
"""

SYMBOLS = {"supported": "✓", "not supported": "✗", "inconclusive": "?", "not tested": "-"}


def render_page(folders: list[Path]) -> str:
    """The page for these figure folders, in their order."""
    tables = [_table(source, rows) for source, rows in read_summary(folders).items()]
    sections = [_section(folder) for folder in folders]
    return HEAD + "".join([*tables, *sections]) + "</body>\n</html>\n"


def _table(source: Source, rows: list[Row]) -> str:
    """The summary of the claims of one source."""
    heads = "".join(f"<th>{escape(name)}</th>" for name in COLUMNS)
    lines = [
        "".join(f'<td class="number">{escape(cell)}</td>' for cell in row.cells) for row in rows
    ]
    return f"""<h2>{escape(TITLES[source])}</h2>
<table>
<tr>{heads}</tr>
{"".join(f"<tr>{line}</tr>" for line in lines[:-1])}
<tr class="all">{lines[-1]}</tr>
</table>
"""


def _section(folder: Path) -> str:
    try:
        provenance = json.loads(read_own(folder / "provenance.json"))
        claims = json.loads(read_own(folder / "claims.json"))
        picture = base64.b64encode(read_own(folder / "figure.svg")).decode()
        return _filled(folder.name, provenance, claims, picture)
    except DAMAGE as error:
        raise unreadable(folder, error) from error


def _filled(
    name: str, provenance: dict[str, Any], claims: list[dict[str, Any]], picture: str
) -> str:
    """A figure's part of the page."""
    return f"""<section id="{escape(name)}">
<h2>{escape(name)}</h2>
<p>Preset {escape(provenance["preset"])}, {escape(str(provenance["seeds"]))} seeds,
terminal {escape(provenance["terminal"])}.</p>
{_gap(provenance.get("missing", []))}
<img alt="{escape(name)}" src="data:image/svg+xml;base64,{picture}">
<table>
<tr><th>Verdict</th><th>Claim</th><th>Source</th><th>Comparison</th><th>Measured</th>
<th>Detectable</th><th>Lifetimes</th></tr>
{"".join(_row(claim) for claim in claims)}</table>
<details><summary>Provenance</summary>
<table>{"".join(_pair(key, value) for key, value in provenance.items())}</table>
</details>
</section>
"""


def _gap(missing: list[str]) -> str:
    if not missing:
        return ""
    return f'<p class="not-supported">Missing: {escape("; ".join(missing))}</p>'


def _row(claim: dict[str, Any]) -> str:
    verdict = claim["verdict"]
    return f"""<tr>
<td class="verdict {verdict.replace(" ", "-")}">{SYMBOLS[verdict]} {escape(verdict)}</td>
<td>{escape(claim["statement"])}</td>
<td>{escape(claim["source"])}</td>
<td>{escape(f"{claim['panel']}: {comparison(claim)}")}</td>
<td class="number">{escape(evidence(claim))}</td>
<td class="number">{_number(claim["detectable"])}</td>
<td class="number">{_number(claim["lifetimes"])}</td>
</tr>
"""


def _number(value: float | None) -> str:
    return "" if value is None else escape(rounded(value))


def _pair(key: str, value: Any) -> str:
    if isinstance(value, dict):
        value = [f"{name} {version}" for name, version in value.items()]
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"<tr><th>{escape(key)}</th><td><code>{escape(text)}</code></td></tr>\n"
