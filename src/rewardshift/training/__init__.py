"""The loops: stepping, evaluation and curves."""

from rewardshift.extras import require

require("jax", "agents")
