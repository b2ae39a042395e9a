"""Units of work in processes of this machine."""

import contextlib
import multiprocessing
import os
import signal
import tempfile
import threading
import traceback
from collections import deque
from collections.abc import Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool

import jax

from rewardshift.lab.figure import Unit
from rewardshift.lab.runner import RETRIES, Outcome, Plan, perform_unit

PATIENCE = 5  # seconds for the ends of processes with foreign code
THREADS = "OMP_NUM_THREADS"  # read by the libraries under torch and NumPy
DIED = (
    "its process died again: killed, out of memory, or it could not start, for example from a"
    " script without `if __name__ == '__main__':`"
)


class Processes:
    """Processes of this machine.

    If one of them dies, it is replaced, and its unit continues from its last checkpoint. What one
    of them compiles, the others load.

    Args:
        jobs: The number of processes. 1 uses the present process.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def perform(self, plan: Plan, units: list[Unit]) -> Iterator[Outcome]:
        """See `Place`."""
        if min(self.jobs, len(units)) <= 1 and not plan.isolated:
            keep_to_one_thread()
            yield from (perform_unit(plan, unit) for unit in units)
            return
        alone = _foreign_threads_held() if plan.isolated else contextlib.nullcontext()
        with tempfile.TemporaryDirectory(prefix="rewardshift-") as compiled, alone:
            yield from self._perform_all(plan, units, compiled)

    def _perform_all(self, plan: Plan, units: list[Unit], compiled: str) -> Iterator[Outcome]:
        others = set(multiprocessing.active_children())
        waiting = deque((unit, RETRIES) for unit in units)  # how often each may begin again
        idle = [_worker(compiled) for _ in range(min(self.jobs, len(units)))]
        working: dict[Future[Outcome], tuple[Unit, int, ProcessPoolExecutor]] = {}
        # Foreign code may keep its process from ending, so no unit waits for the end of another.
        ending, ends = ThreadPoolExecutor(), list[Future[None]]()
        finished = False
        try:
            while waiting or working:
                while idle and waiting:
                    unit, retries = waiting.popleft()
                    with _interrupts_held():  # workers inherit it: Ctrl-C reaches the parent alone
                        try:
                            future = idle[-1].submit(perform_unit, plan, unit)
                        except BrokenProcessPool:  # it died while it had nothing to do
                            idle[-1] = _worker(compiled)
                            future = idle[-1].submit(perform_unit, plan, unit)
                    working[future] = unit, retries, idle.pop()
                for future in wait(working, return_when=FIRST_COMPLETED).done:
                    unit, retries, worker = working.pop(future)
                    if plan.isolated:
                        ends.append(ending.submit(worker.shutdown))
                        worker = _worker(compiled)
                    idle.append(worker)
                    if retries and isinstance(future.exception(), BrokenProcessPool):
                        waiting.appendleft((unit, retries - 1))
                    else:
                        yield _outcome(unit, future)
            finished = True
        finally:  # also when the caller is interrupted: no process may remain
            if not finished:
                for process in set(multiprocessing.active_children()) - others:
                    process.kill()
            for worker in (*idle, *(worker for *_, worker in working.values())):
                worker.shutdown(wait=finished, cancel_futures=True)
            wait(ends, timeout=PATIENCE)  # so that a command leaves no semaphores behind


def _outcome(unit: Unit, future: Future[Outcome]) -> Outcome:
    """The outcome of a unit, also if its process has died or cannot send it."""
    error = future.exception()
    if error is None:
        return future.result()
    died = isinstance(error, BrokenProcessPool)
    return Outcome(unit, None, DIED if died else "".join(traceback.format_exception(error)))


def _worker(compiled: str) -> ProcessPoolExecutor:
    """A pool of one process: if it dies, its own unit is to blame, and no other unit is harmed."""
    return ProcessPoolExecutor(
        1,
        mp_context=multiprocessing.get_context("spawn"),  # JAX does not survive a fork
        initializer=_begin_work,
        initargs=(compiled,),
    )


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
def _foreign_threads_held() -> Iterator[None]:
    """Limits torch and NumPy to one thread in the processes that begin within the block."""
    given = os.environ.get(THREADS)
    os.environ.setdefault(THREADS, "1")
    try:
        yield
    finally:
        if given is None:
            del os.environ[THREADS]


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Delays SIGINT in this thread until the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
