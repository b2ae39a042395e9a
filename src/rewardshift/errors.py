"""The errors that end a command, and how values and errors look in a message."""

from typing import Any

LONGEST = 100  # what is shown of a value


class InputError(ValueError):
    """Something that was asked for cannot be done: a bad value, name, file or folder.

    The message names what was given and what would be right. The command line prints it
    as one line and exits with code 2, so it is raised before any work starts. Whatever is quoted
    in it is shown without what a terminal would obey.
    """

    def __init__(self, message: str) -> None:
        super().__init__(_printable(message))


class TrainingError(RuntimeError):
    """Training went wrong in a way that going on would not mend."""


def one_line(error: BaseException) -> str:
    """What an error says, on one line, with its kind where that says more."""
    text = plain(str(error))
    return text if text and not isinstance(error, KeyError) else f"{type(error).__name__} {text}"


def shown(value: Any) -> str:
    """A value of any kind and size, on one line."""
    try:
        text = plain(repr(value))
    except ValueError:  # Python does not print a whole number of thousands of digits
        text = f"a {type(value).__name__} too long to show"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def plain(text: str) -> str:
    """A text on one line, without what a terminal would obey or a picture cannot show."""
    return _printable(" ".join(text.split()))


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
