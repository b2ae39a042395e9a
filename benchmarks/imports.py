"""What importing rewardshift costs, beside importing Gymnasium alone.

Prints the seconds of processor time of both imports, each in a fresh process, and, as the result,
their ratio. They take turns, and turns at being first.
"""

import subprocess
import sys

import numpy as np

ROUNDS = 20
OURS = "from rewardshift import Shift, ShiftReward, VectorShiftReward"
PEER = "import gymnasium"


def seconds(statement: str) -> float:
    """Processor time of a statement in a new interpreter, without the interpreter's own start."""
    code = (
        f"import time; start = time.process_time(); {statement}; print(time.process_time() - start)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


if __name__ == "__main__":
    for statement in (OURS, PEER):
        seconds(statement)  # writes the bytecode
    pairs = []
    for turn in range(ROUNDS):
        order = (OURS, PEER) if turn % 2 else (PEER, OURS)
        spent = {statement: seconds(statement) for statement in order}
        pairs.append((spent[OURS], spent[PEER]))
    mine, theirs = np.median(pairs, axis=0)
    ratio = np.median([one / other for one, other in pairs])
    print(f"import  rewardshift {mine:.3f} s  gymnasium {theirs:.3f} s  x{ratio:.3f}")
