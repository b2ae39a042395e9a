"""Makes results.md, and the tables of the README and of experiments.md: `make tables`."""

import json
import re
from pathlib import Path

import numpy as np

from rewardshift.experiments import FIGURES
from rewardshift.experiments.results import read_results
from rewardshift.report import judged_folders, summary
from rewardshift.report.curves import in_words
from rewardshift.report.rows import SYMBOLS
from rewardshift.report.summary import markdown, read_claims
from rewardshift.report.verdicts import reason

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
TABLES = re.compile(r"(<!-- tables -->\n\n).*(\n\n<!-- end of the tables -->)", re.DOTALL)

MEANS = re.compile(r"(<!-- means of (\S+) -->\n\n).*?(\n\n<!-- end of the means -->)", re.DOTALL)

TOP = """# Results

<!-- Made by `make tables`. -->

Every claim of the figures that were run, with its verdict and the reason for it. How claims are
judged is in [Experiments](experiments.md#verdicts), with what we make of the results. The same
results are an interactive page, in which curves can be compared and claims filtered:

```{raw} html
<p><a href="report.html">Open the interactive page</a>
(<a href="report-absorbing.html">with absorbing terminal states</a>)</p>
```

"""
ABSORBING = """## With absorbing terminal states

The same shifts with `--terminal absorbing`, where a shift is exactly another initial value. The
maze is not solved then:
[why](experiments.md#what-the-constant-does-depends-on-the-terminal-treatment).
"""


def results_page() -> str:
    """The text of results.md."""
    return TOP + "\n".join(
        (
            "## Verdicts\n\n" + markdown(summary(RESULTS)) + "\n",
            *map(_figure, judged_folders(RESULTS)),
            ABSORBING,
            *map(_figure, judged_folders(RESULTS / "absorbing")),
        )
    )


def readme() -> str:
    """The README with the tables of today."""
    text, tables = (ROOT / "README.md").read_text(), markdown(summary(RESULTS))
    return TABLES.sub(lambda found: f"{found[1]}{tables}{found[2]}", text)


def experiments() -> str:
    """experiments.md with the mean curves of today."""
    text = (ROOT / "docs" / "experiments.md").read_text()
    return MEANS.sub(lambda found: f"{found[1]}{_means(RESULTS / found[2])}{found[3]}", text)


def _means(folder: Path) -> str:
    """The mean of each method's curve, over steps and seeds, in the first panel of each task."""
    figure = FIGURES[folder.name]
    panels = {panel.task: panel for panel in reversed(figure.panels)}
    shown = [panels[task] for task in figure.tasks]
    values: dict[tuple[str, str], list[float]] = {}
    for curve in read_results(folder / "results.csv"):
        values.setdefault((curve.panel, curve.method), []).extend(curve.values)
    lines = [["method", *(panel.title for panel in shown)], ["---"] * (1 + len(shown))]
    for method in figure.methods:
        means = [np.mean(values[panel.name, method.name]) for panel in shown]
        lines.append([method.label, *(f"{m:z.2f}" if abs(m) < 10 else f"{m:.0f}" for m in means)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _figure(folder: Path) -> str:
    """A figure with its picture and its verdicts."""
    provenance = json.loads((folder / "provenance.json").read_text())
    figure = FIGURES[folder.name].at(provenance["preset"])
    words = in_words(figure, read_results(folder / "results.csv"))
    labels = {method.name: method.label for method in figure.methods}
    titles = {panel.name: panel.title for panel in FIGURES[folder.name].panels}
    rows = [
        f"| {SYMBOLS[claim['verdict']]} {claim['verdict']} | {claim['statement']} |"
        f" {titles[claim['panel']]} | {reason(claim, labels)} | {claim['source']} |"
        for claim in read_claims([folder])[folder.name]
    ]
    return "\n".join(
        (
            f"### {figure.title}\n",
            f"> {figure.wording} (the paper)\n" if figure.wording else "Ours: not in the paper.\n",
            f"![{words}](../{folder.relative_to(ROOT)}/figure.svg)\n",
            *(
                [f"Differs from the paper's setting: {note}.\n"]
                if (note := provenance["note"])
                else []
            ),
            "| verdict | claim | task | why | source |",
            "| --- | --- | --- | --- | --- |",
            *rows,
            f"\n`{provenance['command']}`\n",
        )
    )


if __name__ == "__main__":
    (ROOT / "docs" / "results.md").write_text(results_page())
    (ROOT / "README.md").write_text(readme())
    (ROOT / "docs" / "experiments.md").write_text(experiments())
