"""Counts our files and functions that a training passes up to its first gradient.

`python benchmarks/path.py` runs `rewardshift train td3 --shift -0.5 0 0.5` under `sys.setprofile`
until the first update of the loop is traced. It prints the number of our files and functions that
were called, and the functions of each file with `--list`. Lambdas, comprehensions, properties of
dataclasses that Python generates, and everything that runs at import do not count.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

import rewardshift
from rewardshift.cli import main, parts, train

SOURCE = f"{Path(rewardshift.__file__).parent}/"
ARGUMENTS = ("--env", "Pendulum-v1", "--shift", "-0.5", "0", "0.5", "--warm-up", "10")
UPDATE = ("agents/td3.py", "update")
LOOP = ("training/online.py", "run_to_checkpoint")


class FirstGradient(BaseException):
    """Ends the training."""


def place(code: CodeType) -> tuple[str, str]:
    """The file of a function, relative to the package, and its name."""
    return code.co_filename.removeprefix(SOURCE), code.co_name


def is_in_loop(frame: FrameType | None) -> bool:
    """Whether the training loop is among the callers."""
    while frame is not None and place(frame.f_code) != LOOP:
        frame = frame.f_back
    return frame is not None


def functions_called() -> set[tuple[str, str]]:
    """Our functions up to the first gradient, each by file and qualified name."""
    found: set[tuple[str, str]] = set()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(SOURCE):
            return
        if event == "call" and "<" not in code.co_name:
            found.add((place(code)[0], code.co_qualname))
        elif event == "return" and place(code) == UPDATE and is_in_loop(frame):
            sys.setprofile(None)
            raise FirstGradient

    with TemporaryDirectory() as folder:
        sys.setprofile(profile)
        try:
            main(["train", "td3", *ARGUMENTS, "--out", f"{folder}/run"])
        except FirstGradient:
            return found
        finally:
            sys.setprofile(None)
    raise SystemExit("the training ended without an update")


if __name__ == "__main__":
    assert all((train, parts))  # imported here, so that importing does not count
    called = functions_called()
    files = sorted({file for file, _ in called})
    print(f"{len(files)} files, {len(called)} functions")
    for file in files if "--list" in sys.argv else ():
        print(f"{file}: {', '.join(sorted(name for where, name in called if where == file))}")
