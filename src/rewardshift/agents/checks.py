"""Checks that agents share: what hindsight and fixed data go with."""

from typing import Any

from rewardshift.errors import InputError


def check_offline(agent: Any, *, mixes: bool = False) -> None:
    """Refuses what an agent with members cannot do on fixed data.

    Args:
        agent: The agent.
        mixes: Whether its policy follows all members at once.
    """
    if agent.n_step != 1:
        raise InputError(f"on a data set n_step must be 1, got {agent.n_step}")
    if agent.hindsight is not None:
        raise InputError("hindsight relabels what is collected; a fixed data set is as it is")
    if len(agent.members) > 1 and not mixes:
        raise InputError(
            "on a data set no episode ends, so no other member comes to lead: one shift, or a"
            f" selection that mixes, got {len(agent.members)} shifts"
        )


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
