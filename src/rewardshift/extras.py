"""Optional packages, and the extras of rewardshift that install them."""

import contextlib
import importlib.util
from collections.abc import Iterator

from rewardshift.errors import InputError


class MissingExtraError(InputError, ImportError):
    """A package that one of the extras installs is missing."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs {package}, which is not installed: {install_command(extra)}")


def install_command(extra: str) -> str:
    """The command that adds an extra to this installation of rewardshift.

    pip's record says where rewardshift came from. A folder, such as a clone, or a wheel that is
    still there is named by its path; otherwise pip finds rewardshift by its name.
    """
    # Imported here, because only an error needs them.
    import json  # noqa: PLC0415
    import shlex  # noqa: PLC0415
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415
    from urllib.parse import urlsplit  # noqa: PLC0415
    from urllib.request import url2pathname  # noqa: PLC0415

    try:
        record = json.loads(distribution("rewardshift").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:  # the sources alone
        record = {}
    url = urlsplit(record.get("url", ""))
    path = url2pathname(url.path)
    if url.scheme != "file" or not Path(path).exists():
        return f"pip install 'rewardshift[{extra}]'"
    editable = "--editable " if record.get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}{shlex.quote(f'{path}[{extra}]')}"


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
