"""Units of work in processes of this machine."""

import contextlib
import multiprocessing
import os
import signal
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

import jax

from rewardshift.experiments.figure import Unit
from rewardshift.experiments.runner import RETRIES, Outcome, Plan, perform


class Processes:
    """Processes of this machine.

    If one of them dies, all are replaced, and their units continue from their last checkpoints.
    What one of them compiles, the others load.

    Args:
        jobs: The number of processes. 1 uses the present process.
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
        with tempfile.TemporaryDirectory(prefix="rewardshift-") as compiled:
            yield from self._perform_all(plan, units, compiled)

    def _perform_all(self, plan: Plan, units: list[Unit], compiled: str) -> Iterator[Outcome]:
        left, deaths = list(units), Counter[Unit]()
        while left:
            for outcome in _side_by_side(plan, left, self.jobs, compiled):
                left.remove(outcome.unit)
                yield outcome
            # The first of the remaining units were running when a process died. It is unknown which
            # of them caused it.
            deaths.update(left[: self.jobs])
            for unit in [unit for unit in left if deaths[unit] > RETRIES]:
                left.remove(unit)
                yield Outcome(unit, None, "its process died again: killed, or out of memory")


def _side_by_side(plan: Plan, units: list[Unit], jobs: int, compiled: str) -> Iterator[Outcome]:
    """Performs units in new processes, until all units have ended or a process dies."""
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        min(jobs, len(units)),
        mp_context=multiprocessing.get_context("spawn"),  # JAX does not survive a fork
        initializer=_begin_work,
        initargs=(compiled,),
    )
    whole = False
    try:
        with _interrupts_held():  # the workers inherit it, so Ctrl-C reaches the parent alone
            futures = [pool.submit(perform, plan, unit) for unit in units]
        for future in as_completed(futures):
            if not isinstance(future.exception(), BrokenProcessPool):
                yield future.result()
        whole = not any(future.exception() for future in futures)
    finally:  # also when the caller is interrupted: no process may remain
        if not whole:
            for worker in set(multiprocessing.active_children()) - others:
                worker.kill()
        pool.shutdown(wait=whole, cancel_futures=True)


def _begin_work(compiled: str) -> None:
    """Prepares a worker: one thread for XLA, and an exit when the parent is killed.

    An orphaned worker's results would be lost, and it would hold the folders of its units.

    Args:
        compiled: A folder for compiled programs, unless the user has set one for JAX.
    """
    keep_to_one_thread()
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", compiled)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def keep_to_one_thread() -> None:
    """Limits XLA to one thread in this process, if XLA has not computed anything yet.

    XLA divides a product among its threads and adds up their results, so the last bits depend on
    the number of threads. With one thread, they depend neither on the machine's cores nor on the
    other units. A number that the user has set in `NPROC`, which XLA reads, stays.
    """
    os.environ.setdefault("NPROC", "1")


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Delays SIGINT until the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
