"""How optimistic the paper's constants are: one number for each, comparable across tasks.

What values a task can have follows from its rewards where those are known; for the offline tasks
it is the range of the discounted returns in the embedded data. Everything as with the absorbing
treatment, or where nothing terminates.
"""

from rewardshift import Shift, load_dataset
from rewardshift.data.card import discounted_returns


def of_rewards(low: float, high: float, gamma: float) -> tuple[float, float]:
    """The range of values where every step pays between the two, for ever."""
    return low / (1 - gamma), high / (1 - gamma)


def of_data(name: str, gamma: float) -> tuple[float, float]:
    """The range of what followed the rows of a data set."""
    returns = discounted_returns(load_dataset(f"embedded/{name}"), gamma)
    return float(returns.min()), float(returns.max())


TASKS = (
    ("maze", 0.99, (0.0, 1.0), (-0.02,)),
    ("MiniGrid", 0.98, (0.0, 1.0), (-0.5,)),
    ("MountainCar", 0.95, of_rewards(-1, 0, 0.95), (0.0, -0.5)),
    ("sparse HalfCheetah", 0.99, of_rewards(0, 1, 0.99), (-0.5, 0.0, 0.5)),
    ("Fetch", 0.98, of_rewards(-1, 0, 0.98), (0.0, 1.0)),
    ("hopper-medium", 0.99, of_data("hopper-medium", 0.99), (0.0, 1.0, 8.0)),
    ("walker2d-medium", 0.99, of_data("walker2d-medium", 0.99), (0.0, 50.0)),
)

if __name__ == "__main__":
    print(f"{'task':18} {'values':>14} {'b':>6} {'starts at':>10} {'optimism':>9}")
    for task, gamma, (low, high), biases in TASKS:
        for bias in biases:
            shift = Shift(bias, gamma=gamma)
            values = f"{low:.0f} to {high:.0f}"
            start, optimism = shift.initial_value, shift.optimism(low, high)
            print(f"{task:18} {values:>14} {bias:>6g} {start:>10.0f} {optimism:>z9.1f}")
