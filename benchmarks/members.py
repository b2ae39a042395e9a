"""What three members cost in Stable-Baselines3, beside the agent without them.

Prints the processor time of an environment step with its update, and as the result how many times
that of the parent it is. The two take turns, and turns at being first. Networks and batches are the
defaults of Stable-Baselines3; torch has one thread.
"""

import time
from statistics import median
from typing import Any

import torch
from stable_baselines3 import DQN, SAC, TD3

from rewardshift.integrations.sb3 import RRSDQN, RRSSAC, RRSTD3

ROUNDS, STEPS = 5, 200
SHIFTS = (-0.5, 0.0, 0.5)
PAIRS: list[tuple[Any, Any, dict[str, Any]]] = [
    (TD3, RRSTD3, {"env": "Pendulum-v1"}),
    (SAC, RRSSAC, {"env": "Pendulum-v1"}),
    (DQN, RRSDQN, {"env": "CartPole-v1", "train_freq": 1}),
]


def model(algorithm: Any, **settings: Any) -> Any:
    """A model that has begun to learn."""
    made = algorithm("MlpPolicy", learning_starts=50, seed=0, device="cpu", **settings)
    return made.learn(100)


def milliseconds(agent: Any) -> float:
    """Processor time of a step with its update."""
    started = time.process_time()
    agent.learn(STEPS, reset_num_timesteps=False)
    return 1000 * (time.process_time() - started) / STEPS


def main() -> None:
    """Measures all three."""
    torch.set_num_threads(1)
    for parent, ours, settings in PAIRS:
        agents = [model(parent, **settings), model(ours, shifts=SHIFTS, **settings)]
        spent: list[list[float]] = [[], []]
        for turn in range(ROUNDS):
            for which in (0, 1) if turn % 2 else (1, 0):
                spent[which].append(milliseconds(agents[which]))
        alone, three = map(median, spent)
        print(
            f"{parent.__name__}: {alone:.2f} ms, {ours.__name__} with {len(SHIFTS)} members:"
            f" {three:.2f} ms, {three / alone:.2f} times",
            flush=True,
        )


if __name__ == "__main__":
    main()
