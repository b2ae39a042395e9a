"""The training loops, their checkpoints and the run folder."""

from rewardshift.errors import require

require("jax", "agents")
