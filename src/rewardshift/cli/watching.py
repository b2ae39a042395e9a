"""The command that serves the page while runs go on."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import tyro

import rewardshift.paper  # noqa: F401  registers the figures
from rewardshift.extras import needs


@contextlib.contextmanager
def watched(out: Path, port: int | None = None) -> Iterator[None]:
    """Serves the page of a folder, and prints its address."""
    with needs("paper"):
        from rewardshift.report.watch import serving  # noqa: PLC0415
    with serving(out, port) as server:
        print(f"watching {out}: {server.address} (Ctrl-C ends it)", flush=True)
        yield


def watch(
    out: Annotated[Path, tyro.conf.Positional] = Path("out"),
    *,
    port: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
) -> None:
    """Serve the report page of a folder and keep it up to date, until Ctrl-C.

    It listens on 127.0.0.1 alone and changes nothing.

    Args:
        out: The folder of `reproduce`, of `sweep` or of a run.
        port: The port; by default the first free one from 8765 on.
    """
    try:
        with watched(out, port):
            threading.Event().wait()
    except KeyboardInterrupt:
        print("stopped")
