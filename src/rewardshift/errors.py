"""The errors that end a command, and the form of values and errors in a message."""

import contextlib
import os
import traceback
from collections.abc import Iterator
from typing import Any

OURS = f"{os.path.dirname(__file__)}{os.sep}"  # noqa: PTH120  pathlib is slow to import
LONGEST = 100  # characters of a value in a message


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
