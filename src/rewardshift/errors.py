"""The error that is the user's to mend."""


class InputError(ValueError):
    """Something that was asked for cannot be done: a bad value, name, file or folder.

    The message names what was given and what would be right. The command line prints it
    as one line and exits with code 2, so it is raised before any work starts.
    """


def one_line(error: BaseException) -> str:
    """What an error says, on one line, with its kind where that says more."""
    text = " ".join(str(error).split())
    return text if text and not isinstance(error, KeyError) else f"{type(error).__name__} {text}"
