"""From the curves of a figure to a verdict on each of its claims."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from rewardshift.experiments.figure import Claim, Curve, Figure, Metric
from rewardshift.report.statistics import compare


def score(curve: Curve, metric: Metric, until: int | None = None) -> float:
    """One number for a curve up to a step; see `Claim`."""
    pairs = zip(curve.steps, curve.values, strict=True)
    values = [value for step, value in pairs if until is None or step <= until]
    final = float(np.mean(values[-max(1, len(values) // 10) :]))
    match metric:
        case "auc":
            return float(np.mean(values))
        case "final":
            return final
        case "best":
            return max(values)
        case "drop":
            return final - max(values)


def scores(curves: Sequence[Curve], claim: Claim, method: str) -> Float[np.ndarray, " seed"]:
    """One score per seed, in the order of the seeds."""
    chosen = [
        curve
        for curve in curves
        if (curve.panel, curve.method) == (claim.panel, method)
        and (claim.until is None or curve.steps[0] <= claim.until)
    ]
    ordered = sorted(chosen, key=lambda c: c.seed)
    return np.array([score(curve, claim.metric, claim.until) for curve in ordered])


def comparison(claim: dict[str, Any]) -> str:
    """What a judged claim compares, in a few words."""
    relation = "better than" if claim["margin"] is None else "like"
    until = "" if claim["until"] is None else f" to step {claim['until']:,}"
    return f"{claim['better']} {relation} {claim['worse']} ({claim['metric']}{until})"


def evidence(claim: dict[str, Any]) -> str:
    """The numbers behind a verdict, in one line."""
    if claim["verdict"] == "not run":
        return "no results"
    interval = f"[{claim['low']:.3g}, {claim['high']:.3g}]"
    if claim["margin"] is None:
        return f"P = {claim['probability']:.3g} in {interval}, p = {claim['p_value']:.2g}"
    return f"difference {claim['difference']:.2g} in {interval}, margin {claim['margin']:g}"


def judge(figure: Figure, curves: Sequence[Curve], preset: str) -> list[dict[str, Any]]:
    """The claims with their verdicts, as `claims.json` has them."""
    return [_judge_claim(figure, claim, curves, preset) for claim in figure.claims]


def _judge_claim(
    figure: Figure, claim: Claim, curves: Sequence[Curve], preset: str
) -> dict[str, Any]:
    panel = next(panel for panel in figure.panels if panel.name == claim.panel)
    sign = -1.0 if panel.lower_is_better else 1.0
    better = scores(curves, claim, claim.better)
    worse = scores(curves, claim, claim.worse)
    judged = {
        "id": claim.id,
        "panel": claim.panel,
        "statement": claim.statement,
        "better": claim.better,
        "worse": claim.worse,
        "metric": claim.metric,
        "margin": claim.margin,
        "until": claim.until,
        "preset": preset,
    }
    if not (better.size and worse.size):
        return {**judged, "verdict": "not run"}
    result = compare(sign * better, sign * worse, claim.margin)
    return {
        **judged,
        "verdict": result.verdict if figure.presets[preset].decides else "inconclusive",
        "probability": result.probability,
        "low": result.low,
        "high": result.high,
        "p_value": result.p_value,
        "difference": sign * result.difference,
        "better_iqm": sign * result.x_iqm,
        "worse_iqm": sign * result.y_iqm,
        "seeds": result.seeds,
    }
