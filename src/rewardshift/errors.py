"""What ends a command: errors, missing packages and requests to stop.

Also the form of values and errors in a message.
"""

import contextlib
import importlib.util
import os
import signal
import threading
import traceback
from collections.abc import Iterator
from typing import Any

OURS = f"{os.path.dirname(__file__)}{os.sep}"  # noqa: PTH120  pathlib is slow to import
LONGEST = 100  # characters of a value in a message
# The list of the block that handles the signals, if there is one; see `stop_requests`.
_collecting: list[list[int]] = []


class InputError(ValueError):
    """A request that cannot be met, because of a bad value, name, file or folder.

    The message names the given value and what would be right. The command line prints it
    as one line and exits with code 2, so it is raised before any work starts. Control characters
    in the message are escaped.
    """

    def __init__(self, message: str) -> None:
        super().__init__(_printable(str(message)))  # a worker of Gymnasium passes the error itself


class TrainingError(RuntimeError):
    """Training failed and cannot continue."""


class ForeignError(TrainingError):
    """Code outside rewardshift failed: an environment, or a module that the user names.

    The message says whose code failed and when; `details` is the traceback of that code.
    """

    @property
    def details(self) -> str:
        """The traceback of the failed code, without our own calls that led to it."""
        cause = self.__cause__
        if cause is None:
            return ""
        place = cause.__traceback__
        while place is not None and place.tb_frame.f_code.co_filename.startswith(OURS):
            place = place.tb_next
        lines = "".join(traceback.format_exception(type(cause), cause, place)).splitlines()
        return "\n".join(map(_printable, lines))


# Everything that foreign code may raise; an interrupt is not its own.
FOREIGN = (Exception, SystemExit)


def foreign_error(what: str, error: BaseException) -> ForeignError:
    """The error for a failure of foreign code, to be raised from it; see `blaming`."""
    kind = f"{type(error).__name__}: {plain(str(error))}".removesuffix(": ")
    return ForeignError(f"{plain(what)} failed, in code outside of rewardshift: {kind}")


@contextlib.contextmanager
def blaming(what: str, but: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turns a failure of foreign code into a `ForeignError`; an interrupt passes unchanged.

    Args:
        what: The code that is called and when; the message continues with "failed".
        but: Errors that pass unchanged.
    """
    try:
        yield
    except but:
        raise
    except FOREIGN as error:
        raise foreign_error(what, error) from error


class MissingExtraError(InputError, ImportError):
    """A package that one of the extras installs is missing."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"this needs {package}, which is not installed: add the extra {extra!r}, as in"
            f" pip install '.[{extra}]' in a clone of rewardshift"
        )


@contextlib.contextmanager
def needs(extra: str) -> Iterator[None]:
    """Makes a failing import in its block name the extra that installs the package."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name).partition(".")[0], extra) from error


def require(package: str, extra: str) -> None:
    """Raises if a package is missing, without importing it."""
    if importlib.util.find_spec(package) is None:
        raise MissingExtraError(package, extra)


@contextlib.contextmanager
def stop_requests() -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM in a list, which a loop reads, instead of stopping the process.

    At the end of the block, the signal takes the effect that it has outside of it. A second signal
    ends the process at once. A signal that the process ignores, or that code outside of Python
    handles, stays as it is. A block within another shares its list.
    """
    # Not KeyboardInterrupt, which Python raises wherever a signal arrives: in a callback of the
    # garbage collector, such as JAX's, it is printed and forgotten, and the program goes on.
    if threading.current_thread() is not threading.main_thread():  # only it can handle signals
        yield []
        return
    if _collecting:
        yield _collecting[0]
        return
    asked: list[int] = []

    def note(number: int, _: Any) -> None:
        if asked:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        asked.append(number)

    numbers = [signal.SIGINT, signal.SIGTERM]
    ours = [one for one in numbers if signal.getsignal(one) not in (signal.SIG_IGN, None)]
    previous = {number: signal.signal(number, note) for number in ours}
    _collecting.append(asked)
    try:
        yield asked
    finally:
        _collecting.clear()
        for number, old in previous.items():
            signal.signal(number, old)
    if asked:
        signal.raise_signal(asked[0])


def one_line(error: BaseException) -> str:
    """An error's message on one line, with the error's type if the message alone is unclear."""
    text = plain(str(error))
    return text if text and not isinstance(error, KeyError) else f"{type(error).__name__} {text}"


def shown(value: Any) -> str:
    """A value of any kind and size as a short line."""
    try:
        text = plain(repr(value))
    except ValueError:  # Python does not print a whole number of thousands of digits
        text = f"a {type(value).__name__} too long to show"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def plain(text: str) -> str:
    """A text on one line, with its control characters escaped."""
    return _printable(" ".join(text.split()))


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
