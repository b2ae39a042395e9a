"""A sweep: a figure made on the spot, which trains with several constants.

Its methods are the constants, its claims compare each of them with none. What it trains, an agent
of ours or a trial of the user's, is in `agents` and `trials`; all else is the same for both.
"""
