"""Makes results.md, and the tables of the README, of the results that are kept: `make tables`."""

import json
import re
from pathlib import Path

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

TOP = """# Results

<!-- Made by `make tables`. -->

Every claim that has been tested, with its verdict and the reason for it. How claims are judged
is in [Experiments](experiments.md#verdicts), with what we make of the results. The same results are
an interactive page, in which curves can be compared and claims filtered:

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
