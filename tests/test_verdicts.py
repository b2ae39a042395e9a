"""From curves that are known to the verdicts on the claims, and to their counts."""

from dataclasses import replace
from typing import Any

import pytest
from test_report import FIGURE, known_curves

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift.lab import FIGURES
from rewardshift.lab.figure import Claim, Curve, Figure
from rewardshift.report.reading import count
from rewardshift.report.verdicts import (
    evidence,
    judge,
    reason,
    score,
    value_range,
    verdict_words,
)


def test_a_curve_is_scored_by_its_mean_or_its_end() -> None:
    curve = Curve("p", "m", 0, range(0, 200, 10), range(20))
    assert score(curve, "auc") == 9.5
    assert score(curve, "final") == 18.5
    assert score(curve, "final", end=0.4) == 15.5
    assert score(curve, "final", end=0.001) == 19
    assert score(curve, "auc", until=40) == 2.0
    fallen = Curve("p", "m", 0, [1, 2, 3, 4], [1.0, 5.0, 2.0, 1.0])
    assert (score(fallen, "best"), score(fallen, "drop")) == (5.0, -4.0)
    assert score(fallen, "drop", end=0.5) == -3.5
    assert score(curve, "best") - score(curve, "final") == -score(curve, "drop")
    assert score(Curve("p", "m", 0, [1, 2], [1.0, 2.0]), "final") == 2.0


def verdicts(figure: Figure, curves: list[Curve]) -> dict[str, str]:
    return {claim["id"]: claim["verdict"] for claim in judge(figure, curves, "quick")}


def test_claims_are_judged_in_the_direction_of_their_panel() -> None:
    found = verdicts(FIGURE, known_curves())
    assert found["shift-above-count"] == found["count-above-epsilon-greedy"] == "supported"
    assert found["count+shift-above-count"] == "inconclusive"
    assert found["shift-nearer-to-optimal-q"] == "contradicted"  # a distance: lower is better


ALIKE = Claim("alike", "success", "Alike.", "count", "count+shift", alike=0.1)
APART = Claim("apart", "success", "Alike.", "count", "shift", alike=0.1, source="ours")


def judged(figure: Figure, curves: list[Curve]) -> dict[str, dict[str, Any]]:
    return {claim["id"]: claim for claim in judge(figure, curves, "quick")}


def test_alike_claims_use_a_share_of_the_range() -> None:
    figure = replace(FIGURE, claims=(ALIKE, APART))
    assert verdicts(figure, known_curves()) == {"alike": "supported", "apart": "contradicted"}
    found = judged(figure, known_curves())
    assert found["alike"]["margin"] == found["apart"]["margin"] == 0.1
    assert "difference 0 [-0.0216, 0.0216], margin 0.1; p = " in evidence(found["alike"])
    assert "p of the opposite = " in evidence(found["apart"])


def test_a_method_may_be_worse_by_the_allowance() -> None:
    steps = (1, 2)
    curves = [
        Curve("success", method, seed, steps, [value + 0.001 * seed] * 2)
        for method, value in (("shift", 0.6), ("count", 0.52), ("epsilon-greedy", 0.4))
        for seed in range(10)
    ]
    claims = [
        Claim(f"{better}-{worse}", "success", "Not much worse.", better, worse, allowance=0.1)
        for better, worse in (("count", "shift"), ("epsilon-greedy", "shift"), ("shift", "count"))
    ]
    found = judged(replace(FIGURE, claims=tuple(claims)), curves)
    assert {name: claim["verdict"] for name, claim in found.items()} == {
        "count-shift": "supported",
        "epsilon-greedy-shift": "contradicted",
        "shift-count": "supported",
    }
    assert found["count-shift"]["difference"] == pytest.approx(-0.08)
    assert "or is worse by less than 10% of the range" in reason(found["count-shift"], {})
    floor = [curve._replace(values=[0.0, 0.0]) for curve in curves]
    nothing = judged(replace(FIGURE, claims=tuple(claims)), floor)["count-shift"]
    assert (nothing["verdict"], nothing["edge"]) == ("inconclusive", "lowest")


def test_an_open_claim_says_why_with_the_p_value_of_its_numbers() -> None:
    claim = judged(FIGURE, known_curves())["count+shift-above-count"]
    assert claim["verdict"] == "inconclusive"
    for key, other in (("p", "p_opposite"), ("p_opposite", "p")):
        raw = {"p_value" if key == "p" else key: 0.2, "p_value" if other == "p" else other: 0.8}
        leaning = claim | raw | {f"{key}_corrected": 0.97, f"{other}_corrected": 0.9}
        assert "corrected 0.97" in evidence(leaning)
        assert "chance alone could do that (p = 0.97, corrected" in reason(leaning, {})
    near = claim | {"p_value": 0.01, "p_opposite": 0.99, "p_corrected": 0.03}
    assert "p is 0.03, but the interval still includes 50%" in reason(near, {})


@pytest.mark.parametrize(("level", "edge"), [(0.0, "lowest"), (0.96, "highest"), (0.5, None)])
def test_methods_that_all_fail_or_all_succeed_are_not_found_alike(
    level: float, edge: str | None
) -> None:
    curves = [curve._replace(values=[level + curve.seed / 200] * 3) for curve in known_curves()]
    found = judged(replace(FIGURE, claims=(ALIKE,)), curves)["alike"]
    assert found["edge"] == edge
    assert found["p_corrected"] < 0.05
    assert found["verdict"] == ("supported" if edge is None else "inconclusive")
    assert ("Nothing to compare" in reason(found, {})) == (edge is not None)
    one_better = [c._replace(values=[0.5] * 3) if c.seed == 3 else c for c in curves]
    assert judged(replace(FIGURE, claims=(ALIKE,)), one_better)["alike"]["edge"] is None


def test_a_close_call_is_marked() -> None:
    claim = judged(FIGURE, known_curves())["shift-above-count"]
    for p, close in ((0.039, False), (0.041, True)):
        found = claim | {"p_corrected": p}
        assert verdict_words(found) == "✓ supported" + " (close call)" * close
        assert ("A close call: the corrected p is 0.041." in reason(found, {})) == close


def test_a_bound_is_for_the_value_or_for_the_largest_deviation() -> None:
    """Errors that cancel in a mean do not cancel in a deviation."""
    value = Claim("value", "success", "Small.", "count", None, "final", bound=0.6)
    shape = Claim("shape", "success", "Follows.", "shift", "count", "deviation", bound=0.2)
    apart = {"count": (0.5, 0.5, 0.5), "shift": (0.8, 0.5, 0.2)}
    curves = [
        curve._replace(values=[level + curve.seed / 1000 for level in apart[curve.method]])
        for curve in known_curves()
        if curve.method in apart
    ]
    found = judged(replace(FIGURE, claims=(value, shape)), curves)
    assert found["value"]["verdict"] == "supported"
    assert "The mean of “count” is 0.5; " in reason(found["value"], {})
    assert found["shape"]["verdict"] == "contradicted"
    assert found["shape"]["difference"] == pytest.approx(0.3)
    assert "the largest deviation of “shift” from “count” is 0.3" in reason(found["shape"], {})


def test_the_range_is_that_of_the_mean_curves_that_a_panel_shows() -> None:
    values = {"count": (0.0, 10.0), "shift": (2.0, 8.0), "epsilon-greedy": (-100.0, 100.0)}
    curves = [
        Curve("q-gap", method, seed, [0, 10], [low + seed - 3.5, high - seed + 3.5])
        for method, (low, high) in values.items()
        for seed in range(8)
    ]
    panel = replace(FIGURE.panels[1], methods=("count", "shift"))
    assert value_range(panel, curves) == 10
    assert value_range(replace(panel, y_range=(0.0, 4.0)), curves) == 4
    claim = Claim("a", "q-gap", "Alike.", "count", "shift", metric="final", alike=0.25)
    figure = replace(FIGURE, panels=(panel,), claims=(claim,))
    (entry,) = judge(figure, curves, "quick")
    assert entry["margin"] == 2.5
    assert panel.lower_is_better  # and yet the difference is that of the values
    assert entry["difference"] == pytest.approx(2)
    assert entry["low"] < 2 < entry["high"]
    assert entry["high"] > 2.5


def test_families_are_corrected_apart() -> None:
    close = [
        curve._replace(values=[0.5 + curve.seed / 10 + 0.35 * (curve.method == "shift")] * 3)
        for curve in known_curves()
    ]
    claim = Claim("0", "success", "Better.", "shift", "count")
    (alone,) = judge(replace(FIGURE, claims=(claim,)), close, "quick")
    assert alone["p_corrected"] == pytest.approx(2 * alone["p_value"])
    ours = tuple(replace(claim, id=f"ours{i}", source="ours") for i in range(3))
    first, *others = judge(replace(FIGURE, claims=(claim, *ours)), close, "quick")
    assert first == alone
    for other in others:
        assert other["p_value"] == alone["p_value"]
        assert other["p_corrected"] == pytest.approx(min(1, 6 * alone["p_value"]))
        assert other["detectable"] > alone["detectable"]


def test_a_smoke_run_decides_nothing() -> None:
    verdicts = {claim["verdict"] for claim in judge(FIGURE, known_curves(), "smoke")}
    assert verdicts == {"inconclusive"}


def test_claims_without_results_are_not_tested() -> None:
    sizes = FIGURES["maze-sizes"]
    quick = replace(sizes.presets["quick"], left_out={"S20": 7.5})
    figure = replace(sizes, presets={**sizes.presets, "quick": quick})
    curves = known_curves(figure.at("quick"))
    present = judge(figure, [c for c in curves if c.method != "shift"], "quick")
    whole = {claim["id"]: claim for claim in judge(figure, curves, "quick")}
    for claim in present:
        assert set(claim) == set(whole[claim["id"]])
        if claim["panel"] == "S20":
            assert (claim["verdict"], claim["core_hours"]) == ("not tested", 7.5)
            assert evidence(claim) == "no results; takes about 7.5 core-hours"
        elif "shift" in (claim["better"], claim["worse"]):
            assert (claim["verdict"], claim["core_hours"]) == ("not tested", quick.core_hours)
        else:
            assert claim["verdict"] != "not tested"
    sources = [claim["source"] for claim in present if claim["verdict"] != "not tested"]
    for claim in present:
        if claim["verdict"] != "not tested":  # the others are not corrected for
            family = sources.count(claim["source"])
            assert claim["p_corrected"] <= 2 * family * claim["p_value"]


def test_a_summary_counts_hours_once_for_a_preset_and_for_each_task_left_out() -> None:
    sizes = FIGURES["maze-sizes"]
    quick = replace(sizes.presets["quick"], seconds=3600, left_out={"S15": 5.0, "S20": 5.0})
    figure = replace(sizes, presets={"quick": quick})
    rows = count(figure, judge(figure, [], "quick"), "paper")
    assert rows.core_hours == 2 + 5 + 5
    left = count(figure, judge(figure, known_curves(figure.at("quick")), "quick"), "paper")
    assert left.core_hours == 5 + 5
