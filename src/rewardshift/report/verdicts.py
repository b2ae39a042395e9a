"""From the curves of a figure to a verdict on each of its claims."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from jaxtyping import Float

from rewardshift.lab.figure import Claim, Curve, Figure, Metric, Panel, Source, rounded
from rewardshift.lab.trainings import budget_lifetimes
from rewardshift.report.statistics import (
    ALPHA,
    MIN_SEEDS,
    Comparison,
    Decision,
    compare,
    compare_with_bound,
    decide,
)

CLOSE = 0.04  # a verdict with a corrected p from here to 0.05 is a close call
EDGE = 0.05  # the share of a task's range at its lowest and highest value

SOURCES: tuple[Source, ...] = get_args(Source)

SYMBOLS = {"supported": "✓", "contradicted": "✗", "inconclusive": "?", "not tested": "○"}
VERDICTS = tuple(SYMBOLS)

# The entries in `claims.json` that are those of the `Claim`, and those that results give.
CLAIMED = (
    *("id", "panel", "statement", "source", "better", "worse", "metric", "until", "end"),
    *("alike", "allowance", "bound"),
)
MEASURED = (
    *("verdict", "core_hours", "p_value", "p_corrected", "p_opposite", "p_opposite_corrected"),
    *("difference", "better_iqm", "margin", "probability", "low", "high"),
    *("worse_iqm", "detectable", "seeds", "edge"),
)

METRICS: dict[Metric, str] = {
    "auc": "the mean of the curve",
    "final": "the end of the curve",
    "best": "the best point of the curve",
    "drop": "the loss from the best point to the end",
    "deviation": "the largest deviation at any step",
}


def score(curve: Curve, metric: Metric, until: int | None = None, end: float = 0.1) -> float:
    """One number for a curve up to a step; see `Claim`."""
    pairs = zip(curve.steps, curve.values, strict=True)
    values = [value for step, value in pairs if until is None or step <= until]
    final = float(np.mean(values[-max(1, round(end * len(values))) :]))
    match metric:
        case "auc":
            return float(np.mean(values))
        case "final":
            return final
        case "best":
            return max(values)
        case "drop":
            return final - max(values)
        case "deviation":
            return max(map(abs, values))


def scores(curves: Sequence[Curve], claim: Claim, method: str) -> Float[np.ndarray, " seed"]:
    """One score per seed, in the order of the seeds."""
    chosen = [
        curve
        for curve in curves
        if (curve.panel, curve.method) == (claim.panel, method)
        and (claim.until is None or curve.steps[0] <= claim.until)
    ]
    ordered = sorted(chosen, key=lambda c: c.seed)
    return np.array([score(curve, claim.metric, claim.until, claim.end) for curve in ordered])


def value_range(panel: Panel, curves: Sequence[Curve]) -> float:
    """The range of a panel's values: the declared one, or that of its mean curves."""
    if panel.y_range is not None:
        return panel.y_range[1] - panel.y_range[0]
    shown = [curve for curve in curves if curve.panel == panel.name and panel.shows(curve.method)]
    means = [
        np.mean([curve.values for curve in shown if curve.method == method], axis=0)
        for method in {curve.method for curve in shown}
    ]
    return float(np.max(means) - np.min(means))


def short(number: float) -> str:
    """A number with three significant digits, so that a small one is not 0.00."""
    return np.format_float_positional(number, 3, fractional=False, trim="-")


def percent(share: float) -> str:
    """A share in per cent with three significant digits."""
    return f"{100 * share:.3g}%"


def verdict_words(claim: dict[str, Any]) -> str:
    """The verdict with its symbol, and whether it is a close call."""
    close = " (close call)" if _is_close(claim) else ""
    return f"{SYMBOLS[claim['verdict']]} {claim['verdict']}{close}"


def _is_close(claim: dict[str, Any]) -> bool:
    """Whether a little more chance would have left the claim open."""
    return claim["verdict"] in ("supported", "contradicted") and _corrected(claim) >= CLOSE


def effect(claim: dict[str, Any]) -> str:
    """The share of wins, or for a claim with a margin the difference, with its interval."""
    low, high = claim["low"], claim["high"]
    if claim["margin"] is None:
        return f"wins {percent(claim['probability'])} [{100 * low:.0f}, {100 * high:.0f}]"
    name = "difference" if claim["bound"] is None else "mean"
    interval = "" if low is None else f" [{short(low)}, {short(high)}]"
    return f"{name} {short(claim['difference'])}{interval}"


def evidence(claim: dict[str, Any]) -> str:
    """The numbers behind a verdict, in one line."""
    if claim["verdict"] == "not tested":
        return f"no results; takes about {rounded(claim['core_hours'])} core-hours"
    margin = "" if claim["margin"] is None else f", margin {short(claim['margin'])}"
    tested = "p" if _leans_towards(claim) else "p of the opposite"
    p = min(claim["p_value"], claim["p_opposite"])
    return f"{effect(claim)}{margin}; {tested} = {p:.2g}, corrected {_corrected(claim):.2g}"


def _leans_towards(claim: dict[str, Any]) -> bool:
    """Whether the results are rather for the claim than for its opposite."""
    return bool(claim["p_value"] <= claim["p_opposite"])


def _corrected(claim: dict[str, Any]) -> float:
    """The corrected p-value of the side to which the results lean."""
    return float(claim["p_corrected" if _leans_towards(claim) else "p_opposite_corrected"])


def reason(claim: dict[str, Any], labels: Mapping[str, str]) -> str:
    """Why a claim came to its verdict, in plain words.

    Args:
        claim: The judged claim.
        labels: What the methods are called, by name.
    """
    if claim["verdict"] == "not tested":
        return f"No results yet; takes about {rounded(claim['core_hours'])} core-hours."
    if claim["verdict"] == "inconclusive" and claim["seeds"] < MIN_SEEDS:
        return f"{claim['seeds']} seeds; a verdict needs {MIN_SEEDS}."
    if claim["verdict"] == "inconclusive" and claim["detectable"] is None:
        return f"The preset {claim['preset']} is too small for a verdict."
    better, worse = (f"“{labels.get(claim[key], claim[key])}”" for key in ("better", "worse"))
    if claim["edge"] is not None:
        return (
            f"Nothing to compare: every seed of {better} and {worse} is within {EDGE:.0%} of the"
            f" task's range of its {claim['edge']} value."
        )
    why = (
        _reason_of_better(claim, better, worse)
        if claim["margin"] is None
        else _reason_of_margin(claim, better, worse)
    )
    close = f" A close call: the corrected p is {_corrected(claim):.2g}."
    return why + close * _is_close(claim)


def _reason_of_margin(claim: dict[str, Any], better: str, worse: str) -> str:
    """Why the means of two methods, or a mean and 0, are within a margin or not."""
    spread = f"the 90% interval is [{claim['low']:.2g}, {claim['high']:.2g}]"
    where = {
        "supported": "within",
        "contradicted": "outside",
        "inconclusive": "not clearly within",
    }[claim["verdict"]]
    size = f"{claim['difference']:.2g}"
    if claim["bound"] is None:
        measured, limit = f"The means of {better} and {worse} differ by {size}", "margin of ±"
    elif claim["worse"] is None:
        measured, limit = f"The mean of {better} is {size}", "bound of "
    else:
        until = "" if claim["until"] is None else f" up to step {claim['until']:,}"
        measured = (
            f"Over the seeds, the largest deviation of {better} from {worse}{until} is {size}"
        )
        limit = "bound of "
    return f"{measured}; {spread}, {where} the {limit}{claim['margin']:.2g}."


def _reason_of_better(claim: dict[str, Any], better: str, worse: str) -> str:
    wins = f"In {percent(claim['probability'])} of the pairs of seeds, {better} beats {worse}"
    if claim["allowance"] is not None:
        wins += f" or is worse by less than {claim['allowance']:.0%} of the range"
    if claim["verdict"] == "supported":
        return f"{wins}."
    if claim["verdict"] == "contradicted":
        return f"{wins.replace('In', 'In only', 1)}: the opposite holds."
    p = _corrected(claim)
    if p < ALPHA:
        return f"{wins}; p is {p:.2g}, but the interval still includes 50%."
    return f"{wins}; chance alone could do that (p = {p:.2g}, corrected for all claims)."


def judge(figure: Figure, curves: Sequence[Curve], preset: str) -> list[dict[str, Any]]:
    """The claims with their verdicts, in the form of `claims.json`.

    Args:
        figure: The whole figure, including the tasks that the preset leaves out.
        curves: The results; a claim without results is "not tested".
        preset: The preset of the results.
    """
    panels = {panel.name: panel for panel in figure.panels}
    compared = {
        claim.id: result
        for claim in figure.claims
        if (result := _compare(panels[claim.panel], claim, curves)) is not None
    }
    decided: dict[str, Decision] = {}
    for source in SOURCES:
        family = [c.id for c in figure.claims if c.source == source and c.id in compared]
        decided |= zip(family, decide([compared[name] for name in family]), strict=True)
    decides = figure.preset(preset).decides
    judged = []
    for claim in figure.claims:
        panel = panels[claim.panel]
        entry = _untested(figure, panel, claim, preset)
        if claim.id in compared:
            entry |= _results(panel, compared[claim.id], decided[claim.id])
            entry["edge"] = _edge(panel, claim, curves)
            if not decides:
                entry["detectable"] = None
            if not decides or entry["edge"] is not None:
                entry["verdict"] = "inconclusive"
        judged.append(entry)
    return judged


def _compare(panel: Panel, claim: Claim, curves: Sequence[Curve]) -> Comparison | None:
    if claim.bound is not None:
        found = scores(_differences(claim, curves), claim, claim.better)
        return compare_with_bound(_sign(panel) * found, claim.bound) if found.size else None
    better, worse = _both_scores(claim, curves)
    if not (better.size and worse.size):
        return None
    margin = None if claim.alike is None else claim.alike * value_range(panel, curves)
    allowed = 0.0 if claim.allowance is None else claim.allowance * value_range(panel, curves)
    result = compare(_sign(panel) * better + allowed, _sign(panel) * worse, margin)
    return replace(result, difference=result.difference - allowed, x_iqm=result.x_iqm - allowed)


def _both_scores(claim: Claim, curves: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray]:
    return scores(curves, claim, claim.better), scores(curves, claim, claim.worse or "")


def _differences(claim: Claim, curves: Sequence[Curve]) -> Sequence[Curve]:
    """The curves of a claim with a bound, minus those that they are claimed to follow."""
    if claim.worse is None:
        return curves
    panel = [curve for curve in curves if curve.panel == claim.panel]
    followed = {curve.seed: curve.values for curve in panel if curve.method == claim.worse}
    return [
        curve._replace(values=np.subtract(curve.values, followed[curve.seed]).tolist())
        for curve in panel
        if curve.method == claim.better and curve.seed in followed
    ]


def _edge(panel: Panel, claim: Claim, curves: Sequence[Curve]) -> str | None:
    """The end of the task's range where all seeds of two methods are.

    Methods that all fail, or all succeed, are no evidence that they are alike. Methods that all
    fail are none that one is not worse.
    """
    if (claim.alike is None and claim.allowance is None) or panel.y_range is None:
        return None
    low, high = panel.y_range
    share = (np.concatenate(_both_scores(claim, curves)) - low) / (high - low)
    if (share <= EDGE).all():
        return "lowest"
    return "highest" if claim.alike is not None and (share >= 1 - EDGE).all() else None


def _sign(panel: Panel) -> float:
    return -1.0 if panel.lower_is_better else 1.0


def _untested(figure: Figure, panel: Panel, claim: Claim, preset: str) -> dict[str, Any]:
    """The entry of a claim that is not tested."""
    plan = figure.presets[preset]
    return {
        **{key: getattr(claim, key) for key in CLAIMED},
        "preset": preset,
        "lifetimes": budget_lifetimes(figure, panel.task, preset),
        **dict.fromkeys(MEASURED),
        "verdict": "not tested",
        "core_hours": plan.left_out.get(panel.task, plan.core_hours),
    }


def _results(panel: Panel, result: Comparison, decision: Decision) -> dict[str, Any]:
    """The measured part of an entry, in the units of the panel."""
    sign, low, high = _sign(panel), result.low, result.high
    if result.margin is not None and sign < 0 and low is not None and high is not None:
        low, high = -high, -low
    found = {name: value for name, value in vars(result).items() if name in MEASURED}
    return {
        **found,
        **vars(decision),
        "core_hours": None,
        "low": low,
        "high": high,
        "difference": sign * result.difference,
        "better_iqm": sign * result.x_iqm,
        "worse_iqm": None if result.y_iqm is None else sign * result.y_iqm,
    }
