"""The error that is the user's to mend."""


class InputError(ValueError):
    """Something that was asked for cannot be done: a bad value, name, file or folder.

    The message names what was given and what would be right. The command line prints it
    as one line and exits with code 2, so it is raised before any work starts.
    """
