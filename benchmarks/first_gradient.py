"""How much of the library a training passes through before its first gradient.

`python benchmarks/first_gradient.py` runs `rewardshift train td3 --shift -0.5 0 0.5` up to the
first gradient that JAX traces, and prints how many of our files and functions were called, by room.
With `--list` it prints the functions, too. Imports, comprehensions and lambdas do not count.
"""

import shlex
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import jax

import rewardshift
from rewardshift import cli
from rewardshift.cli import commands  # noqa: F401  imports do not count

SOURCE = f"{Path(rewardshift.__file__).parent}/"
COMMAND = shlex.split("train td3 --env Pendulum-v1 --shift -0.5 0 0.5 --steps 200 --warm-up 100")


class ReachedError(BaseException):
    """The first gradient; not an `Exception`, so that nothing on the way catches it."""


def called() -> set[tuple[str, str]]:
    """The functions on the way, each as its file and its name."""
    found: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        # Texts, because JAX calls many functions of its own.
        path, name = frame.f_code.co_filename, frame.f_code.co_qualname
        if event == "call" and path.startswith(SOURCE) and not name.endswith(">"):
            found.add((path.removeprefix(SOURCE), name))

    def stop(*_: Any, **__: Any) -> NoReturn:
        sys.setprofile(None)
        raise ReachedError

    jax.value_and_grad = stop
    with tempfile.TemporaryDirectory() as folder:
        sys.setprofile(note)
        try:
            cli.main([*COMMAND, "--out", f"{folder}/run"])
        except ReachedError:
            return found
        finally:
            sys.setprofile(None)
    raise SystemExit("the command ended before a gradient")


def main() -> None:
    """Prints the counts."""
    found = called()
    rooms = Counter(path.split("/")[0].removesuffix(".py") for path, _ in found)
    print(f"{len({path for path, _ in found})} files, {len(found)} functions")
    print(", ".join(f"{room} {count}" for room, count in rooms.most_common()))
    if "--list" in sys.argv:
        print(*sorted(f"{path}: {name}" for path, name in found), sep="\n")


if __name__ == "__main__":
    main()
