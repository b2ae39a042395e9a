"""How optimistic published constants are: one number for each, comparable across tasks.

What values a task can have follows from its rewards where those are known; for the offline tasks
it is the range of the discounted returns in the embedded data. Everything as with the absorbing
treatment, or where nothing terminates. The last rows are public recipes for AntMaze, which pays 1
at its goal: r - 1 (IQL, RLPD) and 10 r - 5 (Cal-QL), if an episode ends there and if it goes on.
"""

from dataclasses import replace

from rewardshift import Shift, load_dataset
from rewardshift.doctor.measure import discounted_returns


def of_rewards(low: float, high: float, gamma: float) -> tuple[float, float]:
    """The range of values where every step pays between the two, for ever."""
    return low / (1 - gamma), high / (1 - gamma)


def of_data(name: str, gamma: float) -> tuple[float, float]:
    """The range of what followed the rows of a data set."""
    data = load_dataset(f"embedded/{name}")
    ends = data.terminated | data.truncated
    returns = discounted_returns(data.reward.astype(float), gamma, ends, 0.0 * ends)
    return float(returns.min()), float(returns.max())


ANT_MAZE = (Shift(-1.0), Shift(-5.0, scale=10.0))
TASKS = (
    ("maze", 0.99, (0.0, 1.0), (-0.02,)),
    ("MiniGrid", 0.98, (0.0, 1.0), (-0.5,)),
    ("MountainCar", 0.95, of_rewards(-1, 0, 0.95), (0.0, -0.5)),
    ("sparse HalfCheetah", 0.99, of_rewards(0, 1, 0.99), (-0.5, 0.0, 0.5)),
    ("Fetch", 0.98, of_rewards(-1, 0, 0.98), (0.0, 1.0)),
    ("hopper-medium", 0.99, of_data("hopper-medium", 0.99), (0.0, 1.0, 8.0)),
    ("walker2d-medium", 0.99, of_data("walker2d-medium", 0.99), (0.0, 50.0)),
    ("AntMaze, ends", 0.99, (0.0, 1.0), ANT_MAZE),
    ("AntMaze, goes on", 0.99, of_rewards(0, 1, 0.99), ANT_MAZE),
)

if __name__ == "__main__":
    print(f"{'task':18} {'values':>14} {'k':>4} {'b':>6} {'starts at':>10} {'optimism':>9}")
    for task, gamma, (low, high), constants in TASKS:
        for constant in constants:
            given = constant if isinstance(constant, Shift) else Shift(constant)
            shift = replace(given, gamma=gamma)
            values, change = f"{low:.0f} to {high:.0f}", f"{shift.scale:>4g} {shift.bias:>6g}"
            start, optimism = shift.initial_value, shift.optimism(low, high)
            print(f"{task:18} {values:>14} {change} {start:>10.0f} {optimism:>z9.1f}")
