"""What the tests with random input share."""

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import jaxtyping

from rewardshift.cli import main


@contextlib.contextmanager
def as_installed() -> Iterator[None]:
    """Without the checks of types that only tests have, and that come before our own."""
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


def assert_clear(line: str, name: str) -> None:
    """One line, with nothing that a terminal would obey, that names what is wrong."""
    assert name in line
    assert line.isprintable()


def contents(folder: Path) -> dict[str, bytes | None]:
    """Everything in a folder, by name."""
    paths = sorted(folder.rglob("*"))
    return {str(path): path.read_bytes() if path.is_file() else None for path in paths}


def run(line: list[str]) -> tuple[int, str, bool]:
    """The exit code of a command, what it says of errors, and whether the parser said it."""
    told = io.StringIO()
    with (
        as_installed(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(told),
    ):
        try:
            return main(line), told.getvalue(), False
        except SystemExit as end:
            return int(end.code or 0), told.getvalue(), True


def refused(*line: str) -> str:
    """What a command says that must be refused as bad input, without the frame of the parser."""
    code, told, _ = run(list(line))
    assert code == 2
    assert "Traceback" not in told
    return " ".join(told.translate(dict.fromkeys(map(ord, "│╭╮╰╯─"))).split())
