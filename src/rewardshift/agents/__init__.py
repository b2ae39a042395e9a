"""The agents: frozen configurations with pure functions."""
