"""A sweep: one agent with several constants, as a figure made on the spot."""
