"""Illnesses and hits: what the doctor says about agents made ill on purpose and healthy ones.

`python benchmarks/doctor.py` trains every agent of the table with the seeds 0 to 9 (`--seeds` takes
fewer or more), asks the doctor about it, and writes the tables into `docs/doctor.md`. `--calibrate`
does the same with seeds from 100 on and on other tasks, and prints the numbers that the rules look
at; with `--here` on the tasks of the table. The docs say which thresholds were checked on these.

Names select agents. Results are kept in `out/bench/doctor.json` after every seed, and a seed that
is kept is not run again (`--again` does), so a run can be stopped and done in parts. Rows of the
table without a kept result stay as they are. Takes about half an hour of one core, and an hour more
for HalfCheetah. `results/doctor` has what was kept.
"""

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from patients import Case, Examine, Look, Seeds
from patients_sb3 import CASES

from rewardshift.lab.processes import keep_to_one_thread

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "out" / "bench" / "doctor.json"
PAGE = ROOT / "docs" / "doctor.md"
# The tables of the page, and the first letters of their cases.
TABLES = {"agents of others": ("zoo-", "sb3-"), "our agents": ("",)}
HALF_WAY = ", half-way"
REPORTED, TUNED = 0, 100  # the first seeds
# The numbers that rules look at.
NUMBERS = (
    "belief/share",
    "belief/beyond",
    "untried/pull",
    "untried/advantage",
    "ends/share",
    "ends/before",
    "ends/far",
    "ends/shrinking",
    "ends/stored",
    "ends/limit",
    "ends/at_limit",
    "ends/below_limit",
    "ends/went_on",
    "signal/distance",
    "signal/weight",
    "signal/largest",
    "signal/foreign",
    "start/updates",
    "start/left",
)


def look(name: str, examine: Examine, seeds: Seeds) -> Iterator[dict[str, Any]]:
    """What the doctor says of every seed of a case."""
    for seed, found in zip(seeds, examine(seeds), strict=True):
        row = {"seed": seed, **told(found)}
        if found.half is not None:
            row["half"] = told(found.half)
        print(f"  {name} {row}", flush=True)
        yield row


def told(look: Look) -> dict[str, Any]:
    """What the doctor names in a look, the return, and the numbers that rules use."""
    known = look.found.scalars()
    numbers = {key: float(f"{known[key]:.3g}") for key in NUMBERS if key in known}
    named = [finding.name for finding in look.found.findings]
    reached = None if look.reached is None else round(look.reached, 1)
    return {"named": named, "return": reached, "numbers": numbers}


def line(words: str, wanted: str | None, rows: list[dict[str, Any]]) -> str:
    """The line of some looks in the table."""
    hits = [row for row in rows if (wanted in row["named"] if wanted else not row["named"])]
    others = sorted({one for row in rows for one in row["named"]} - {wanted})
    more = [f"{one} ({sum(one in row['named'] for row in rows)})" for one in others]
    reached = [row["return"] for row in rows if row["return"] is not None]
    returns = f"{min(reached):.0f} to {max(reached):.0f}" if reached else ""
    said = f"{len(hits)} of {len(rows)}"
    return f"| {' | '.join((words, returns, wanted or 'nothing', said, ', '.join(more)))} |"


def lines(case: Case, rows: list[dict[str, Any]]) -> str:
    """The lines of a case: a healthy agent has one for each time that it was looked at."""
    looks = [line(case.words, case.illness, rows)]
    half = [row["half"] for row in rows if "half" in row]
    if half and case.illness is None:
        looks.append(line(case.words + HALF_WAY, None, half))
    return "\n".join(looks)


def table(before: str, kept: dict[str, Any], names: list[str]) -> str:
    """A table of illnesses and hits: new lines for what is kept, old ones for the rest."""
    head, rule, *old = before.splitlines()
    written: dict[str, str] = {}
    for one in old:
        words = one.split(" | ")[0].removeprefix("| ").removesuffix(HALF_WAY)
        written[words] = "\n".join(filter(None, (written.get(words), one)))
    written |= {CASES[name].words: lines(CASES[name], kept[name]) for name in names if name in kept}
    every = [CASES[name].words for name in names]
    return "\n".join((head, rule, *(written[words] for words in every if words in written)))


def kept_rows() -> dict[str, Any]:
    """The results so far, by case."""
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}


def keep(name: str, row: dict[str, Any]) -> None:
    """Keeps the result of a seed."""
    kept = kept_rows()
    rows = {**{one["seed"]: one for one in kept.get(name, [])}, row["seed"]: row}
    kept[name] = [rows[seed] for seed in sorted(rows)]
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    KEPT.write_text(json.dumps(kept, indent=2) + "\n")


def write_tables() -> None:
    """Writes the results so far into the page."""
    text, kept, left = PAGE.read_text(), kept_rows(), list(CASES)
    for title, first in TABLES.items():
        names = [name for name in left if name.startswith(first)]
        left = [name for name in left if name not in names]
        marks = rf"(<!-- {title} -->\n\n)(.*)(\n\n<!-- end of {title} -->)"
        found = re.search(marks, text, re.DOTALL)
        assert found is not None, title
        text = text.replace(found[0], found[1] + table(found[2], kept, names) + found[3])
    PAGE.write_text(text)


def main() -> None:
    """Trains, examines, and writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--here", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    options = parser.parse_args()
    keep_to_one_thread()  # the last bits of a training depend on their number
    first = TUNED if options.calibrate else REPORTED
    for name in options.names or CASES:
        print(name, flush=True)
        done = [] if options.calibrate or options.again else kept_rows().get(name, [])
        seeds = set(range(first, first + options.seeds)) - {row["seed"] for row in done}
        elsewhere = options.calibrate and not options.here
        examine = CASES[name].elsewhere if elsewhere else CASES[name].examine
        for row in look(name, examine, tuple(sorted(seeds))) if seeds else ():
            if not options.calibrate:
                keep(name, row)
    if not options.calibrate:
        write_tables()


if __name__ == "__main__":
    main()
