"""Requests to stop, as a flag.

Python raises KeyboardInterrupt wherever a signal arrives. If that is in a callback of the garbage
collector, such as JAX's, it is printed and forgotten, and the program goes on.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

_collecting: list[list[int]] = []  # the list of the block that handles the signals, if there is one


@contextlib.contextmanager
def stop_requests() -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM in a list, which a loop reads, instead of stopping the process.

    At the end of the block, the signal takes the effect that it has outside of it. A second signal
    ends the process at once. A signal that the process ignores, or that code outside of Python
    handles, stays as it is. A block within another shares its list.
    """
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
