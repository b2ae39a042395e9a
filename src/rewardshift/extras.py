"""Optional packages, and the extras of rewardshift that install them."""

import contextlib
import importlib.util
from collections.abc import Iterator

from rewardshift.errors import InputError


class MissingExtraError(InputError, ImportError):
    """A package that one of the extras installs is missing."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"this needs {package}, which is not installed: pip install 'rewardshift[{extra}]'"
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
