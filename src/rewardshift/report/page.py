"""One self-contained page: every figure in a folder with its verdicts and where they come from."""

import base64
import json
from collections import Counter
from html import escape
from pathlib import Path
from typing import Any

from rewardshift.errors import InputError, one_line
from rewardshift.files import DAMAGE
from rewardshift.report.verdicts import comparison, evidence

# The policy forbids the page every request: it opens without a network.
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
td.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
.verdict { white-space: nowrap; font-weight: 600; }
.supported { color: #116329; }
.not-supported { color: #a40e26; }
.inconclusive { color: #7a5200; }
.note, details { color: #555; font-size: 13px; }
code { font-size: 12px; }
</style>
</head>
<body>
<h1>rewardshift: report</h1>
<p class="note">A claim is <b class="supported">supported</b> if the 95% interval of the
probability that a seed of the better method beats one of the other lies above 0.5 and a
one-sided permutation test gives p &lt; 0.05; <b class="not-supported">not supported</b> if the
opposite holds; else, and always with fewer than four seeds,
<b class="inconclusive">inconclusive</b>. Two methods are alike if the 95% interval of the
difference of their means lies within the margin.</p>
"""

SYMBOLS = {"supported": "✓", "not supported": "✗", "inconclusive": "?", "not run": "-"}


def render_page(folders: list[Path]) -> str:
    """The page for these figure folders, in their order."""
    sections = [_section(folder) for folder in folders]
    return HEAD + "".join(sections) + "</body>\n</html>\n"


def _section(folder: Path) -> str:
    try:
        provenance = json.loads((folder / "provenance.json").read_text())
        claims = json.loads((folder / "claims.json").read_text())
        picture = base64.b64encode((folder / "figure.svg").read_bytes()).decode()
        return _filled(folder.name, provenance, claims, picture)
    except DAMAGE as error:
        raise InputError(
            f"{str(folder)!r} cannot be shown: {one_line(error)}; 'rewardshift report"
            f" {folder.parent}' makes all but provenance.json again, 'rewardshift reproduce"
            f" {folder.name} --out {folder.parent}' that too"
        ) from error


def _filled(
    name: str, provenance: dict[str, Any], claims: list[dict[str, Any]], picture: str
) -> str:
    """A figure's part of the page."""
    counts = Counter(claim["verdict"] for claim in claims)
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in SYMBOLS if counts[verdict])
    return f"""<section id="{escape(name)}">
<h2>{escape(name)}</h2>
<p>{escape(summary)} of {len(claims)} claims;
preset {escape(provenance["preset"])}, {escape(str(provenance["seeds"]))} seeds,
terminal {escape(provenance["terminal"])}.</p>
{_gap(provenance.get("missing", []))}
<img alt="{escape(name)}" src="data:image/svg+xml;base64,{picture}">
<table>
<tr><th>Verdict</th><th>Claim</th><th>Panel</th><th>Comparison</th><th>Measured</th></tr>
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
<td>{escape(claim["panel"])}</td>
<td>{escape(comparison(claim))}</td>
<td class="number">{escape(evidence(claim))}</td>
</tr>
"""


def _pair(key: str, value: Any) -> str:
    if isinstance(value, dict):
        value = [f"{name} {version}" for name, version in value.items()]
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"<tr><th>{escape(key)}</th><td><code>{escape(text)}</code></td></tr>\n"
