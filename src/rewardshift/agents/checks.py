"""A check that agents share: what hindsight goes with."""

from typing import Any

from rewardshift.errors import InputError


def check_hindsight(agent: Any) -> None:
    """Refuses hindsight together with what it does not go with."""
    if agent.hindsight is None:
        return
    if agent.n_step != 1:
        raise InputError(f"hindsight needs n_step=1, got {agent.n_step}")
    if getattr(agent, "intrinsic", None) is not None:
        raise InputError(
            "hindsight does not go with an intrinsic reward, which would be another goal's, got"
            f" {agent.intrinsic}"
        )
