"""Makes results.md, and the tables of the README and of other pages: `make tables`."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from rewardshift.lab import FIGURES
from rewardshift.lab.figure import SCENARIOS, Panel, duration, rounded
from rewardshift.paper.lifetime import JUDGED, SIGNS, fitted_lifetime
from rewardshift.report.plots import in_words
from rewardshift.report.reading import (
    COLUMNS,
    TITLES,
    Judged,
    Report,
    differences,
    read_reading,
    read_report,
)
from rewardshift.report.verdicts import reason, verdict_words

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
TABLES = re.compile(r"(<!-- tables -->\n\n).*(\n\n<!-- end of the tables -->)", re.DOTALL)

FOUND = re.compile(r"(<!-- findings -->\n)[^<]*(\n<!-- end of the findings -->)")
TABLE = re.compile(
    r"(<!-- (means|ends|lifetimes) of (\S+) -->\n)[^<]*(\n<!-- end of the table -->)"
)

PAGES = ("experiments.md", "lifetime.md")
# Figures whose claims are about the second half of the training, and one whose values have no mean.
ENDS = ("auto-offline", "offline", "offline-mechanism")
WITHOUT_MEANS = ("lifetime",)

TOP = """# Results

<!-- Made by `make tables`. -->

"""
INTRODUCTION = """Below is every figure that was run: what it says, its picture, its means, and its
claims with their verdicts. [What we found](experiments.md) is the short form, and
[how we judge](methods.md) explains the words. The same results are an interactive page, in which
you can compare curves and filter claims: `rewardshift report results` writes it to
`results/report.html`, and the built docs have it here.

```{raw} html
<p><a href="report.html">Open the interactive page</a>
(<a href="report-absorbing.html">with absorbing terminal states</a>)</p>
```

"""
# What we say most often: the sentence, the figure, and the two methods that its claims compare.
FINDINGS = (
    (
        "In the maze of Figure 1, a shift of -0.02 explores better than a count bonus",
        "figure1",
        "shift",
        "count",
    ),
    ("A shift of -0.5 helps DQN explore", "curiosity", "dqn-0.5", "dqn"),
    ("A shift of -0.5 helps TD3 explore", "sparse-cheetah", "td3-0.5", "td3"),
    ("RND with its positive bonus is worse than none", "curiosity", "dqn", "rnd"),
    ("RND made negative is better than none", "curiosity", "rnd-1", "dqn"),
    ("RND with -10 is worse than with -1", "curiosity-ablation", "rnd-1", "rnd-10"),
    ("Scaled inputs help DQN without a shift", "curiosity", "dqn-scaled", "dqn"),
    (
        "Optimism 1 that ends only at goals helps a table explore",
        "terminal-treatment",
        "-0.01-goal",
        "none",
    ),
    (
        "Where only goals end an episode, the price of time adds to optimism",
        "terminal-treatment",
        "-0.01-zero",
        "-0.01-absorbing",
    ),
    (
        "Where holes end an episode, a shift that ends at goals beats one that ends there too",
        "terminal-treatment",
        "-0.01-goal",
        "-0.01-zero",
    ),
    ("A shift fades as predicted: negative", "lifetime", "negative", "predicted"),
    ("A shift fades as predicted: positive", "lifetime", "positive", "predicted"),
    ("Five units of optimism are better than no shift", "auto", "auto", "none"),
    ("Five units of optimism are better than -0.5", "auto", "auto", "paper"),
    ("Five units are better than no shift on the sparse Pendulum", "auto-control", "auto", "none"),
    (
        "Five units are better than no shift on the sparse HalfCheetah",
        "sparse-cheetah",
        "auto",
        "td3",
    ),
    (
        "Offline, the shift that the data choose ends better than none",
        "auto-offline",
        "auto",
        "none",
    ),
    (
        "Offline, a cautious start ends better than an optimistic one",
        "offline-mechanism",
        "optimism+0",
        "optimism+1",
    ),
    (
        "Offline, more optimism than the highest value ends worse",
        "offline-mechanism",
        "optimism+1",
        "optimism+2",
    ),
    (
        "Offline, more caution ends better still",
        "offline-mechanism",
        "optimism-2",
        "optimism+0",
    ),
    ("On new tasks, auto explores better than no shift", "auto-test", "auto", "none"),
    ("On new tasks, auto is not much worse than -0.5", "auto-test", "auto", "paper"),
    ("With hindsight, rewards of -1 and 0 beat 0 and +1", "fetch", "fetch+0", "fetch+1"),
)
UNTESTED = """### What is not tested, and why

It takes more computing time than we had. `rewardshift reproduce FIGURE` runs what `quick` runs;
for the tasks that it leaves out, [change the figure](your-own.md#a-figure-of-the-paper-changed).
Approximate core-hours are in brackets. One run tests the paper's claims and ours, so the hours of
`control` and `fetch` stand in both tables above. A third of `humanoid` is run
(`results/unfinished/`); it decides nothing.
"""
ABSORBING = """## With absorbing terminal states

The same shifts with `--terminal absorbing`, where a shift is exactly another initial value. The
maze is not solved then:
[why](experiments.md#what-the-constant-does-depends-on-the-terminal-treatment).
"""


@cache
def results(folder: Path = RESULTS) -> Report:
    """The judged results in a folder."""
    return read_report(folder)


def results_page() -> str:
    """The text of results.md."""
    absorbing = ", with absorbing terminal states"
    questions = {
        question: [one for one in results().judged.values() if one.figure.scenario == scenario]
        for scenario, question in SCENARIOS.items()
    }
    return TOP + "\n".join(
        (
            f"## In short\n\n{_in_short(questions)}\n",
            INTRODUCTION,
            *(
                "\n".join((f"## {question}\n", *map(_figure, figures)))
                for question, figures in questions.items()
            ),
            ABSORBING,
            *(_figure(one, absorbing) for one in results(RESULTS / "absorbing").judged.values()),
            f"## All claims, counted\n\n{_verdicts()}\n",
            f"{UNTESTED}\n{_untested()}\n",
        )
    )


def _in_short(questions: Mapping[str, Sequence[Judged]]) -> str:
    """The questions, each with the answer of its first figure, and the counts of verdicts."""
    lines = [
        f"- [{question}](#{_anchor(question)}) {reading.answer}"
        for question, figures in questions.items()
        if (reading := read_reading(figures[0].folder))
    ]
    unrun = ", ".join(name for name in FIGURES if name not in results().judged)
    left = f"- [Not run yet](#what-is-not-tested-and-why): {unrun}."
    return "\n".join((*lines, left, f"- {_counts()}"))


def _verdicts() -> str:
    """The counts of the verdicts, with a link from each figure that was run to its section."""
    links = {
        name: f"[{name}](#{_anchor(one.figure.title)})" for name, one in results().judged.items()
    }
    tables = []
    for source, rows in results().summary.items():
        cells = [[links.get(row.figure, row.figure), *row.cells[1:]] for row in rows]
        tables.append(_markdown([[TITLES[source], *COLUMNS[1:]], *cells]))
    return "\n\n".join(tables)


def _untested() -> str:
    """The figures with untested claims: the tasks that their quick preset runs and leaves out."""
    lines = [["figure", "untested claims", "`quick` runs", "`quick` leaves out"]]
    for name, claims in results().claims.items():
        quick = FIGURES[name].presets["quick"]
        count = [claim["verdict"] for claim in claims].count("not tested")
        tasks = "; ".join(FIGURES[name].at("quick").tasks)
        runs = "is run" if name in results().judged else f"{tasks} ({rounded(quick.core_hours)})"
        left = [f"{task} ({rounded(hours)})" for task, hours in quick.left_out.items()]
        if count:
            lines.append([name, f"{count}", runs, "; ".join(left)])
    return _markdown(lines)


def readme() -> str:
    """The README with the counts of today."""
    text = (ROOT / "README.md").read_text()
    return TABLES.sub(lambda found: f"{found[1]}{_counts()}{found[2]}", text)


def _counts() -> str:
    """How many claims of the paper, and of ours, have each verdict."""
    counts = {source: rows[-1].cells[1:5] for source, rows in results().summary.items()}
    theirs, ours = ([int(cell) for cell in counts[source]] for source in ("paper", "ours"))
    names = ("supported", "contradicted", "inconclusive", "not tested yet")
    paper, own = (
        ", ".join(f"{count} {name}" for count, name in zip(counted, names, strict=True))
        for counted in (theirs, ours)
    )
    return f"Of the paper's {sum(theirs)} claims: {paper}. Of {sum(ours)} of ours: {own}."


def page(name: str) -> str:
    """A page of the docs with the tables of today."""
    text = (ROOT / "docs" / name).read_text()
    tables = {"means": _means, "ends": _ends, "lifetimes": _lifetimes}

    def made(found: re.Match[str]) -> str:
        return f"{found[1]}\n{tables[found[2]](results().judged[found[3]])}\n{found[4]}"

    found = f"\n{_findings()}\n"
    return FOUND.sub(lambda place: place[1] + found + place[2], TABLE.sub(made, text))


def _findings() -> str:
    """For each finding the tasks on which it holds, does not hold, or is open, and its seeds."""
    lines = [["finding", "holds", "the opposite holds", "open", "seeds", "figure"]]
    for sentence, figure, better, worse in FINDINGS:
        about = [
            claim
            for claim in results().claims[figure]
            if (claim["better"], claim["worse"]) == (better, worse)
        ]
        # A claim with an allowance counts where there is none without.
        about = [one for one in about if not one["allowance"]] or about
        verdicts = [claim["verdict"] for claim in about]
        counts = [verdicts.count("supported"), verdicts.count("contradicted")]
        seeds = min((claim["seeds"] for claim in about if claim["seeds"]), default="")
        lines.append(
            [
                sentence,
                *map(str, (*counts, len(about) - sum(counts), seeds)),
                f"[{figure}](results.md#{_anchor(FIGURES[figure].title)})",
            ]
        )
    return _markdown(lines)


def _anchor(title: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _means(judged: Judged) -> str:
    """The mean of each method's curve, over steps and seeds, in the first panel of each task."""
    shown, values = _values(judged)
    lines = [["method", *(panel.title for panel in shown)]]
    for method in judged.figure.methods:
        found = [values.get((panel.name, method.name)) for panel in shown]
        lines.append([method.label, *map(_mean, found)])
    return _markdown(lines)


def _ends(judged: Judged) -> str:
    """The mean of the second half of each method's curve, with a line for each task."""
    shown, values = _values(judged)
    lines = [["task", *(method.label for method in judged.figure.methods)]]
    for panel in shown:
        found = [values.get((panel.name, method.name)) for method in judged.figure.methods]
        halves = [None if one is None else one[:, one.shape[1] // 2 :] for one in found]
        lines.append([panel.title, *map(_mean, halves)])
    return _markdown(lines)


def _lifetimes(judged: Judged) -> str:
    """The lifetime of each agent's shift, as predicted and as fitted to its curves."""
    lines = [["agent", "predicted", "after a negative shift", "after a positive shift"]]
    curves = [curve for curve in judged.curves if curve.method in SIGNS]
    for name, task in judged.figure.tasks.items():
        fitted = [
            [
                fitted_lifetime(curve, round(JUDGED * task.agent.lifetime))
                for curve in curves
                if (curve.panel, curve.method) == (name, sign)
            ]
            for sign in SIGNS
        ]
        lines.append(
            [
                name,
                f"{task.agent.lifetime:.0f}",
                *(f"{np.mean(of):.0f} ({np.std(of, ddof=1):.0f})" for of in fitted),
            ]
        )
    return _markdown(lines)


def _values(judged: Judged) -> tuple[list[Panel], dict[tuple[str, str], np.ndarray]]:
    """The first panel of each task, and the curves of panels and methods, by seed."""
    panels = {panel.task: panel for panel in reversed(judged.figure.panels)}
    curves: dict[tuple[str, str], list[Sequence[float]]] = {}
    for curve in judged.curves:
        curves.setdefault((curve.panel, curve.method), []).append(curve.values)
    values = {key: np.array(found) for key, found in curves.items()}
    trained = {name for name, _ in values}
    shown = [panels[task] for task in judged.figure.tasks if panels[task].name in trained]
    return shown, values


def _mean(curves: np.ndarray | None) -> str:
    if curves is None:
        return ""
    mean = curves.mean()
    return f"{mean:z.2f}" if abs(mean) < 10 else f"{mean:.0f}"


def _markdown(lines: list[list[str]]) -> str:
    rule = ["---"] * len(lines[0])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (lines[0], rule, *lines[1:]))


def _figure(judged: Judged, treated: str = "") -> str:
    """A figure with its picture and its verdicts.

    Args:
        judged: The figure.
        treated: More words for its heading.
    """
    folder, figure, provenance, curves, claims = judged
    words = in_words(figure, curves)
    labels = {method.name: method.label for method in figure.methods}
    titles = {panel.name: panel.title for panel in FIGURES[figure.name].panels}
    rows = [
        f"| {verdict_words(claim)} | {claim['statement']} |"
        f" {titles[claim['panel']]} | {reason(claim, labels)} | {claim['source']} |"
        for claim in claims
    ]
    return "\n".join(
        (
            f"### {figure.title}{treated}\n",
            f"> {figure.wording} (the paper)\n" if figure.wording else "Ours: not in the paper.\n",
            *(
                [f"**{reading.answer}** {reading.why}\n"]
                if (reading := read_reading(folder))
                else []
            ),
            f"![{words}](../{folder.relative_to(ROOT)}/figure.svg)\n",
            *_numbers(judged),
            *(f"{text}\n" for text in [differences(figure, provenance)] if text),
            f"<details><summary>{_number(rows)}</summary>\n",
            "| verdict | claim | task | why | source |",
            "| --- | --- | --- | --- | --- |",
            *rows,
            "\n</details>\n",
            f"`{provenance['command']}` takes about"
            f" {duration(figure.presets[provenance['preset']].seconds)} on two cores.\n",
        )
    )


def _number(rows: list[str]) -> str:
    return "1 claim and its verdict" if len(rows) == 1 else f"{len(rows)} claims and their verdicts"


def _numbers(judged: Judged) -> list[str]:
    """The means of a figure's curves, below a line that says of what."""
    if judged.figure.name in WITHOUT_MEANS:
        return []
    ends = judged.figure.name in ENDS
    span = "the second half of the training" if ends else "the training"
    return [f"Means over {span} and over the seeds:\n\n{(_ends if ends else _means)(judged)}\n"]


if __name__ == "__main__":
    (ROOT / "docs" / "results.md").write_text(results_page())
    (ROOT / "README.md").write_text(readme())
    for name in PAGES:
        (ROOT / "docs" / name).write_text(page(name))
