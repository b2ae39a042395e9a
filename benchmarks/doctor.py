"""Illnesses and hits: what the doctor says about agents made ill on purpose and healthy ones.

`python benchmarks/doctor.py` trains every agent of the table with the seeds 0 to 9 (`--seeds` takes
fewer), asks the doctor about it, and writes the table into `docs/doctor.md`. `--calibrate` does the
same with seeds from 100 on and on other tasks, and prints the numbers that the rules look at; the
docs say which thresholds were checked on these. Names select agents. Results are kept in
`out/bench/doctor.json`, so a run can be done in parts. Takes about twenty minutes of one core.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

from patients import CASES, Case

from rewardshift.experiments.processes import keep_to_one_thread

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "out" / "bench" / "doctor.json"
PAGE = ROOT / "docs" / "doctor.md"
TABLE = re.compile(r"(<!-- illnesses -->\n\n).*(\n\n<!-- end of the illnesses -->)", re.DOTALL)
REPORTED, TUNED = 0, 100  # the first seeds
# The numbers that rules look at.
NUMBERS = (
    "belief/share",
    "belief/beyond",
    "untried/pull",
    "untried/advantage",
    "ends/share",
    "ends/far",
    "start/left",
)


def look(name: str, case: Case, count: int, *, calibrate: bool) -> list[dict[str, Any]]:
    """What the doctor says of every seed of a case."""
    first = TUNED if calibrate else REPORTED
    seeds = tuple(range(first, first + count))
    looks = (case.elsewhere if calibrate else case.examine)(seeds)
    rows = []
    for seed, (found, reached) in zip(seeds, looks, strict=True):
        named = [finding.name for finding in found.findings]
        rows.append({"seed": seed, "named": named, "return": reached})
        known = found.scalars()
        numbers = {key: round(known[key], 3) for key in NUMBERS if key in known}
        print(f"  {name} {seed}: {named} return {reached} {numbers}", flush=True)
    return rows


def table(kept: dict[str, Any]) -> str:
    """The table of illnesses and hits."""
    lines = [
        "| agent | returns | should say | said it | said something else too |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, case in CASES.items():
        if name not in kept:
            continue
        rows, wanted = kept[name], case.illness
        hits = [row for row in rows if (wanted in row["named"] if wanted else not row["named"])]
        others = sorted({one for row in rows for one in row["named"]} - {wanted})
        more = [f"{one} ({sum(one in row['named'] for row in rows)})" for one in others]
        reached = [row["return"] for row in rows if row["return"] is not None]
        returns = f"{min(reached):.0f} to {max(reached):.0f}" if reached else ""
        said = f"{len(hits)} of {len(rows)}"
        cells = (case.words, returns, wanted or "nothing", said, ", ".join(more))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def keep(name: str, rows: list[dict[str, Any]]) -> None:
    """Keeps the results of a case, and writes the table of all that are kept."""
    kept = {**(json.loads(KEPT.read_text()) if KEPT.exists() else {}), name: rows}
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    KEPT.write_text(json.dumps(kept, indent=2) + "\n")
    text = PAGE.read_text()
    PAGE.write_text(TABLE.sub(lambda found: f"{found[1]}{table(kept)}{found[2]}", text))


def main() -> None:
    """Trains, examines, and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    options = parser.parse_args()
    keep_to_one_thread()  # the last bits of a training depend on their number
    for name in options.names or CASES:
        print(name, flush=True)
        rows = look(name, CASES[name], options.seeds, calibrate=options.calibrate)
        if not options.calibrate:
            keep(name, rows)


if __name__ == "__main__":
    main()
