"""Units of work in processes of this machine."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from rewardshift.experiments.figure import Unit
from rewardshift.experiments.runner import RETRIES, Outcome, Plan, perform


class Processes:
    """Processes of this machine.

    Where one of them dies, the others begin anew, and what they were at goes on from its last
    checkpoint.

    Args:
        jobs: How many; with 1, this one.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def slots(self) -> int:
        """See `Place`."""
        return self.jobs

    def perform(self, plan: Plan, units: list[Unit]) -> Iterator[Outcome]:
        """See `Place`."""
        if min(self.jobs, len(units)) <= 1:
            keep_to_one_thread()
            yield from (perform(plan, unit) for unit in units)
            return
        left, deaths = list(units), Counter[Unit]()
        while left:
            for outcome in _side_by_side(plan, left, self.jobs):
                left.remove(outcome.unit)
                yield outcome
            # The first of those that are left were at work when a process died. Which of them it
            # died of, nobody knows.
            deaths.update(left[: self.jobs])
            for unit in [unit for unit in left if deaths[unit] > RETRIES]:
                left.remove(unit)
                yield Outcome(unit, None, "its process died again: killed, or out of memory")


def _side_by_side(plan: Plan, units: list[Unit], jobs: int) -> Iterator[Outcome]:
    """Performs units in new processes, until all have ended or one of the processes has died."""
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        min(jobs, len(units)),
        mp_context=multiprocessing.get_context("spawn"),  # JAX does not survive a fork
        initializer=_begin_work,
    )
    whole = False
    try:
        with _interrupts_held():  # the workers inherit that, so Ctrl-C is the parent's alone
            futures = [pool.submit(perform, plan, unit) for unit in units]
        for future in as_completed(futures):
            if not isinstance(future.exception(), BrokenProcessPool):
                yield future.result()
        whole = not any(future.exception() for future in futures)
    finally:  # also when the caller is interrupted: nothing may linger
        if not whole:
            for worker in set(multiprocessing.active_children()) - others:
                worker.kill()
        pool.shutdown(wait=whole, cancel_futures=True)


def _begin_work() -> None:
    """For a worker: one thread for XLA, and an end where the parent has been killed.

    Nobody would take its results, and it would hold the folders of its units.
    """
    keep_to_one_thread()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def keep_to_one_thread() -> None:
    """Lets XLA take one thread in this process, if it has not computed anything yet.

    XLA divides a product among its threads and adds up what they give, so the last bits depend on
    their number. With one, they depend neither on the machine's cores nor on the other units.
    Whoever has said in `NPROC`, where XLA looks, how many threads there shall be is left with it.
    """
    os.environ.setdefault("NPROC", "1")


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Holds SIGINT back; one that comes meanwhile is delivered afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
