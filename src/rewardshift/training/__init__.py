"""The training loops, their checkpoints and the run folder."""

from rewardshift.extras import require

require("jax", "agents")
