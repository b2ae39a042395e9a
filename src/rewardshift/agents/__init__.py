"""The agents: frozen configurations with pure functions."""

from rewardshift.shift import register_pytree

register_pytree()
