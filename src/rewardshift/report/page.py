"""One self-contained page: every claim with its verdict, every figure with its curves."""

import base64
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from statistics import median
from string import Template
from typing import Any

from rewardshift.files import DAMAGE, read_json, read_own
from rewardshift.lab import FIGURES
from rewardshift.lab.figure import Curve, Figure, Source, rounded
from rewardshift.lab.results import read_results
from rewardshift.lab.sweep.run import read_sweep
from rewardshift.lab.sweep.task import SWEEP
from rewardshift.report.curves import as_json, in_words
from rewardshift.report.reading import reading_html, scenarios_of, short_html
from rewardshift.report.response import response_html
from rewardshift.report.rows import DETAIL, OVERVIEW, SYMBOLS, detail_row, overview_row, table
from rewardshift.report.summary import TITLES, VERDICTS, Row, count_all, read_claims, unreadable
from rewardshift.report.verdicts import SOURCES

Claims = dict[str, list[dict[str, Any]]]
Figures = Mapping[str, Figure]


def render_page(
    folders: Sequence[Path], figures: Figures = FIGURES, live: str | None = None
) -> str:
    """The page for these figure folders, in their order.

    Args:
        folders: The folders of the judged figures.
        figures: All figures that the page is about, by name.
        live: The sections about work that goes on, for a page that is watched.
    """
    claims = read_claims(folders, figures)
    shown = {folder.name for folder in folders}
    style, script = _part("page.css"), _part("page.js")
    if live is not None:
        script += _part("watch.js")
    parts = (
        "".join(_section(folder, figures[folder.name], claims[folder.name]) for folder in folders),
        _claims(folders, claims, figures) if figures else "",
    )
    # The policy forbids the page every request, and every script and style but its own. A watched
    # page may ask its own server.
    return Template(_part("page.html")).substitute(
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        connect="; connect-src 'self'" if live is not None else "",
        live=live or "",
        header=_header(figures, claims) + _contents(folders, figures),
        body="".join(
            parts if SWEEP in figures else reversed(parts)
        ),  # a sweep's answer comes first
        unrun=_unrun([figure for figure in figures.values() if figure.name not in shown]),
    )


def _header(figures: Figures, claims: Claims) -> str:
    """What the page is about: a run, a sweep, or the figures."""
    kind = "sweep" if SWEEP in figures else "paper" if figures else "run"
    theirs = [c["verdict"] for judged in claims.values() for c in judged if c["source"] == "paper"]
    tested = len(theirs) - theirs.count("not tested")
    return Template(_part(f"page_{kind}.html")).substitute(tested=tested, claims=len(theirs))


def _contents(folders: Sequence[Path], figures: Figures) -> str:
    """The way to each figure, on a page of several."""
    if len(folders) < 2:
        return ""
    links = "".join(
        f'<li><a href="#{escape(folder.name)}" title="{escape(figures[folder.name].title)}">'
        f"{escape(folder.name)}</a></li>"
        for folder in folders
    )
    return f'<nav aria-label="Figures"><b>Figures:</b><ul>{links}</ul></nav>\n'


def _claims(folders: Sequence[Path], claims: Claims, figures: Figures) -> str:
    """The section about all claims."""
    counts = count_all(claims, figures).items()
    return Template(_part("page_claims.html")).substitute(
        tiles="".join(_tiles(source, rows[-1]) for source, rows in counts if any(rows[-1].counts)),
        short="" if SWEEP in figures else short_html(folders, claims, figures),
        power=_power(claims),
        scenarios="".join(f"<option>{escape(name)}</option>" for name in scenarios_of(figures)),
        verdicts="".join(map(_verdict_box, VERDICTS)),
        tables="".join(_overview(folders, claims, figures, source) for source in SOURCES),
    )


def _power(claims: Claims) -> str:
    """What the two verdicts that are easily mistaken mean, with the size of what was missed."""
    found = [claim.get("detectable") for judged in claims.values() for claim in judged]
    effects = [effect for effect in found if isinstance(effect, float)]
    missed = (
        ": the seeds of half of the tested claims find only effects above"
        f" {rounded(median(effects))} standard deviations"
        if effects
        else ""
    )
    return f"""<p><b>✗ Not supported</b> means that the opposite was shown. <b>? Inconclusive</b>
does not mean “no effect”{missed}.</p>"""


def _part(name: str) -> str:
    return Path(__file__).with_name(name).read_text()


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}"


def _tiles(source: Source, total: Row) -> str:
    """How many claims of one source came to which verdict."""
    tiles = "".join(
        f'<li class="{verdict.replace(" ", "-")}"><b>{number}</b> {SYMBOLS[verdict]} {verdict}</li>'
        for verdict, number in zip(VERDICTS, total.counts, strict=True)
    )
    cost = ""
    if total.counts[-1] and total.core_hours:
        cost = f"<p>About {rounded(total.core_hours)} core-hours would test the rest.</p>"
    return f"""<div class="tiles"><h3>{escape(TITLES[source])}</h3><ul>{tiles}</ul>{cost}</div>
"""


def _verdict_box(verdict: str) -> str:
    """What is not tested is hidden at first: it is long, and says little."""
    checked = "" if verdict == "not tested" else " checked"
    box = f'<input type="checkbox" name="verdict" value="{verdict}"{checked}>'
    return f"<label>{box} {verdict}</label> "


def _overview(folders: Sequence[Path], claims: Claims, figures: Figures, source: Source) -> str:
    where = {folder.name: folder for folder in folders}
    rows = []
    for name, judged in claims.items():
        try:
            rows += [overview_row(figures[name], c) for c in judged if c["source"] == source]
        except DAMAGE as error:
            raise unreadable(where[name], error) from error
    if not rows:
        return ""
    title = TITLES[source]
    first = " open" if source == "paper" or SWEEP in figures else ""
    return f"""<details class="all"{first}>
<summary>{escape(title)}, one by one ({len(rows)})</summary>
{table(title, OVERVIEW, rows)}</details>
"""


def _section(folder: Path, whole: Figure, claims: list[dict[str, Any]]) -> str:
    try:
        provenance = read_json(folder / "provenance.json")
        figure = whole.at(provenance["preset"])
        rows = [detail_row(whole, claim) for claim in claims]
        curves = read_results(folder / "results.csv")
        if folder.name == SWEEP:
            above = response_html(read_sweep(folder), curves, claims, _picture(folder, "response"))
        else:
            above = reading_html(folder) + _paper(figure, provenance)
        return _filled(figure, provenance, curves, _picture(folder, "figure"), above, rows)
    except DAMAGE as error:
        raise unreadable(folder, error) from error


def _picture(folder: Path, name: str) -> str:
    """The source of a picture within the page."""
    return (
        f"data:image/svg+xml;base64,{base64.b64encode(read_own(folder / f'{name}.svg')).decode()}"
    )


def _paper(figure: Figure, provenance: dict[str, Any]) -> str:
    """The paper's words and setting, beside a figure's own."""
    note = escape(str(provenance["note"]))
    if not figure.wording:
        smaller = f" To save computing time: {note}." if note else ""
        return f"<p>The paper has no such experiment; this one is ours.{smaller}</p>\n"
    differs = f"{note}. These save computing time" if note else "only the number of seeds"
    return f"""<figure><figcaption>The paper:</figcaption>
<blockquote>“{escape(figure.wording)}”</blockquote></figure>
<p><b>What differs from the paper's setting:</b> {differs}.</p>
"""


def _filled(
    figure: Figure,
    provenance: dict[str, Any],
    curves: list[Curve],
    picture: str,
    above: str,
    rows: list[str],
) -> str:
    """A figure's part of the page."""
    name, command = escape(figure.name), provenance.get("command", "")
    terminal = f"terminal {escape(provenance['terminal'])} ·\n" if figure.takes_terminal else ""
    return f"""<section class="figure" id="{name}" aria-labelledby="{name}-title">
<h2 id="{name}-title">{escape(figure.title)}</h2>
<p class="note">{_kind(figure, provenance)}{escape(str(provenance["seeds"]))} seeds ·
{terminal}<a href="#claims">all claims</a></p>
{_gap(provenance.get("missing", []))}{above}
<img class="static" alt="{escape(in_words(figure, curves))}"
 src="{picture}">
<div class="chart"></div>
<script type="application/json">{as_json(figure, curves)}</script>
{table(f"Verdicts on {figure.name}", DETAIL, rows)}
<p><b>To run it again:</b> <code>{escape(str(command))}</code></p>
<details><summary>Provenance of {name}</summary>
<table>{"".join(_pair(key, value) for key, value in provenance.items())}</table>
</details>
</section>
"""


def _kind(figure: Figure, provenance: dict[str, Any]) -> str:
    if figure.name == SWEEP:
        return ""
    return (
        f"{escape(figure.name)} · {escape(figure.scenario)} ·"
        f" preset {escape(provenance['preset'])} · "
    )


def _gap(missing: list[str]) -> str:
    if not missing:
        return ""
    return f'<p class="not-supported">Missing: {escape("; ".join(missing))}</p>\n'


def _unrun(figures: list[Figure]) -> str:
    """The figures without results, as the targets of their claims' links."""
    if not figures:
        return ""
    items = "".join(
        f'<li id="{escape(figure.name)}"><b>{escape(figure.name)}</b> ({escape(figure.scenario)}):'
        f" {escape(figure.title.rstrip('?'))}."
        f" About {rounded(figure.presets['quick'].core_hours)} core-hours:"
        f" <code>rewardshift reproduce {escape(figure.name)} --preset quick</code></li>\n"
        for figure in figures
        if "quick" in figure.presets
    )
    return f"""<section aria-labelledby="unrun">
<h2 id="unrun">Not run yet</h2>
<ul>{items}</ul>
</section>"""


def _pair(key: str, value: Any) -> str:
    if isinstance(value, dict):
        value = [f"{name} {version}" for name, version in value.items()]
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return f'<tr><th scope="row">{escape(key)}</th><td><code>{escape(text)}</code></td></tr>\n'
